package contextmgr

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// learnReach bounds how many messages between two reports are read.
const learnReach = 256

// Learn holds the last two reports of a session against sessiond's own count of what came
// into the context between them, and tells Config.Learned both. Only differences within one
// epoch, model, system and set of tools say something: what does not grow falls out. What
// went in counts, not the reply: reasoning is reported with it and never sent again.
func (m *Manager) Learn(ctx context.Context, id session.ID) error {
	if m.cfg.Learned == nil {
		return nil
	}
	calls, err := m.store.Reports(ctx, id, 2)
	if err != nil || len(calls) < 2 {
		return err
	}
	newer, older := &calls[0], &calls[1]
	comparable, err := m.comparable(ctx, id, newer, older)
	if err != nil || !comparable {
		return err
	}
	info, _ := m.cfg.Models(newer.Model)
	counter := m.cfg.Counter(m.familyOf(newer.Model))
	var estimated int64
	found, read, altered := false, 0, false
	err = m.store.Walk(ctx, *newer.MessageID, func(msg session.Message) bool {
		if read++; msg.RowID == *newer.MessageID {
			return true
		}
		if msg.InContext {
			counter.Measure(&msg)
			estimated += msg.Tokens - unsent(&msg)
			altered = altered || sentOtherwise(&msg, info.Window)
		}
		found = msg.RowID == *older.MessageID
		return !found && read < learnReach
	})
	if err != nil {
		return fmt.Errorf("what came between two reports of %s: %w", id, err)
	}
	if !found || altered {
		return nil
	}
	return m.cfg.Learned(ctx, newer.Model, estimated, inputOf(newer)-inputOf(older))
}

// unsent is what a measured message weighs that no provider is sent again: its reasoning.
func unsent(m *session.Message) int64 {
	var sum int64
	for i := range m.Parts {
		if m.Parts[i].Kind == session.PartReasoning {
			sum += m.Parts[i].Tokens
		}
	}
	return sum
}

// sentOtherwise tells whether a measured message went out in another form than it is stored
// in, or in one that no text teaches about: a failed reply without its calls, a part so large
// that it was cut, a picture.
func sentOtherwise(m *session.Message, window int64) bool {
	if m.Finish.Failed() {
		return true
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
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

// comparable tells whether two reports differ only by the messages between them.
func (m *Manager) comparable(ctx context.Context, id session.ID, newer, older *session.Call) (bool, error) {
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
	if a.Epoch != b.Epoch || a.SystemHash != b.SystemHash || a.InitialHash != b.InitialHash || a.ToolsHash != b.ToolsHash || a.OverheadTokens != b.OverheadTokens {
		return false, nil
	}
	for _, c := range []*session.Context{&a, &b} { // what was cut to fit is counted whole here
		var l limits
		if decode(c.Limits, &l) && l.isCut() {
			return false, nil
		}
	}
	frozen, err := m.store.Frozen(ctx, session.Session{ID: id}) // both replies are its own, so what it shares lies before them
	if err != nil {
		return false, err
	}
	for _, f := range frozen { // what was put beside the messages is not in their count
		if f.MessageID > *older.MessageID && f.MessageID <= *newer.MessageID {
			return false, nil
		}
	}
	return true, nil
}

func (m *Manager) familyOf(model string) string {
	info, _ := m.cfg.Models(model)
	if info.Family == "" {
		return m.cfg.Reference
	}
	return info.Family
}

// inputOf is everything that went into a call.
func inputOf(c *session.Call) int64 { return c.InputTokens + c.CacheReadTokens + c.CacheWriteTokens }
