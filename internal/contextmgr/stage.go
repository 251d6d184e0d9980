package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sessiond/internal/session"
)

// idleMinutes is how long a session is quiet before a staged overlay may take effect
// between turns: provider caches are cold then.
const idleMinutes = 5

// StageDigest makes a digest ready unless something stands ready. due tells that a model's
// summary of the same messages is to be made beside it. Codes as Assemble.
func (m *Manager) StageDigest(ctx context.Context, id session.ID) (due bool, err error) {
	release := m.turns.lock(id)
	defer release()
	s, err := m.readToStage(ctx, id)
	if err != nil || s == nil {
		return false, err
	}
	if err := m.retire(ctx, s.r, s.all); err != nil {
		return false, err
	}
	if s.ready == nil {
		made, pruned := m.prune(s.r, s.over)
		if !pruned {
			if made, err = m.makeOverlay(ctx, s.r, s.over); err != nil || made.plan.NoGain != "" {
				return false, err
			}
		}
		made.record.Status = session.StatusStaged
		c, err := m.store.AddCompaction(ctx, made.record)
		if err != nil {
			return false, fmt.Errorf("stage a digest: %w", err)
		}
		s.ready = &c
	}
	return m.modelIsDue(s), nil
}

// StageModel asks the model for a summary of what the staged digest tells of, if that is due. It
// waits for it with no lock held and no transaction open, so turns go on. A record of the attempt
// stands from the beginning, so that one that was broken off can be seen, and cancelled. Codes as
// Assemble.
func (m *Manager) StageModel(ctx context.Context, id session.ID) error {
	s, running, err := m.beginStaged(ctx, id)
	if err != nil || s == nil {
		return err
	}
	asked, end := m.flights.enter(ctx, running)
	defer end(outcome{})
	s.over.summarizer, s.over.serve, s.over.like = m.cfg.Remote, false, s.ready
	made, err := m.makeOverlay(asked, s.r, s.over)
	return m.settleStaged(asked, m.flights.at(running).record, made, err)
}

// beginStaged records that a model is about to be asked; s is nil where that is not due.
func (m *Manager) beginStaged(ctx context.Context, id session.ID) (*staging, *flight, error) {
	release := m.turns.lock(id)
	defer release()
	s, err := m.readToStage(ctx, id)
	if err != nil || s == nil || s.ready == nil || !m.modelIsDue(s) {
		return nil, nil, err
	}
	c := session.Compaction{
		SessionID: id, PreviousID: s.ready.PreviousID, Strategy: s.over.strategy, Trigger: s.over.trigger, Status: session.StatusRunning,
		ThroughID: s.ready.ThroughID, FirstKeptID: s.ready.FirstKeptID, TokensBefore: s.over.before,
	}
	if c, err = m.store.AddCompaction(ctx, c); err != nil {
		return nil, nil, fmt.Errorf("begin a staged summary: %w", err)
	}
	return s, m.flights.stage(c), nil
}

// settleStaged gives a running record its outcome.
func (m *Manager) settleStaged(ctx context.Context, running session.Compaction, made madeOverlay, failed error) error {
	keep := context.WithoutCancel(ctx) // what was paid for is recorded, whoever went away
	if err := m.ledger(keep, running, made.calls); err != nil {
		return err
	}
	c := made.record
	c.RowID, c.PreviousID, c.CreatedAt = running.RowID, running.PreviousID, running.CreatedAt
	if failed != nil && ctx.Err() != nil {
		running.SpanSummary = c.SpanSummary
		if err := m.breakOff(ctx, running); session.CodeOf(err) != session.Conflict {
			return err
		}
		return nil
	}
	switch c.Status = session.StatusStaged; {
	case failed != nil:
		c.Status, c.Reason = session.StatusFailed, joinReasons(failed.Error(), c.Reason)
	case made.plan.NoGain != "":
		c.Status, c.Reason = session.StatusSkipped, made.plan.NoGain
	default:
		if err := m.followDigest(keep, &c); err != nil {
			return err
		}
	}
	if _, err := m.store.FinishCompaction(keep, c); err != nil && session.CodeOf(err) != session.Conflict { // cancelled meanwhile
		return fmt.Errorf("finish a staged summary: %w", err)
	}
	return failed
}

// staging is what is known of a session for which something is made ready.
type staging struct {
	r     *reading
	over  overlayInput
	all   []session.Compaction
	ready *session.Compaction // what would be activated; nil: nothing
}

// readToStage reads a session; nil where nothing is to be made ready.
func (m *Manager) readToStage(ctx context.Context, id session.ID) (*staging, error) {
	r, err := m.read(ctx, id, m.asked.like(id, Budget{}))
	if err != nil {
		return nil, err
	}
	t := turn{m: m, r: r}
	if err := t.assemble(ctx); err != nil {
		return nil, err
	}
	n := r.numbers
	if n.Off || n.Strategy != session.StrategySummarize || t.tokens.Upper() <= n.Soft {
		return nil, nil
	}
	s := &staging{r: r, over: overlayInput{
		strategy: n.Strategy, trigger: session.TriggerThreshold, summarizer: m.cfg.Digest, serve: true,
		fixed: t.draft.Fixed, before: t.tokens.Total,
	}}
	if s.all, err = m.store.Compactions(ctx, id); err != nil {
		return nil, err
	}
	if i := BestStaged(s.all, r.overlay, r.holds); i >= 0 {
		s.ready = &s.all[i]
	}
	return s, nil
}

