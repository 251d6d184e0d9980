package contextmgr

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// sent tells whether a message was part of a context that is still a prefix of this one:
// what is put into it now would break that.
func (r *reading) sent(m *session.Message) bool {
	return !r.fresh && r.last != nil && r.last.Epoch == r.sess.Epoch && r.last.HeadID != nil && m.RowID <= *r.last.HeadID
}

func (r *reading) hasFrozen(m *session.Message, kind string) bool {
	return slices.ContainsFunc(r.frozen, func(f session.Frozen) bool { return f.MessageID == m.RowID && f.Kind == kind })
}

// newestOf gives the newest message of the path that a test accepts, nil for none.
func (r *reading) newestOf(is func(*session.Message) bool) *session.Message {
	for i := range slices.Backward(r.path) {
		if m := &r.path[i]; m.InContext && is(m) {
			return m
		}
	}
	return nil
}

func fromUser(m *session.Message) bool { return m.Role == session.User }

func fromPerson(m *session.Message) bool {
	return m.Role == session.User && m.Origin == session.Person
}

// freezeVolatile puts the caller's text of the moment into the newest message of the user's
// role, once and for good.
func (t *turn) freezeVolatile(text string) {
	if text == "" {
		return
	}
	m := t.r.newestOf(fromUser)
	if m == nil {
		return
	}
	for _, f := range t.r.frozen {
		var content frozenText
		if f.MessageID == m.RowID && f.Kind == session.FrozenVolatile && decode(f.Content, &content) && content.Text == text {
			return
		}
	}
	if t.r.hasFrozen(m, session.FrozenVolatile) || t.r.sent(m) {
		t.r.warn("volatile text was left out, since the message that it goes with was sent: it goes in with the user's next message")
		return
	}
	t.keep(m, session.FrozenVolatile, nil, frozenText{Text: text})
}

// keep freezes content with a message, in this context and, by save, in those to come.
func (t *turn) keep(m *session.Message, kind string, compaction *int64, content any) {
	f := session.Frozen{SessionID: t.r.sess.ID, MessageID: m.RowID, Kind: kind, CompactionID: compaction, Content: session.JSONOf(content)}
	t.r.frozen = append(t.r.frozen, f)
	t.freeze = append(t.freeze, f)
}

// recall looks up what the newest person's message asks for in what the overlay hides, outputs
// that are pruned included.
func (t *turn) recall(ctx context.Context) error {
	r := t.r
	c := r.overlay
	if t.m.cfg.Recall == nil || t.pinned || c == nil || c.Strategy == session.StrategyClear || r.numbers.RecallMax <= 0 || len(r.path) == 0 {
		return nil
	}
	m := r.newestOf(fromPerson)
	if m == nil || r.hasFrozen(m, session.FrozenRecall) || r.sent(m) {
		return nil
	}
	most := min(r.numbers.RecallMax, r.numbers.RecallEpoch-r.recalled(c.RowID), r.numbers.Limit-t.tokens.Total)
	text, terms := Query(r.saidBy(fromPerson, recallLook))
	if len(terms) == 0 || most < leastPart {
		return nil
	}
	before := r.path[0].RowID
	shown := r.recalledSources()
	hits, timedOut, err := t.m.cfg.Recall.Recall(ctx, RecallQuery{
		Session: r.sess.ID, Head: *r.sess.HeadID, Before: before, Text: text, Terms: terms, Limit: recallHits + len(shown), Budget: r.numbers.RecallTime,
		Pruned: r.prunedMessages(),
	})
	if err != nil { // a context without recall is better than none
		r.warn("nothing was recalled: %v", err)
		return nil
	}
	if timedOut {
		r.warn("recall stopped after %s: hidden messages beyond that were not looked at", r.numbers.RecallTime)
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool {
		return h.Message.RowID >= before && !r.prunes(&h.Message) || slices.Contains(shown, h.Message.ID)
	})
	block := recallBlock(recallInput{hits: hits, terms: terms, most: most, mask: t.m.cfg.Mask, weigh: r.weigh})
	var overlay *int64
	if c.RowID != 0 {
		overlay = &c.RowID
	}
	// Nothing found is frozen too, so that the message stays as it was sent.
	t.keep(m, session.FrozenRecall, overlay, block)
	if block.Text == "" {
		return nil
	}
	return t.assemble(ctx)
}

// recalled is how much was recalled for an overlay, in tokens.
func (r *reading) recalled(overlay int64) int64 {
	var sum int64
	for _, f := range r.frozen {
		var content frozenText
		if f.Kind == session.FrozenRecall && f.CompactionID != nil && *f.CompactionID == overlay && decode(f.Content, &content) {
			sum += content.Tokens
		}
	}
	return sum
}

