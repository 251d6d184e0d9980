package contextmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// CompactInput asks for a compaction.
type CompactInput struct {
	Budget
	Strategy     session.Strategy // "": as the settings say; ask counts as summarize
	Trigger      session.Trigger  // manual or overflow; "": manual
	Instructions string
	Summary      string               // a ready one, instead of a digest
	KeepTokens   *int64               // to keep verbatim at least, instead of the settings'
	Model        bool                 // ask the remote summariser, if there is one; where it fails the digest serves
	DryRun       bool                 // answer the plan, write nothing
	Idem         *session.Idempotency // of the request; nil: none

	ReportedTokens int64 // of an overflow: what the provider counted; 0: not told
	ReportedWindow int64 // of an overflow: the model's true window; 0: not told
}

// Preview says what a compaction hides and keeps, as counts and edges.
type Preview struct {
	Strategy     session.Strategy    `json:"strategy"`
	Through      *session.MessageRef `json:"through,omitempty"`
	FirstKept    *session.MessageRef `json:"first_kept,omitempty"`
	TurnStart    *session.MessageRef `json:"turn_start,omitempty"` // of a split turn: shown again
	Hidden       int                 `json:"hidden_messages"`
	HiddenTokens int64               `json:"hidden_tokens"`
	Kept         int                 `json:"kept_messages"`
	KeptTokens   int64               `json:"kept_tokens"`
	TokensBefore int64               `json:"tokens_before"`
	TokensAfter  int64               `json:"tokens_after"`
	CostNanoUSD  *int64              `json:"-"` // of a model's summary; nil: unknown
	CostUSD      *float64            `json:"cost_usd"`
	NoGain       string              `json:"no_gain,omitempty"` // why nothing would be done
}

// overflowsInARow is how often an overflow is answered by keeping less.
const overflowsInARow = 3

// prepareCompact checks what is asked for and reads what it is about.
func (m *Manager) prepareCompact(ctx context.Context, id session.ID, in *CompactInput) (*reading, overlayInput, error) {
	if in.Trigger == "" {
		in.Trigger = session.TriggerManual
	}
	if in.Trigger != session.TriggerManual && in.Trigger != session.TriggerOverflow {
		return nil, overlayInput{}, session.Errorf(session.Invalid, "trigger %q is none of manual, overflow", in.Trigger).At("trigger", "manual or overflow")
	}
	if in.Strategy != "" {
		if err := checkStrategy(in.Strategy, false); err != nil {
			return nil, overlayInput{}, session.Errorf(session.Invalid, "%w", err).At("strategy", "%s", err.Error())
		}
	}
	if in.ReportedTokens < 0 || in.ReportedWindow < 0 || in.KeepTokens != nil && *in.KeepTokens < 0 {
		return nil, overlayInput{}, session.Errorf(session.Invalid, "a compaction's numbers of tokens cannot be negative")
	}
	if in.ReportedWindow > 0 {
		in.Window = in.ReportedWindow
	}
	r, err := m.read(ctx, id, m.asked.like(id, in.Budget))
	if err != nil {
		return nil, overlayInput{}, err
	}
	t := turn{m: m, r: r}
	if err := t.assemble(ctx); err != nil {
		return nil, overlayInput{}, err
	}
	over := overlayInput{
		strategy: in.Strategy, trigger: in.Trigger, summarizer: m.cfg.Digest, serve: true, instructions: in.Instructions, summary: in.Summary,
		keep: in.KeepTokens, fixed: t.draft.Fixed, before: max(t.tokens.Total, in.ReportedTokens), forced: in.Trigger == session.TriggerOverflow,
	}
	if over.strategy == "" {
		if over.strategy = r.numbers.Strategy; over.strategy == StrategyAsk {
			over.strategy = session.StrategySummarize
		}
	}
	if over.summary != "" {
		if max := r.weigh.unscaled(r.numbers.Threshold / 2); m.cfg.Counter(m.cfg.Reference).Text(over.summary) > max {
			return nil, over, session.Errorf(session.Invalid, "summary is over half the threshold of %d tokens: give a shorter one", r.numbers.Threshold).At("summary", "too long")
		}
	}
	all, err := m.store.Compactions(ctx, id)
	if err != nil {
		return nil, over, err
	}
	if in.Trigger == session.TriggerOverflow {
		err = m.prepareOverflow(ctx, r, &t, all, &over)
	}
	return r, over, err
}

