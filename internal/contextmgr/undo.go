package contextmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Undo takes the effective overlay out of force. The context is then byte for byte what the path
// gives without it. It must fit a window of this many tokens; 0: the session's. Codes: NotFound,
// Conflict (another overlay is effective; the error names it), DoesNotFit.
func (m *Manager) Undo(ctx context.Context, id session.ID, compaction, window int64) (session.Session, error) {
	defer m.lock(id)()
	budget := m.fillBudget(id, Budget{Window: window})
	s, err := m.read(ctx, id, budget)
	if err != nil {
		return session.Session{}, err
	}
	if s.Overlay != nil && s.Overlay.RowID == compaction {
		if err := m.checkFitsWithout(ctx, s, budget); err != nil {
			return session.Session{}, err
		}
	}
	return m.store.UndoCompaction(ctx, id, compaction)
}

// checkFitsWithout returns an error if the context does not fit without the effective overlay.
func (m *Manager) checkFitsWithout(ctx context.Context, s *snapshot, b Budget) error {
	all, err := m.store.Compactions(ctx, s.sess.ID)
	if err != nil {
		return err
	}
	b.At = &Position{HeadID: s.sess.HeadID}
	for _, c := range slices.Backward(all) {
		if c.Status != session.StatusDone || c.Undone || c.RowID == s.Overlay.RowID || c.ThroughID == nil {
			continue
		}
		on, err := m.store.OnPath(ctx, *s.sess.HeadID, *c.ThroughID)
		if err != nil {
			return err
		}
		if on {
			b.At.CompactionID = &c.RowID
			break
		}
	}
	without, err := m.read(ctx, s.sess.ID, b)
	if err != nil {
		return err
	}
	d := without.assemble()
	if limit := s.numbers.Limit; d.Total > limit || without.truncated {
		return fmt.Errorf("undo %s: %w; nothing was changed: to undo it, name a window of at least %d tokens",
			session.CompactionName(s.Overlay.RowID), doesNotFit(s.sess.ID, &d, d.Total, limit, 1), d.Total+s.numbers.Window-limit)
	}
	return nil
}

// Redo takes an undo back, while the overlay before it is in force. Codes: NotFound, Conflict.
func (m *Manager) Redo(ctx context.Context, id session.ID, compaction int64) (session.Session, error) {
	defer m.lock(id)()
	return m.store.RedoCompaction(ctx, id, compaction)
}

// Sources returns the messages that a compaction newly hid, oldest first: those between what the
// overlay before it kept and what it keeps, and those of which it hides a part. Codes: NotFound.
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
	before := namesInDetails(&previous)
	for name := range namesInDetails(&c) {
		ref, err := session.ParseRef(name)
		if before[name] || err != nil {
			continue
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

// namesInDetails returns the names of the messages that an overlay prunes or replaces.
func namesInDetails(c *session.Compaction) map[string]bool {
	names := map[string]bool{}
	var details session.CompactionDetails
	decode(c.Details, &details)
	for _, output := range details.Pruned {
		name, _, _ := strings.Cut(output, "/")
		names[name] = true
	}
	for _, r := range details.Replaced {
		for _, name := range r.Messages {
			names[name] = true
		}
	}
	return names
}

// lastHidden returns the row of the last message that an overlay hides whole, 0 for none.
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
