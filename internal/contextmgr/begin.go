package contextmgr

import (
	"context"
	"errors"
	"fmt"

	"sessiond/internal/session"
)

// Begun is a compaction that was asked for: recorded already, or waiting for Finish.
type Begun struct {
	Record  session.Compaction // as it stands; of a dry run the one that would be made
	Preview Preview

	m      *Manager
	flight *flight // nil: nothing waits to be done
	leads  bool    // this one does the work, the others of the flight wait for it
	r      *reading
	over   overlayInput
	made   madeOverlay // without the model
}

// Compact makes room now, with a digest or the caller's summary, or with the model's where
// in.Model says so. Where nothing is to be gained the record says skipped, and why. Who asks for
// what somebody else is being served gets the same record. A dry run answers what would be done.
// Codes: NotFound, Invalid, Conflict (it was cancelled), DoesNotFit (overflows in a row, with the
// items that are too large), CompactionRequired (an overflow while automatic compaction is off).
func (m *Manager) Compact(ctx context.Context, id session.ID, in CompactInput) (session.Compaction, Preview, error) {
	for {
		b, err := m.Begin(ctx, id, in)
		if err != nil {
			return session.Compaction{}, Preview{}, err
		}
		c, err := b.Finish(ctx)
		if err != nil && !b.leads && ctx.Err() == nil && isGivenUp(err) {
			continue // who asked first went away
		}
		return c, b.Preview, err
	}
}

// Begin plans a compaction and records it. One that needs no model is done with that; of another
// the record says running until Finish. Codes as Compact.
func (m *Manager) Begin(ctx context.Context, id session.ID, in CompactInput) (*Begun, error) {
	if in.DryRun {
		return m.begin(ctx, id, in)
	}
	for {
		f, leads := m.flights.join(id, in)
		if leads {
			return m.lead(ctx, f, in)
		}
		b, err := m.follow(ctx, f, in.Idem)
		if err != nil && ctx.Err() == nil && isGivenUp(err) {
			continue
		}
		return b, err
	}
}

func isGivenUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lead begins what others may ask for at the same time.
func (m *Manager) lead(ctx context.Context, f *flight, in CompactInput) (b *Begun, err error) {
	out := outcome{err: session.Errorf(session.Internal, "the compaction was not begun")}
	defer func() {
		if b == nil || b.flight == nil { // nothing waits to be done, or it panicked
			m.flights.land(f, out)
		}
	}()
	b, err = m.begin(ctx, f.session, in)
	for again := 0; session.CodeOf(err) == session.Conflict && again < 3; again++ {
		b, err = m.begin(ctx, f.session, in) // another process changed the overlays meanwhile
	}
	if err != nil {
		out.err = err
		return nil, err
	}
	if b.Record.Status == session.StatusRunning {
		b.flight, b.leads = f, true
		m.flights.took(f, b.Record, b.Preview)
	}
	out = outcome{record: b.Record, preview: b.Preview}
	return b, nil
}