// prepareOverflow keeps half as much for each overflow in a row.
func (m *Manager) prepareOverflow(ctx context.Context, r *reading, t *turn, all []session.Compaction, over *overlayInput) error {
	if r.numbers.Off {
		return session.Errorf(session.CompactionRequired, "the context of session %s is too large for the model and automatic compaction is off: compact it, or turn that on", r.sess.ID)
	}
	report, err := m.store.LastReport(ctx, r.sess)
	if err != nil {
		return err
	}
	inARow := 0
	if report == nil { // a good call since the last activation ends the row
		inARow = overflows(all, r.overlay, r.sess.ID)
	}
	if inARow >= overflowsInARow {
		return doesNotFit(r.sess.ID, &t.draft, over.before, r.numbers.Limit, float64(over.before)/float64(max(1, t.tokens.Estimate)))
	}
	if over.keep == nil {
		keep := min(r.numbers.KeepTokens, t.draft.Total-t.draft.Fixed)
		keep = overflowKeep(keep, inARow+1)
		over.keep = &keep
	}
	return nil
}

// overflows counts the overlays that overflows made, from the effective one back, and the
// overflows since for which there was nothing left to hide.
func overflows(all []session.Compaction, effective *session.Compaction, own session.ID) int {
	n := 0
	for i := range all {
		if c := &all[i]; c.Trigger == session.TriggerOverflow && c.Status == session.StatusSkipped && c.SessionID == own && follows(c, effective) {
			n++
		}
	}
	for c := effective; c != nil && c.Trigger == session.TriggerOverflow; n++ {
		i := slices.IndexFunc(all, func(p session.Compaction) bool { return c.PreviousID != nil && p.RowID == *c.PreviousID })
		if i < 0 {
			return n + 1
		}
		c = &all[i]
	}
	return n
}

func (m *Manager) preview(r *reading, made madeOverlay) Preview {
	c, p := &made.record, &made.plan
	out := Preview{
		Strategy: c.Strategy, NoGain: p.NoGain, TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter,
		Hidden: p.Hidden, HiddenTokens: p.HiddenTokens, KeptTokens: p.KeptTokens, Through: c.Through, FirstKept: c.FirstKept,
	}
	for i := min(p.First, len(r.path)); i < len(r.path); i++ {
		if r.path[i].InContext {
			out.Kept++
		}
	}
	if p.Split() {
		out.TurnStart = &r.path[p.TurnStart].ID
	}
	if p.NoGain != "" {
		out.TokensAfter = c.TokensBefore
		return out
	}
	if m.cfg.Remote != nil && m.cfg.Cost != nil && c.Strategy == session.StrategySummarize {
		if out.CostNanoUSD = m.cfg.Cost(p.HiddenTokens, r.numbers.SummaryMax); out.CostNanoUSD != nil {
			usd := float64(*out.CostNanoUSD) / 1e9
			out.CostUSD = &usd
		}
	}
	return out
}

// Undo takes the effective overlay out of force. The context is then byte for byte what the
// path gives without it. Codes: NotFound, Conflict (it is not the effective one, which the
// error names), DoesNotFit (the context would pass its limit without it). It must fit a window
// of so many tokens; 0: the one that the session has.
func (m *Manager) Undo(ctx context.Context, id session.ID, compaction, window int64) (session.Session, error) {
	release := m.turns.lock(id)
	defer release()
	budget := m.asked.like(id, Budget{Window: window})
	r, err := m.read(ctx, id, budget)
	if err != nil {
		return session.Session{}, err
	}
	if r.overlay != nil && r.overlay.RowID == compaction {
		if err := m.fitsWithout(ctx, r, budget); err != nil {
			return session.Session{}, err
		}
	}
	return m.store.UndoCompaction(ctx, id, compaction)
}

// fitsWithout tells whether the context fits once the effective overlay is undone.
func (m *Manager) fitsWithout(ctx context.Context, r *reading, b Budget) error {
	all, err := m.store.Compactions(ctx, r.sess.ID)
	if err != nil {
		return err
	}
	at := Position{HeadID: r.sess.HeadID}
	for _, c := range slices.Backward(all) {
		if c.Status != session.StatusDone || c.Undone || c.RowID == r.overlay.RowID || c.ThroughID == nil {
			continue
		}
		on, err := m.store.OnPath(ctx, *r.sess.HeadID, *c.ThroughID)
		if err != nil {
			return err
		}
		if on {
			at.CompactionID = &c.RowID
			break
		}
	}
	b.At = &at
	without, err := m.read(ctx, r.sess.ID, b)
	if err != nil {
		return err
	}
	d := without.assemble()
	if d.Total > r.numbers.Limit || without.cutOff {
		return fmt.Errorf("undo %s: %w; it stays in force, and nothing was changed: a window of %d tokens would hold all, name one with the undo",
			session.CompactionName(r.overlay.RowID), doesNotFit(r.sess.ID, &d, d.Total, r.numbers.Limit, 1), d.Total+r.numbers.Window-r.numbers.Limit)
	}
	return nil
}

