package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sessiond/internal/session"
)

// idleTime is how long a session must be quiet before a staged overlay may take effect between
// turns: provider caches are cold then.
const idleTime = 5 * time.Minute

// StageDigest stages a digest, unless an overlay is staged. modelDue reports whether the model
// should summarise the same messages: call StageModel. Codes as Assemble.
func (m *Manager) StageDigest(ctx context.Context, id session.ID) (modelDue bool, err error) {
	defer m.lock(id)()
	s, err := m.readToStage(ctx, id)
	if err != nil || s == nil {
		return false, err
	}
	if err := m.retireStaged(ctx, s); err != nil {
		return false, err
	}
	if s.staged == nil {
		made, enough := s.planPrune(s.in)
		if !enough {
			if made, err = m.makeOverlay(ctx, s.snapshot, s.in); err != nil || made.plan.NoGain != "" {
				return false, err
			}
		}
		made.record.Status = session.StatusStaged
		c, err := m.store.AddCompaction(ctx, made.record)
		if err != nil {
			return false, fmt.Errorf("stage a digest: %w", err)
		}
		s.staged = &c
	}
	return m.isModelDue(s), nil
}

// StageModel asks the model for a summary of what the staged digest summarises, if that is due. It
// holds no lock and no transaction meanwhile. Its record is running from the beginning, so that it
// can be seen and cancelled. Codes as Assemble.
func (m *Manager) StageModel(ctx context.Context, id session.ID) error {
	s, r, err := m.beginStaged(ctx, id)
	if err != nil || s == nil {
		return err
	}
	defer m.running.end(r, outcome{})
	ctx, stop := r.withCancel(ctx)
	defer stop()
	s.in.summarizer, s.in.mustSucceed, s.in.sameCut = m.remote(&s.numbers), false, s.staged
	made, err := m.makeOverlay(ctx, s.snapshot, s.in)
	return m.settleStaged(ctx, m.running.outcomeOf(r).record, made, err)
}

