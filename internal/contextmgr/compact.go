package contextmgr

import (
	"context"
	"errors"
	"fmt"

	"sessiond/internal/session"
)

// CompactInput asks for a compaction.
type CompactInput struct {
	Budget
	Strategy     session.Strategy // "": as the settings say; ask counts as summarize
	Trigger      session.Trigger  // manual or overflow; "": manual
	Instructions string
	Summary      string               // the caller's own, instead of a digest
	KeepTokens   *int64               // to keep verbatim at least, instead of the settings'
	Model        bool                 // ask the remote summarizer, if there is one; if it fails, the digest serves
	DryRun       bool                 // return the plan, write nothing
	Idem         *session.Idempotency // of the request; nil: none

	ReportedTokens int64 // of an overflow: the provider's count; 0: unknown
	ReportedWindow int64 // of an overflow: the model's true window; 0: unknown
}

// Preview says what a compaction hides and keeps.
type Preview struct {
	Strategy     session.Strategy    `json:"strategy"`
	Through      *session.MessageRef `json:"through,omitempty"`
	FirstKept    *session.MessageRef `json:"first_kept,omitempty"`
	TurnStart    *session.MessageRef `json:"turn_start,omitempty" doc:"Of a split turn: its first message, which contexts show again"`
	Hidden       int                 `json:"hidden_messages" doc:"Number of messages to hide"`
	HiddenTokens int64               `json:"hidden_tokens" doc:"Size of the messages to hide, in tokens of the model"`
	Kept         int                 `json:"kept_messages" doc:"Number of messages to keep"`
	KeptTokens   int64               `json:"kept_tokens" doc:"Size of the kept messages, in tokens of the model"`
	TokensBefore int64               `json:"tokens_before" doc:"Size of the context before it, in tokens of the model"`
	TokensAfter  int64               `json:"tokens_after" doc:"Size of the context after it, in tokens of the model"`
	CostNanoUSD  *int64              `json:"-"` // of a model's summary; nil: unknown
	CostUSD      *float64            `json:"cost_usd" doc:"Estimated cost of a model's summary, in US dollars; null: unknown"`
	NoGain       string              `json:"no_gain,omitempty" doc:"Why there is nothing to compact"`
}

// Begun is a compaction that has a record: finished, or running until Finish.
type Begun struct {
	Record  session.Compaction // of a dry run: the one that would be made
	Preview Preview

	m     *Manager
	run   *run // nil: it is finished
	leads bool // this caller does the work of the run, the others wait
	s     *snapshot
	in    overlayInput
	made  madeOverlay // without the model
}

// Compact compacts now, with a digest or the caller's summary, or with the model's if in.Model is
// set. If nothing is gained, the record is skipped and says why. Callers that ask for the same at
// the same time get the same record. A dry run returns the plan. Codes: NotFound, Invalid, Conflict
// (it was cancelled), DoesNotFit (too many overflows in a row; names the largest items),
// CompactionRequired (an overflow while automatic compaction is off).
func (m *Manager) Compact(ctx context.Context, id session.ID, in CompactInput) (session.Compaction, Preview, error) {
	for {
		b, err := m.Begin(ctx, id, in)
		if err != nil {
			return session.Compaction{}, Preview{}, err
		}
		c, err := b.Finish(ctx)
		if err != nil && !b.leads && ctx.Err() == nil && isContextError(err) {
			continue // the leading caller went away
		}
		return c, b.Preview, err
	}
}