// Redo takes an undo back, while the overlay that it was built on is in force. Codes:
// NotFound, Conflict.
func (m *Manager) Redo(ctx context.Context, id session.ID, compaction int64) (session.Session, error) {
	release := m.turns.lock(id)
	defer release()
	return m.store.RedoCompaction(ctx, id, compaction)
}

// CheckPin tells whether a message may be pinned: what no compaction can hide (system, tools,
// initial blocks, pins) must stay within a quarter of the threshold. Codes: NotFound,
// DoesNotFit.
func (m *Manager) CheckPin(ctx context.Context, id session.ID, ref session.MessageRef) error {
	msg, err := m.store.Message(ctx, ref)
	if err != nil {
		return err
	}
	r, err := m.read(ctx, id, m.asked.like(id, Budget{}))
	if err != nil {
		return err
	}
	sum := r.weigh.Message(&msg, false) + r.overhead + r.weigh.Text(r.system)
	for i := range r.pins {
		if r.pins[i].RowID != msg.RowID {
			sum += r.weigh.Message(&r.pins[i], false)
		}
	}
	if most := r.numbers.Threshold / 4; sum > most {
		return session.Errorf(session.DoesNotFit, "message %s cannot be pinned: with it, what no compaction may hide has %d tokens, and a quarter of the threshold is %d", ref, sum, most)
	}
	return nil
}

// Sources gives the messages that a compaction newly hid, oldest first: those between what
// the overlay before it kept and what it keeps, and the pieces that it hides in the middle.
// Codes: NotFound.
func (m *Manager) Sources(ctx context.Context, id session.ID, compaction int64) ([]session.Message, error) {
	c, err := m.store.Compaction(ctx, id, compaction)
	if err != nil {
		return nil, err
	}
	var previous session.Compaction
	if c.PreviousID != nil {
		if previous, err = m.store.Compaction(ctx, id, *c.PreviousID); err != nil {
			return nil, err
		}
	}
	through, err := m.lastHidden(ctx, &c)
	if err != nil {
		return nil, err
	}
	var msgs []session.Message
	if through > 0 {
		after, err := m.lastHidden(ctx, &previous)
		if err != nil {
			return nil, err
		}
		if msgs, err = m.store.Path(ctx, through, after); err != nil {
			return nil, err
		}
	}
	pieces := piecesOf(&c)
	for name := range piecesOf(&previous) {
		delete(pieces, name)
	}
	for name := range pieces {
		ref, err := session.ParseRef(name)
		if err != nil {
			continue // somebody wrote the record by hand
		}
		msg, err := m.store.Message(ctx, ref)
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, msg)
	}
	slices.SortStableFunc(msgs, func(a, b session.Message) int { return cmp.Compare(a.RowID, b.RowID) })
	return slices.CompactFunc(msgs, func(a, b session.Message) bool { return a.RowID == b.RowID }), nil
}

// piecesOf names the messages of which an overlay hides something in the middle of what it
// keeps: outputs of tools, and what a text stands for.
func piecesOf(c *session.Compaction) map[string]bool {
	names := map[string]bool{}
	var details session.CompactionDetails
	if !decode(c.Details, &details) {
		return names
	}
	for _, output := range details.Pruned {
		name, _, _ := strings.Cut(output, "/")
		names[name] = true
	}
	for _, piece := range details.Replaced {
		for _, name := range piece.Messages {
			names[name] = true
		}
	}
	return names
}

// lastHidden gives the row of the last message that an overlay hides, 0 for none.
func (m *Manager) lastHidden(ctx context.Context, c *session.Compaction) (int64, error) {
	if c.FirstKeptID != nil {
		kept, err := m.store.MessageByID(ctx, *c.FirstKeptID)
		if err != nil || kept.ParentID == nil {
			return 0, err
		}
		return *kept.ParentID, nil
	}
	if c.ThroughID != nil {
		return *c.ThroughID, nil
	}
	return 0, nil
}
