package contextmgr

import (
	"cmp"
	"context"
	"fmt"

	"sessiond/internal/session"
)

// maxLearned is how many messages between two reports are read.
const maxLearned = 256

// Learn compares the difference of a session's last two reports with sessiond's own count of the
// messages between them, and passes both to Config.Learned. The reports must have the same epoch,
// model, system text and tools, so that constant parts cancel out. Only input counts: reasoning is
// reported with a reply and never sent again.
func (m *Manager) Learn(ctx context.Context, id session.ID) error {
	if m.cfg.Learned == nil {
		return nil
	}
	calls, err := m.store.Reports(ctx, id, 2)
	if err != nil || len(calls) < 2 {
		return err
	}
	newer, older := &calls[0], &calls[1]
	if ok, err := m.areComparable(ctx, id, newer, older); err != nil || !ok {
		return err
	}
	info, _ := m.cfg.Models(newer.Model)
	counter := m.cfg.Counter(cmp.Or(info.Family, m.cfg.Reference))
	var estimated int64
	found, read, altered := false, 0, false
	err = m.store.Walk(ctx, *newer.MessageID, func(msg session.Message) bool {
		if read++; msg.RowID == *newer.MessageID {
			return true
		}
		if msg.InContext {
			counter.Measure(&msg)
			estimated += msg.Tokens - reasoningTokens(&msg)
			altered = altered || m.isSentAltered(&msg, info.Window)
		}
		found = msg.RowID == *older.MessageID
		return !found && read < maxLearned
	})
	if err != nil {
		return fmt.Errorf("messages between two reports of %s: %w", id, err)
	}
	if !found || altered {
		return nil
	}
	return m.cfg.Learned(ctx, newer.Model, estimated, inputTokens(newer)-inputTokens(older))
}

// reasoningTokens returns the weight of a measured message's reasoning: it is not sent again.
func reasoningTokens(m *session.Message) int64 {
	var sum int64
	for i := range m.Parts {
		if m.Parts[i].Kind == session.PartReasoning {
			sum += m.Parts[i].Tokens
		}
	}
	return sum
}

// isSentAltered reports whether a measured message may be sent in another form than it is stored
// in, or holds more than text: a failed reply, a part that is cut, a picture. Where reasoning is sent
// again, some providers do not count it.
func (m *Manager) isSentAltered(msg *session.Message, window int64) bool {
	if msg.Finish.Failed() || reasoningTokens(msg) > 0 && m.cfg.Dialects.ResendsReasoning(msg.Dialect) {
		return true
	}
	for i := range msg.Parts {
		switch p := &msg.Parts[i]; p.Kind {
		case session.PartImage, session.PartAudio, session.PartFile:
			return true
		default:
			if window > 0 && p.Tokens > min(window/4, 50000) {
				return true
			}
		}
	}
	return false
}

// areComparable reports whether two reports differ only by the messages between them.
func (m *Manager) areComparable(ctx context.Context, id session.ID, newer, older *session.Call) (bool, error) {
	if newer.Model != older.Model || newer.Model == "" {
		return false, nil
	}
	a, err := m.store.Context(ctx, id, *newer.ContextID)
	if err != nil {
		return false, err
	}
	b, err := m.store.Context(ctx, id, *older.ContextID)
	if err != nil {
		return false, err
	}
	if a.Epoch != b.Epoch || !sameBlocks(a, b) || a.OverheadTokens != b.OverheadTokens {
		return false, nil
	}
	if isTooSmall(inputTokens(newer), a.Tokens-a.OverheadTokens) ||
		isTooSmall(inputTokens(older), b.Tokens-b.OverheadTokens) {
		return false, nil
	}
	for _, c := range []*session.Context{&a, &b} { // parts that were cut are counted whole here
		var l limits
		if decode(c.Limits, &l) && l.isCut() {
			return false, nil
		}
	}
	frozen, err := m.store.Frozen(ctx, session.Session{ID: id}) // inherited ones lie before both replies
	if err != nil {
		return false, err
	}
	for _, f := range frozen { // frozen text is not in the messages' count
		if f.MessageID > *older.MessageID && f.MessageID <= *newer.MessageID {
			return false, nil
		}
	}
	return true, nil
}