// follow waits until the record of a flight stands.
func (m *Manager) follow(ctx context.Context, f *flight, idem *session.Idempotency) (*Begun, error) {
	select {
	case <-f.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := m.flights.at(f)
	if out.err != nil {
		return nil, out.err
	}
	if idem != nil {
		if err := m.store.AnswerCompaction(ctx, idem, out.record); err != nil {
			return nil, fmt.Errorf("remember the answer: %w", err)
		}
	}
	return &Begun{Record: out.record, Preview: out.preview, m: m, flight: f}, nil
}

// begin plans, makes what needs no model and records it.
func (m *Manager) begin(ctx context.Context, id session.ID, in CompactInput) (*Begun, error) {
	release := m.turns.lock(id)
	defer release()
	r, over, err := m.prepareCompact(ctx, id, &in)
	if err != nil {
		return nil, err
	}
	b := &Begun{m: m, r: r, over: over}
	if over.strategy == session.StrategyPrune {
		b.made, _ = m.prune(r, over)
	} else if b.made, err = m.makeOverlay(ctx, r, over); err != nil {
		return nil, err
	}
	b.Record, b.Preview = b.made.record, m.preview(r, b.made)
	if in.DryRun {
		return b, nil
	}
	c := b.made.outcome()
	if in.Model && c.Status == session.StatusDone {
		c = session.Compaction{
			SessionID: c.SessionID, PreviousID: c.PreviousID, Strategy: c.Strategy, Trigger: c.Trigger, Status: session.StatusRunning,
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

// outcome is the record as it is to be stored: done, or skipped where nothing is gained.
func (made *madeOverlay) outcome() session.Compaction {
	c := made.record
	if c.Status = session.StatusDone; made.plan.NoGain == "" {
		return c
	}
	return session.Compaction{
		SessionID: c.SessionID, PreviousID: c.PreviousID, Strategy: c.Strategy, Trigger: c.Trigger,
		Status: session.StatusSkipped, Reason: made.plan.NoGain, TokensBefore: c.TokensBefore, TokensAfter: c.TokensBefore,
	}
}

// Finish asks the model for what Begin left running, with no lock held, and gives the record its
// outcome. When ctx is done first the record says that it was broken off. Codes: Conflict (it was
// cancelled).
func (b *Begun) Finish(ctx context.Context) (session.Compaction, error) {
	if b.flight == nil {
		return b.Record, nil
	}
	if !b.leads {
		select {
		case <-b.flight.done:
			out := b.m.flights.at(b.flight)
			return out.record, out.err
		case <-ctx.Done():
			return b.Record, ctx.Err()
		}
	}
	asked, end := b.m.flights.enter(ctx, b.flight)
	made, err := b.made, error(nil)
	if b.m.cfg.Remote != nil && b.over.strategy == session.StrategySummarize && b.over.summary == "" {
		remote := b.over
		remote.summarizer, remote.serve = b.m.cfg.Remote, false
		made, err = b.m.makeOverlay(asked, b.r, remote)
	}
	c, err := b.settle(asked, made, err)
	end(outcome{record: c, preview: b.Preview, err: err})
	return c, err
}

// GiveUp ends what Begin left running and nobody is to finish.
func (b *Begun) GiveUp(ctx context.Context, reason string) error {
	if b.flight == nil || !b.leads {
		return nil
	}
	c := b.Record
	c.Status, c.Reason = session.StatusFailed, reason
	c, err := b.m.store.FinishCompaction(ctx, c)
	b.m.flights.land(b.flight, outcome{record: c, preview: b.Preview, err: err})
	return err
}

// settle gives the record its outcome: what the model made, else what was made without it.
func (b *Begun) settle(ctx context.Context, made madeOverlay, failed error) (session.Compaction, error) {
	keep := context.WithoutCancel(ctx) // what was paid for is recorded, whoever went away
	if err := b.m.ledger(keep, b.Record, made.calls); err != nil {
		return b.Record, err
	}
	release := b.m.turns.lock(b.Record.SessionID)
	defer release()
	if failed != nil && ctx.Err() != nil {
		c := b.Record
		c.SpanSummary = made.record.SpanSummary
		return c, b.m.breakOff(ctx, c)
	}
	if failed == nil && made.plan.NoGain != "" && b.made.plan.NoGain == "" {
		failed = errors.New(made.plan.NoGain)
	}
	if failed != nil {
		made = b.made
		made.record.Reason = joinReasons("made without the model: "+failed.Error(), made.record.Reason)
	}
	c := made.outcome()
	c.RowID, c.CreatedAt = b.Record.RowID, b.Record.CreatedAt
	c.DurationMS = b.m.cfg.Now().Sub(b.Record.CreatedAt.Time).Milliseconds()
	done, err := b.m.store.FinishCompaction(keep, c)
	if session.CodeOf(err) == session.Conflict {
		done, err = b.m.finishLate(keep, c)
	}
	if err != nil {
		return done, fmt.Errorf("finish the compaction: %w", err)
	}
	b.Preview.TokensAfter = done.TokensAfter
	return done, nil
}

// joinReasons puts two things to be said of a record behind one another.
func joinReasons(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// ledger records the calls that were made for a record.
func (m *Manager) ledger(ctx context.Context, c session.Compaction, calls []session.Call) error {
	for _, call := range calls {
		call.SessionID, call.CompactionID = c.SessionID, &c.RowID
		if _, err := m.store.AddCall(ctx, call); err != nil {
			return fmt.Errorf("record a summary's call: %w", err)
		}
	}
	return nil
}

// breakOff fails the record of a compaction whose asking ended before its answer.
func (m *Manager) breakOff(ctx context.Context, c session.Compaction) error {
	if errors.Is(context.Cause(ctx), errCancelled) { // its record says so already
		return session.Errorf(session.Conflict, "compaction %s was cancelled", session.CompactionName(c.RowID))
	}
	c.Status, c.Reason = session.StatusFailed, session.ReasonBrokenOff
	_, err := m.store.FinishCompaction(context.WithoutCancel(ctx), c)
	if err != nil && session.CodeOf(err) != session.Conflict {
		return fmt.Errorf("finish what was broken off: %w", err)
	}
	return ctx.Err()
}

// finishLate ends a compaction under which something changed: it was cancelled, its record was
// failed by a daemon that began meanwhile, or another overlay took effect. One of the same span
// it replaces, since it was asked for; one of another span made the room, so nothing is done.
func (m *Manager) finishLate(ctx context.Context, c session.Compaction) (session.Compaction, error) {
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
	late, err := m.lateFor(ctx, &c)
	if err != nil {
		return c, err
	}
	if late != nil && c.Status == session.StatusDone {
		c.PreviousID, c.MessageCount = &late.RowID, 0
		return m.store.FinishCompaction(ctx, c)
	}
	c.Status, c.Reason = session.StatusSkipped, "another compaction took effect meanwhile, or the head moved"
	return m.store.FinishCompaction(ctx, c)
}