// modelIsDue tells whether the model is to be asked: a digest stands ready that it could better,
// it is not being asked, and if it failed since the effective overlay the path has grown by 5 %
// of the window since. What was broken off says nothing against it.
func (m *Manager) modelIsDue(s *staging) bool {
	if m.cfg.Remote == nil || byModel(s.ready) || s.ready.Strategy == session.StrategyPrune || m.flights.flying(s.r.sess.ID) {
		return false
	}
	for i := range slices.Backward(s.all) {
		c := &s.all[i]
		tried := c.Status == session.StatusFailed && c.Reason != session.ReasonBrokenOff || c.Status == session.StatusSkipped && byModel(c)
		if tried && c.SessionID == s.r.sess.ID && c.Trigger == session.TriggerThreshold && follows(c, s.r.overlay) {
			return s.over.before >= c.TokensBefore+s.r.numbers.Window/20
		}
	}
	return true
}

// retire closes staged records that can no longer take effect, since another overlay did.
func (m *Manager) retire(ctx context.Context, r *reading, all []session.Compaction) error {
	for _, c := range all {
		if c.Status != session.StatusStaged || c.SessionID != r.sess.ID || follows(&c, r.overlay) {
			continue
		}
		c.Status, c.Reason = session.StatusSkipped, "another overlay took effect first"
		if _, err := m.store.FinishCompaction(ctx, c); err != nil {
			return fmt.Errorf("retire %s: %w", session.CompactionName(c.RowID), err)
		}
	}
	return nil
}

// followDigest stages a model's summary that came after its digest took effect on top of the
// digest, to replace it in an idle moment or to feed the next compaction.
func (m *Manager) followDigest(ctx context.Context, c *session.Compaction) error {
	digest, err := m.lateFor(ctx, c)
	if err != nil || digest == nil {
		return err
	}
	c.PreviousID, c.MessageCount = &digest.RowID, 0
	c.Reason = joinReasons(c.Reason, "it came after "+session.CompactionName(digest.RowID)+" had taken effect for the same messages")
	return nil
}

// lateFor gives the digest that took effect while the model was at work on the same span.
func (m *Manager) lateFor(ctx context.Context, c *session.Compaction) (*session.Compaction, error) {
	sess, err := m.store.Session(ctx, c.SessionID)
	if err != nil {
		return nil, err
	}
	effective, err := m.store.Effective(ctx, sess)
	if err != nil || effective == nil || c.PreviousID != nil && effective.RowID == *c.PreviousID {
		return nil, err
	}
	if effective.ThroughID == nil || c.ThroughID == nil || *effective.ThroughID != *c.ThroughID {
		return nil, nil
	}
	return effective, nil
}

// ActivateIdle puts a staged overlay in force if the session has been quiet for five minutes
// and is above its soft threshold, or if a model's summary waits to replace a digest. It
// tells whether it did; waits tells that it is not quiet yet, or that a memory flush comes
// first: ask again in a while.
// Codes as Assemble.
func (m *Manager) ActivateIdle(ctx context.Context, id session.ID) (done, waits bool, err error) {
	release := m.turns.lock(id)
	defer release()
	r, err := m.read(ctx, id, m.asked.like(id, Budget{}))
	if err != nil || len(r.path) == 0 {
		return false, false, err
	}
	quiet := m.cfg.Now().Sub(r.path[len(r.path)-1].CreatedAt.Time)
	if r.last != nil {
		quiet = min(quiet, m.cfg.Now().Sub(r.last.CreatedAt.Time))
	}
	if r.numbers.Off {
		return false, false, nil
	}
	if quiet < idleMinutes*time.Minute {
		return false, true, nil
	}
	all, err := m.store.Compactions(ctx, id)
	if err != nil {
		return false, false, err
	}
	i := BestStaged(all, r.overlay, r.holds)
	if i >= 0 {
		t := turn{m: m, r: r}
		if err := t.assemble(ctx); err != nil {
			return false, false, err
		}
		if t.tokens.Upper() <= r.numbers.Soft {
			i = -1
		}
	}
	if i < 0 {
		if i = lateStaged(all, r.overlay); i < 0 {
			return false, false, nil
		}
	}
	if waits, err := m.flushFirst(ctx, r); err != nil || waits {
		return false, waits, err
	}
	if _, err := m.store.Activate(ctx, id, all[i].RowID); err != nil {
		return false, false, fmt.Errorf("activate %s: %w", session.CompactionName(all[i].RowID), err)
	}
	return true, false, nil
}