// recalledSources are the originals that the context quotes already.
func (r *reading) recalledSources() []session.MessageRef {
	var all []session.MessageRef
	for _, f := range r.frozen {
		var content frozenText
		if f.Kind == session.FrozenRecall && r.holds(f.MessageID) && decode(f.Content, &content) {
			all = append(all, content.Sources...)
		}
	}
	return all
}

// saidBy gives the newest texts of messages that a test accepts, newest first.
func (r *reading) saidBy(is func(*session.Message) bool, most int) []string {
	var texts []string
	for i := range slices.Backward(r.path) {
		if m := &r.path[i]; m.InContext && is(m) {
			if texts = append(texts, m.Text()); len(texts) == most {
				break
			}
		}
	}
	return texts
}

// context is the record of this context.
func (r *reading) context(tokens int64) session.Context {
	return session.Context{
		SessionID: r.sess.ID, HeadID: r.sess.HeadID, CompactionID: r.sess.CompactionID, Epoch: r.sess.Epoch,
		Model: r.model, Dialect: r.dialect, SystemHash: hashOf(r.own), InitialHash: hashOf(keepParts(r.initial)), ToolsHash: hashOf(r.tools),
		OverheadTokens: r.given(), Tokens: tokens, Limits: session.JSONOf(r.limits),
	}
}

// save records the context that is handed out, and what was frozen into it.
func (t *turn) save(ctx context.Context) (session.Context, error) {
	for i := range t.r.path {
		if calls := t.draft.ClosedIn[t.r.path[i].RowID]; len(calls) > 0 && !t.r.hasFrozen(&t.r.path[i], session.FrozenClosedCall) {
			t.keep(&t.r.path[i], session.FrozenClosedCall, nil, frozenCalls{calls})
		}
	}
	blocks := map[string]string{}
	for kind, content := range map[string]string{
		session.BlockSystem: t.r.own, session.BlockInitial: keepParts(t.r.initial), session.BlockTools: t.r.tools,
	} {
		if content != "" {
			blocks[kind] = content
		}
	}
	saved, err := t.m.store.SaveContext(ctx, t.r.context(t.tokens.Estimate-t.r.overhead+t.r.given()), blocks, t.freeze)
	if err != nil {
		return saved, fmt.Errorf("record the context: %w", err)
	}
	return saved, nil
}

// view tells of the context. saved is its record, nil for one that was only read.
func (t *turn) view(saved *session.Context, explain bool) View {
	r := t.r
	v := View{
		System: t.draft.System, Model: r.model, Dialect: r.dialect, Info: r.info,
		Tokens: t.tokens, Prefix: t.prefix(), Pending: list(t.draft.Pending), Provenance: list(t.draft.Provenance()),
		Adjustments: list(t.draft.Adjustments), Losses: list(t.draft.Losses), Directives: list(t.directives), Warnings: list(r.warnings),
	}
	if len(v.Pending) == 0 {
		v.Messages, v.Borders = t.draft.Messages(), t.borders(v.Prefix)
	}
	if saved != nil {
		v.ID = session.ContextName(saved.RowID)
	}
	if c := r.overlay; c != nil {
		v.Compaction = &ViewOverlay{Strategy: c.Strategy, Status: c.Status}
		if c.RowID == 0 {
			v.Compaction.Status = StatusEphemeral
		} else {
			v.Compaction.ID = session.CompactionName(c.RowID)
		}
	}
	if explain {
		v.Settings, v.Counting = r.numbers.Settings, t.counting()
	}
	return v
}

// list makes what is empty an empty list on the wire, and no null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// prefix compares the context with the one that was handed out before.
func (t *turn) prefix() Prefix {
	r := t.r
	now := r.context(0)
	if r.fresh && !t.commit {
		now.Epoch++ // what the overlay that a turn would commit begins
	}
	if r.last == nil || r.last.HeadID == nil {
		return ComparePrefix(r.last, now, true, false, false, 0)
	}
	stable := t.draft.Fixed
	for i := range t.draft.Items {
		item := &t.draft.Items[i]
		if item.Message.RowID > *r.last.HeadID {
			break
		}
		if item.Kind != ItemInitial && item.Kind != ItemPinned {
			stable += t.draft.Weights[i]
		}
	}
	return ComparePrefix(r.last, now, r.holds(*r.last.HeadID) || r.overlay != nil && !r.fresh, len(t.draft.Late) > 0, t.draft.Recut, stable)
}