// beginStaged records that the model is asked. s is nil if that is not due.
func (m *Manager) beginStaged(ctx context.Context, id session.ID) (s *staging, r *run, err error) {
	defer m.lock(id)()
	s, err = m.readToStage(ctx, id)
	if err != nil || s == nil || s.staged == nil || !m.isModelDue(s) {
		return nil, nil, err
	}
	c, err := m.store.AddCompaction(ctx, session.Compaction{
		SessionID: id, PreviousID: s.staged.PreviousID, Strategy: s.in.strategy, Trigger: s.in.trigger,
		Status:    session.StatusRunning,
		ThroughID: s.staged.ThroughID, FirstKeptID: s.staged.FirstKeptID, TokensBefore: s.in.before,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("begin a staged summary: %w", err)
	}
	return s, m.running.addStaged(c), nil
}

// settleStaged finishes a running record with the model's overlay.
func (m *Manager) settleStaged(ctx context.Context, running session.Compaction, made madeOverlay, failed error) error {
	keep := context.WithoutCancel(ctx) // paid calls are recorded even if the caller went away
	if err := m.recordCalls(keep, running, made.calls); err != nil {
		return err
	}
	c := made.record
	c.RowID, c.PreviousID, c.CreatedAt = running.RowID, running.PreviousID, running.CreatedAt
	if failed != nil && ctx.Err() != nil {
		running.SpanSummary = c.SpanSummary
		if err := m.recordInterrupted(ctx, running); session.CodeOf(err) != session.Conflict {
			return err
		}
		return nil
	}
	switch c.Status = session.StatusStaged; {
	case failed != nil:
		c.Status, c.Reason = session.StatusFailed, joinReasons(failed.Error(), c.Reason)
		for _, call := range made.calls {
			if call.Status == session.CallOK { // an answer that is paid for and no summary
				c.Provider, c.Model = call.Provider, call.Model
			}
		}
	case made.plan.NoGain != "":
		c.Status, c.Reason = session.StatusSkipped, made.plan.NoGain
	default:
		// If the digest took effect meanwhile, the summary replaces it when the session is idle,
		// or feeds the next compaction.
		digest, err := m.newOverlayOfSpan(keep, &c)
		if err != nil {
			return err
		}
		if digest != nil {
			c.PreviousID, c.MessageCount = &digest.RowID, 0
			c.Reason = joinReasons(c.Reason, session.CompactionName(digest.RowID)+" took effect first, for the same messages")
		}
	}
	// a conflict: it was cancelled
	if _, err := m.store.FinishCompaction(keep, c); err != nil && session.CodeOf(err) != session.Conflict {
		return fmt.Errorf("finish a staged summary: %w", err)
	}
	return failed
}

// newOverlayOfSpan returns an overlay of the same span that took effect after c was planned; nil
// for none.
func (m *Manager) newOverlayOfSpan(ctx context.Context, c *session.Compaction) (*session.Compaction, error) {
	sess, err := m.store.Session(ctx, c.SessionID)
	if err != nil {
		return nil, err
	}
	effective, err := m.store.Effective(ctx, sess)
	if err != nil || effective == nil || c.PreviousID != nil && effective.RowID == *c.PreviousID {
		return nil, err
	}
	if effective.ThroughID == nil || !sameRow(effective.ThroughID, c.ThroughID) {
		return nil, nil
	}
	return effective, nil
}

// staging is a session above its soft threshold.
type staging struct {
	*snapshot
	in     overlayInput
	all    []session.Compaction
	staged *session.Compaction // the one to activate; nil: none
}

// readToStage reads a session; nil if nothing is to be staged.
func (m *Manager) readToStage(ctx context.Context, id session.ID) (*staging, error) {
	s, err := m.read(ctx, id, m.fillBudget(id, Budget{}))
	if err != nil {
		return nil, err
	}
	t := turn{m: m, s: s}
	if err := t.assemble(ctx); err != nil {
		return nil, err
	}
	n := s.numbers
	if n.Off || n.Strategy != session.StrategySummarize || t.tokens.Upper() <= n.Soft {
		return nil, nil
	}
	st := &staging{snapshot: s, in: overlayInput{
		strategy: n.Strategy, trigger: session.TriggerThreshold, summarizer: m.cfg.Digest, mustSucceed: true,
		fixed: t.draft.Fixed, before: t.tokens.Total,
	}}
	if st.all, err = m.store.Compactions(ctx, id); err != nil {
		return nil, err
	}
	if i := BestStaged(st.all, s.Overlay, s.contains); i >= 0 {
		st.staged = &st.all[i]
	}
	return st, nil
}

// isModelDue reports whether to ask the model: a digest is staged, the model is not being asked and
// does not rest, and if it failed since the effective overlay, the path has grown by 5 % of the window
// since. An interrupted attempt does not count as a failure.
func (m *Manager) isModelDue(s *staging) bool {
	if m.remote(&s.numbers).Summarizer == nil || byModel(s.staged) || s.staged.Strategy == session.StrategyPrune ||
		m.running.asksModel(s.sess.ID) {
		return false
	}
	if modelRests(s) {
		return false
	}
	for i := range slices.Backward(s.all) {
		c := &s.all[i]
		tried := c.Status == session.StatusFailed && c.Reason != session.ReasonBrokenOff ||
			c.Status == session.StatusSkipped && byModel(c)
		if tried && c.SessionID == s.sess.ID && c.Trigger == session.TriggerThreshold && follows(c, s.Overlay) {
			return s.in.before >= c.TokensBefore+s.numbers.Window/20
		}
	}
	return true
}

// mostUnused is how many paid summaries in a row may be unused before the model rests.
const mostUnused = 2

// modelRests reports whether the newest two paid summaries of the session were both unused, and the path has
// not grown by a window since.
func modelRests(s *staging) bool {
	var newest *session.Compaction
	unused := 0
	for i := range slices.Backward(s.all) {
		c := &s.all[i]
		if c.SessionID != s.sess.ID || c.Trigger != session.TriggerThreshold || !byModel(c) {
			continue
		}
		switch useOf(s.all, c) {
		case summaryWaits:
			continue
		case summaryUsed:
			return false
		}
		if newest == nil {
			newest = c
		}
		if unused++; unused == mostUnused {
			return s.staged.HiddenTokens < newest.HiddenTokens+s.numbers.Window
		}
	}
	return false
}

// summaryUse is what became of a model's summary.
type summaryUse int

const (
	summaryUnused summaryUse = iota
	summaryWaits             // it may still take effect, or feed the next compaction
	summaryUsed              // it took effect, or a compaction that did was made from it
)

// useOf returns what became of a model's summary. The query paid-summaries counts by the same rule.
func useOf(all []session.Compaction, c *session.Compaction) summaryUse {
	digest := replacedDigest(all, c)
	switch {
	case c.Status == session.StatusDone, digest != nil && fed(all, c, digest):
		return summaryUsed
	case c.Status == session.StatusStaged, digest != nil:
		return summaryWaits
	}
	return summaryUnused
}

// replacedDigest returns the digest in force for the same messages, for which a model's summary came too late; nil
// for none.
func replacedDigest(all []session.Compaction, c *session.Compaction) *session.Compaction {
	for i := range all {
		d := &all[i]
		if d.Status != session.StatusDone || d.Undone || d.SessionID != c.SessionID || byModel(d) ||
			!sameRow(d.ThroughID, c.ThroughID) {
			continue
		}
		if c.ThroughID != nil && (sameRow(c.PreviousID, &d.RowID) || lateSummary(all, d) == c) {
			return d
		}
	}
	return nil
}

// fed reports whether a compaction after the digest, made once the late summary was there, took effect.
func fed(all []session.Compaction, late, digest *session.Compaction) bool {
	after := map[int64]bool{digest.RowID: true}
	for i := range all {
		c := &all[i]
		if c.Status != session.StatusDone || c.Strategy == session.StrategyClear || c.PreviousID == nil ||
			!after[*c.PreviousID] {
			continue
		}
		if c.Strategy == session.StrategySummarize && !c.CreatedAt.Before(finishedAt(late)) {
			return true
		}
		after[c.RowID] = true
	}
	return false
}

// retireStaged closes staged records that can no longer take effect, because another overlay did.
func (m *Manager) retireStaged(ctx context.Context, s *staging) error {
	for _, c := range s.all {
		if c.Status != session.StatusStaged || c.SessionID != s.sess.ID || follows(&c, s.Overlay) {
			continue
		}
		c.Status, c.Reason = session.StatusSkipped, "another compaction took effect first"
		if _, err := m.store.FinishCompaction(ctx, c); err != nil {
			return fmt.Errorf("retire %s: %w", session.CompactionName(c.RowID), err)
		}
	}
	return nil
}

// ActivateIdle activates a staged overlay if a client took a turn in the session, it has been quiet for
// five minutes, and either is above its soft threshold or has a model's summary to replace a digest.
// Without a turn no provider's cache is warm, and a talk of another program is not changed. done
// reports whether it did; waits reports that the session is not quiet yet or flushes its memory first:
// call again later. Codes as Assemble.
func (m *Manager) ActivateIdle(ctx context.Context, id session.ID) (done, waits bool, err error) {
	defer m.lock(id)()
	s, err := m.read(ctx, id, m.fillBudget(id, Budget{}))
	if err != nil || len(s.Messages) == 0 || s.numbers.Off || s.last == nil {
		return false, false, err
	}
	quiet := min(m.cfg.Now().Sub(s.Messages[len(s.Messages)-1].CreatedAt.Time), m.cfg.Now().Sub(s.last.CreatedAt.Time))
	if quiet < idleTime {
		return false, true, nil
	}
	all, err := m.store.Compactions(ctx, id)
	if err != nil {
		return false, false, err
	}
	i := BestStaged(all, s.Overlay, s.contains)
	if i >= 0 {
		t := turn{m: m, s: s}
		if err := t.assemble(ctx); err != nil {
			return false, false, err
		}
		if t.tokens.Upper() <= s.numbers.Soft {
			i = -1
		}
	}
	if i < 0 {
		if i = lateStaged(all, s.Overlay); i < 0 {
			return false, false, nil
		}
	}
	if waits, err := m.waitForFlush(ctx, s); err != nil || waits {
		return false, waits, err
	}
	if _, err := m.store.Activate(ctx, id, all[i].RowID); err != nil {
		return false, false, fmt.Errorf("activate %s: %w", session.CompactionName(all[i].RowID), err)
	}
	return true, false, nil
}

// BestStaged returns the index of the staged overlay to activate, -1 for none: it must follow the
// effective overlay and end on the path. A model's summary precedes a digest, then the newest wins.
func BestStaged(all []session.Compaction, effective *session.Compaction, onPath func(through int64) bool) int {
	best := -1
	for i := range all {
		c := &all[i]
		if c.Status != session.StatusStaged || c.Undone || c.ThroughID == nil || !follows(c, effective) ||
			!onPath(*c.ThroughID) {
			continue
		}
		if best < 0 || byModel(c) || !byModel(&all[best]) {
			best = i
		}
	}
	return best
}

// lateStaged returns the index of a staged summary of the same messages that the effective digest
// hides, -1 for none. It frees nothing, but a model wrote it.
func lateStaged(all []session.Compaction, effective *session.Compaction) int {
	if effective == nil || effective.ThroughID == nil {
		return -1
	}
	for i, c := range slices.Backward(all) {
		if c.Status == session.StatusStaged && !c.Undone && follows(&c, effective) &&
			sameRow(c.ThroughID, effective.ThroughID) {
			return i
		}
	}
	return -1
}

// digestProvider is the provider of digests. Every other provider is a model's.
const digestProvider = "extractive"

func byModel(c *session.Compaction) bool { return c.Provider != "" && c.Provider != digestProvider }

// follows reports whether an overlay was made while the effective one was in force.
func follows(c, effective *session.Compaction) bool {
	if effective == nil {
		return c.PreviousID == nil
	}
	return sameRow(c.PreviousID, &effective.RowID)
}