// Begin plans a compaction and records it. If it needs no model, the record is final, else it is
// running until Finish. Codes as Compact.
func (m *Manager) Begin(ctx context.Context, id session.ID, in CompactInput) (*Begun, error) {
	if in.DryRun {
		return m.begin(ctx, id, in)
	}
	for {
		r, leads := m.running.join(id, in)
		if leads {
			return m.lead(ctx, r, in)
		}
		b, err := m.follow(ctx, r, in.Idem)
		if err != nil && ctx.Err() == nil && isContextError(err) {
			continue
		}
		return b, err
	}
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lead begins a run that other callers may join.
func (m *Manager) lead(ctx context.Context, r *run, in CompactInput) (b *Begun, err error) {
	out := outcome{err: session.Errorf(session.Internal, "the compaction was not begun")}
	defer func() {
		if b == nil || b.run == nil { // finished, failed, or panicked
			m.running.end(r, out)
		}
	}()
	b, err = m.begin(ctx, r.session, in)
	for retries := 0; session.CodeOf(err) == session.Conflict && retries < 3; retries++ {
		b, err = m.begin(ctx, r.session, in) // another process changed the overlays
	}
	if err != nil {
		out.err = err
		return nil, err
	}
	if b.Record.Status == session.StatusRunning {
		b.run, b.leads = r, true
		m.running.begin(r, b.Record, b.Preview)
	}
	out = outcome{record: b.Record, preview: b.Preview}
	return b, nil
}

// follow waits until another caller's run has a record.
func (m *Manager) follow(ctx context.Context, r *run, idem *session.Idempotency) (*Begun, error) {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := m.running.outcomeOf(r)
	if out.err != nil {
		return nil, out.err
	}
	if idem != nil {
		if err := m.store.AnswerCompaction(ctx, idem, out.record); err != nil {
			return nil, fmt.Errorf("remember the answer: %w", err)
		}
	}
	return &Begun{Record: out.record, Preview: out.preview, m: m, run: r}, nil
}

// begin plans a compaction, makes the overlay without a model, and records it.
func (m *Manager) begin(ctx context.Context, id session.ID, in CompactInput) (*Begun, error) {
	defer m.lock(id)()
	s, over, err := m.readToCompact(ctx, id, &in)
	if err != nil {
		return nil, err
	}
	b := &Begun{m: m, s: s, in: over}
	if over.strategy == session.StrategyPrune {
		b.made, _ = s.planPrune(over)
	} else if b.made, err = m.makeOverlay(ctx, s, over); err != nil {
		return nil, err
	}
	b.Record, b.Preview = b.made.record, m.preview(s, &b.made)
	if in.DryRun {
		return b, nil
	}
	c := b.made.result()
	if in.Model && c.Status == session.StatusDone {
		c = session.Compaction{
			SessionID: c.SessionID, PreviousID: c.PreviousID, Strategy: c.Strategy, Trigger: c.Trigger,
			Status:    session.StatusRunning,
			ThroughID: c.ThroughID, FirstKeptID: c.FirstKeptID, TokensBefore: c.TokensBefore, MessageCount: c.MessageCount,
		}
	}
	c.Idem = in.Idem
	if b.Record, err = m.store.AddCompaction(ctx, c); err != nil {
		return nil, fmt.Errorf("record the compaction: %w", err)
	}
	if in.ReportedWindow > 0 && m.cfg.SetWindow != nil {
		if err := m.cfg.SetWindow(ctx, id, in.ReportedWindow); err != nil {
			return nil, fmt.Errorf("correct the window: %w", err)
		}
	}
	return b, nil
}

// result returns the record to store: done, or skipped if nothing is gained.
func (made *madeOverlay) result() session.Compaction {
	c := made.record
	if c.Status = session.StatusDone; made.plan.NoGain == "" {
		return c
	}
	return session.Compaction{
		SessionID: c.SessionID, PreviousID: c.PreviousID, Strategy: c.Strategy, Trigger: c.Trigger,
		Status: session.StatusSkipped, Reason: made.plan.NoGain, TokensBefore: c.TokensBefore, TokensAfter: c.TokensBefore,
	}
}

// Finish asks the model for what Begin left running, without a lock, and finishes the record. If
// ctx ends first, the record says that it was interrupted. Codes: Conflict (it was cancelled).
func (b *Begun) Finish(ctx context.Context) (session.Compaction, error) {
	if b.run == nil {
		return b.Record, nil
	}
	if !b.leads {
		select {
		case <-b.run.done:
			out := b.m.running.outcomeOf(b.run)
			return out.record, out.err
		case <-ctx.Done():
			return b.Record, ctx.Err()
		}
	}
	ctx, stop := b.run.withCancel(ctx)
	defer stop()
	made, err := b.made, error(nil)
	remote := b.m.remote(&b.s.numbers)
	if remote.Summarizer != nil && b.in.strategy == session.StrategySummarize && b.in.summary == "" {
		in := b.in
		in.summarizer, in.mustSucceed = remote, false
		made, err = b.m.makeOverlay(ctx, b.s, in)
	}
	c, err := b.settle(ctx, made, err)
	b.m.running.end(b.run, outcome{record: c, preview: b.Preview, err: err})
	return c, err
}

// GiveUp fails the running record of Begin if Finish will not be called.
func (b *Begun) GiveUp(ctx context.Context, reason string) error {
	if b.run == nil || !b.leads {
		return nil
	}
	c := b.Record
	c.Status, c.Reason = session.StatusFailed, reason
	c, err := b.m.store.FinishCompaction(ctx, c)
	b.m.running.end(b.run, outcome{record: c, preview: b.Preview, err: err})
	return err
}

// settle finishes the running record with the model's overlay, or with the digest's if the model
// failed.
func (b *Begun) settle(ctx context.Context, made madeOverlay, failed error) (session.Compaction, error) {
	keep := context.WithoutCancel(ctx) // paid calls are recorded even if the caller went away
	if err := b.m.recordCalls(keep, b.Record, made.calls); err != nil {
		return b.Record, err
	}
	defer b.m.lock(b.Record.SessionID)()
	if failed != nil && ctx.Err() != nil {
		c := b.Record
		c.SpanSummary = made.record.SpanSummary
		return c, b.m.recordInterrupted(ctx, c)
	}
	if failed == nil && made.plan.NoGain != "" && b.made.plan.NoGain == "" {
		failed = errors.New(made.plan.NoGain)
	}
	if failed != nil {
		made = b.made
		made.record.Reason = joinReasons("made without the model: "+failed.Error(), made.record.Reason)
	}
	c := made.result()
	c.RowID, c.CreatedAt = b.Record.RowID, b.Record.CreatedAt
	c.DurationMS = b.m.cfg.Now().Sub(b.Record.CreatedAt.Time).Milliseconds()
	done, err := b.m.store.FinishCompaction(keep, c)
	if session.CodeOf(err) == session.Conflict {
		done, err = b.m.finishAfterConflict(keep, c)
	}
	if err != nil {
		return done, fmt.Errorf("finish the compaction: %w", err)
	}
	b.Preview.TokensAfter = done.TokensAfter
	return done, nil
}

// recordCalls adds a compaction's model calls to the ledger.
func (m *Manager) recordCalls(ctx context.Context, c session.Compaction, calls []session.Call) error {
	for _, call := range calls {
		call.SessionID, call.CompactionID = c.SessionID, &c.RowID
		if _, err := m.store.AddCall(ctx, call); err != nil {
			return fmt.Errorf("record a summary's call: %w", err)
		}
	}
	return nil
}

// recordInterrupted fails the record of a compaction whose context ended.
func (m *Manager) recordInterrupted(ctx context.Context, c session.Compaction) error {
	if errors.Is(context.Cause(ctx), errCancelled) { // Cancel finished the record
		return session.Errorf(session.Conflict, "compaction %s was cancelled", session.CompactionName(c.RowID))
	}
	c.Status, c.Reason = session.StatusFailed, session.ReasonBrokenOff
	_, err := m.store.FinishCompaction(context.WithoutCancel(ctx), c)
	if err != nil && session.CodeOf(err) != session.Conflict {
		return fmt.Errorf("finish an interrupted compaction: %w", err)
	}
	return ctx.Err()
}

// finishAfterConflict finishes a compaction under which something changed: it was cancelled, a
// starting daemon failed its record, or another overlay took effect. It replaces one of the same
// span, and is skipped after one of another span.
func (m *Manager) finishAfterConflict(ctx context.Context, c session.Compaction) (session.Compaction, error) {
	now, err := m.store.Compaction(ctx, c.SessionID, c.RowID)
	if err != nil {
		return c, err
	}
	switch {
	case now.Status != session.StatusRunning && now.Reason == session.ReasonCancelled:
		return now, session.Errorf(session.Conflict, "compaction %s was cancelled", now.ID)
	case now.Status != session.StatusRunning:
		c.RowID = 0
		return m.store.AddCompaction(ctx, c)
	}
	other, err := m.newOverlayOfSpan(ctx, &c)
	if err != nil {
		return c, err
	}
	if other != nil && c.Status == session.StatusDone {
		c.PreviousID, c.MessageCount = &other.RowID, 0
		return m.store.FinishCompaction(ctx, c)
	}
	c.Status, c.Reason = session.StatusSkipped, "another compaction took effect first, or the head moved"
	return m.store.FinishCompaction(ctx, c)
}

// readToCompact validates a request and reads what it compacts. It sets the defaults of in.
func (m *Manager) readToCompact(ctx context.Context, id session.ID, in *CompactInput) (*snapshot, overlayInput, error) {
	if in.Trigger == "" {
		in.Trigger = session.TriggerManual
	}
	if in.Trigger != session.TriggerManual && in.Trigger != session.TriggerOverflow {
		return nil, overlayInput{}, session.Errorf(session.Invalid, "trigger %q is not one of manual, overflow",
			in.Trigger).At("trigger", "manual or overflow")
	}
	if in.Strategy != "" {
		if err := checkStrategy(in.Strategy, session.StrategySummarize, session.StrategyPrune, session.StrategyTruncate,
			session.StrategyClear); err != nil {
			return nil, overlayInput{}, session.Errorf(session.Invalid, "%w", err).At("strategy", "%s", err.Error())
		}
	}
	if in.ReportedTokens < 0 || in.ReportedWindow < 0 || in.KeepTokens != nil && *in.KeepTokens < 0 {
		return nil, overlayInput{}, session.Errorf(session.Invalid, "numbers of tokens must not be negative")
	}
	if in.ReportedWindow > 0 {
		in.Window = in.ReportedWindow
	}
	s, err := m.read(ctx, id, m.fillBudget(id, in.Budget))
	if err != nil {
		return nil, overlayInput{}, err
	}
	t := turn{m: m, s: s}
	if err := t.assemble(ctx); err != nil {
		return nil, overlayInput{}, err
	}
	over := overlayInput{
		strategy: in.Strategy, trigger: in.Trigger, summarizer: m.cfg.Digest, mustSucceed: true,
		instructions: in.Instructions, summary: in.Summary,
		keep: in.KeepTokens, fixed: t.draft.Fixed, before: max(t.tokens.Total, in.ReportedTokens),
		forced: in.Trigger == session.TriggerOverflow,
	}
	if over.strategy == "" {
		if over.strategy = s.numbers.Strategy; over.strategy == StrategyAsk {
			over.strategy = session.StrategySummarize
		}
	}
	if limit := s.scales.unscaled(s.numbers.Threshold / 2); over.summary != "" && m.countText(over.summary) > limit {
		return nil, over, session.Errorf(session.Invalid, "summary exceeds half the threshold of %d tokens: shorten it",
			s.numbers.Threshold).At("summary", "too long")
	}
	if in.Trigger == session.TriggerOverflow {
		err = m.prepareOverflow(ctx, &t, &over)
	}
	return s, over, err
}

// maxOverflows is how many overflows in a row are answered by keeping less.
const maxOverflows = 3

// prepareOverflow halves what is kept for each overflow in a row.
func (m *Manager) prepareOverflow(ctx context.Context, t *turn, over *overlayInput) error {
	s := t.s
	if s.numbers.Off {
		return session.Errorf(session.CompactionRequired,
			"the context of session %s is too large for the model, and automatic compaction is off: compact the session, "+
				"or turn automatic compaction on", s.sess.ID)
	}
	all, err := m.store.Compactions(ctx, s.sess.ID)
	if err != nil {
		return err
	}
	report, err := m.store.LastReport(ctx, s.sess)
	if err != nil {
		return err
	}
	inARow := 0
	if report == nil { // a good call since the last activation ends the row
		inARow = countOverflows(all, s.Overlay, s.sess.ID)
	}
	if inARow >= maxOverflows {
		return doesNotFit(s.sess.ID, &t.draft, over.before, s.numbers.Limit,
			float64(over.before)/float64(max(1, t.tokens.Estimate)))
	}
	if over.keep == nil {
		keep := min(s.numbers.KeepTokens, t.draft.Total-t.draft.Fixed) >> (inARow + 1)
		over.keep = &keep
	}
	return nil
}

// countOverflows counts the overlays that overflows made, back from the effective one, and later
// overflows that found nothing to hide.
func countOverflows(all []session.Compaction, effective *session.Compaction, own session.ID) int {
	n := 0
	for i := range all {
		if c := &all[i]; c.Trigger == session.TriggerOverflow && c.Status == session.StatusSkipped && c.SessionID == own &&
			follows(c, effective) {
			n++
		}
	}
	for c := effective; c != nil && c.Trigger == session.TriggerOverflow; n++ {
		if c.PreviousID == nil {
			return n + 1
		}
		c = compactionByRow(all, *c.PreviousID)
	}
	return n
}

func (m *Manager) preview(s *snapshot, made *madeOverlay) Preview {
	c, p := &made.record, &made.plan
	out := Preview{
		Strategy: c.Strategy, NoGain: p.NoGain, TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter,
		Hidden: p.Hidden, HiddenTokens: p.HiddenTokens, KeptTokens: p.KeptTokens, Through: c.Through, FirstKept: c.FirstKept,
	}
	for i := min(p.First, len(s.Messages)); i < len(s.Messages); i++ {
		if s.Messages[i].InContext {
			out.Kept++
		}
	}
	if p.Split() {
		out.TurnStart = &s.Messages[p.TurnStart].ID
	}
	if p.NoGain != "" {
		out.TokensAfter = c.TokensBefore
		return out
	}
	if cost := m.remote(&s.numbers).Cost; cost != nil && c.Strategy == session.StrategySummarize {
		if out.CostNanoUSD = cost(p.HiddenTokens, s.numbers.SummaryMax); out.CostNanoUSD != nil {
			usd := float64(*out.CostNanoUSD) / 1e9
			out.CostUSD = &usd
		}
	}
	return out
}
