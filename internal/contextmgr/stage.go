package contextmgr

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// idleMinutes is how long a session is quiet before a staged overlay may take effect
// between turns: provider caches are cold then.
const idleMinutes = 5

// Stage makes a summary ready for a session above its soft threshold: a digest at once, then
// a model's beside it if there is one. Neither takes effect by this. It waits for the model
// with no lock held and no transaction open, so turns go on. Codes as Assemble.
func (m *Manager) Stage(ctx context.Context, id session.ID) error {
	r, over, err := m.stageDigest(ctx, id)
	if err != nil || r == nil || m.cfg.Remote == nil {
		return err
	}
	return m.stageRemote(ctx, r, over)
}

// stageDigest stages a digest unless one stands ready. r is nil where there is nothing to do.
func (m *Manager) stageDigest(ctx context.Context, id session.ID) (*reading, overlayInput, error) {
	release := m.turns.lock(id)
	defer release()
	r, err := m.read(ctx, id, m.asked.like(id, Budget{}))
	if err != nil {
		return nil, overlayInput{}, err
	}
	t := turn{m: m, r: r}
	if err := t.assemble(ctx); err != nil {
		return nil, overlayInput{}, err
	}
	n := r.numbers
	if n.Off || n.Strategy != session.StrategySummarize || t.tokens.Upper() <= n.Soft {
		return nil, overlayInput{}, nil
	}
	all, err := m.store.Compactions(ctx, id)
	if err != nil {
		return nil, overlayInput{}, err
	}
	over := overlayInput{
		strategy: n.Strategy, trigger: session.TriggerThreshold, summarizer: m.cfg.Digest, serve: true,
		fixed: t.draft.Fixed, before: t.tokens.Total,
	}
	if err := m.retire(ctx, r, all); err != nil {
		return nil, over, err
	}
	if BestStaged(all, r.overlay, r.holds) >= 0 {
		return nil, over, nil // what stands ready serves; once it is activated the next is made
	}
	made, pruned := m.prune(r, over)
	if !pruned {
		if made, err = m.makeOverlay(ctx, r, over); err != nil || made.plan.NoGain != "" {
			return nil, over, err
		}
	}
	made.record.Status = session.StatusStaged
	if _, err := m.store.AddCompaction(ctx, made.record); err != nil {
		return nil, over, fmt.Errorf("stage a digest: %w", err)
	}
	if pruned { // no model is needed for that
		return nil, over, nil
	}
	return r, over, nil
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

// stageRemote asks the model for a summary of the same span. A record of the attempt stands
// from the beginning, so that one that was broken off can be seen.
func (m *Manager) stageRemote(ctx context.Context, r *reading, over overlayInput) error {
	running := session.Compaction{SessionID: r.sess.ID, Strategy: over.strategy, Trigger: over.trigger, Status: session.StatusRunning, TokensBefore: over.before}
	if r.overlay != nil {
		running.PreviousID = &r.overlay.RowID
	}
	running, err := m.store.AddCompaction(ctx, running)
	if err != nil {
		return fmt.Errorf("begin a staged summary: %w", err)
	}
	over.summarizer, over.serve = m.cfg.Remote, false
	made, makeErr := m.makeOverlay(ctx, r, over)
	keep := context.WithoutCancel(ctx) // what was paid for is recorded, whoever went away
	for _, call := range made.calls {
		call.SessionID, call.CompactionID = r.sess.ID, &running.RowID
		if _, err := m.store.AddCall(keep, call); err != nil {
			return fmt.Errorf("record a summary's call: %w", err)
		}
	}
	c := made.record
	c.RowID, c.PreviousID, c.CreatedAt = running.RowID, running.PreviousID, running.CreatedAt
	c.Status = session.StatusStaged
	switch {
	case makeErr != nil:
		c.Status, c.Reason = session.StatusFailed, makeErr.Error()
	case made.plan.NoGain != "":
		c.Status, c.Reason = session.StatusSkipped, made.plan.NoGain
	}
	if c.Status == session.StatusStaged {
		late, err := m.lateFor(keep, &c)
		if err != nil {
			return err
		}
		if late != nil {
			return m.stageLate(keep, c, late)
		}
	}
	if _, err := m.store.FinishCompaction(keep, c); err != nil {
		return fmt.Errorf("finish a staged summary: %w", err)
	}
	return makeErr
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

// stageLate keeps a model's summary that came after its digest took effect: staged on top of
// the digest, to replace it in an idle moment or to feed the next compaction.
func (m *Manager) stageLate(ctx context.Context, c session.Compaction, digest *session.Compaction) error {
	skipped := c
	skipped.Status, skipped.Reason = session.StatusSkipped, "it came late: "+session.CompactionName(digest.RowID)+" was in force, and the next record continues from there"
	if _, err := m.store.FinishCompaction(ctx, skipped); err != nil {
		return fmt.Errorf("finish a late summary: %w", err)
	}
	c.RowID, c.ID, c.PreviousID, c.MessageCount = 0, "", &digest.RowID, 0
	if _, err := m.store.AddCompaction(ctx, c); err != nil {
		return fmt.Errorf("stage a late summary: %w", err)
	}
	return nil
}

// ActivateIdle puts a staged overlay in force if the session has been quiet for five minutes
// and is above its soft threshold, or if a model's summary waits to replace a digest. It
// tells whether it did; waits tells that a memory flush comes first: ask again in a while.
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
	if quiet < idleMinutes*time.Minute || r.numbers.Off {
		return false, false, nil
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
