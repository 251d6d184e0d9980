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
// gives without it; SizeWarning says if that passes the window. Codes: NotFound, Conflict (another
// overlay is effective; the error names it).
func (m *Manager) Undo(ctx context.Context, id session.ID, compaction int64) (session.Session, error) {
	defer m.lock(id)()
	return m.store.UndoCompaction(ctx, id, compaction)
}

// Redo takes an undo back, while the overlay before it is in force. Codes: NotFound, Conflict.
func (m *Manager) Redo(ctx context.Context, id session.ID, compaction int64) (session.Session, error) {
	defer m.lock(id)()
	return m.store.RedoCompaction(ctx, id, compaction)
}

// SizeWarning returns a warning if the session's context passes its limit, so that the next turn
// compacts it; "" if it does not. It writes nothing.
func (m *Manager) SizeWarning(ctx context.Context, id session.ID) (string, error) {
	s, err := m.read(ctx, id, m.fillBudget(id, Budget{}))
	if err != nil {
		return "", err
	}
	d := s.assemble()
	if d.Total <= s.numbers.Limit && !s.truncated {
		return "", nil
	}
	size, next := fmt.Sprintf("%d tokens", d.Total), "compacts again"
	if s.truncated {
		size = "more than " + size
	}
	if s.numbers.Off {
		next = "asks for a compaction"
	}
	return fmt.Sprintf("the context has %s and the limit is %d: the next turn %s", size, s.numbers.Limit, next), nil
}

// Sources names the messages that a compaction newly hid, oldest first: those between what the
// overlay before it kept and what it keeps, and those of which it hides a part. Codes: NotFound.
func (m *Manager) Sources(ctx context.Context, id session.ID, compaction int64) ([]session.MessageRef, error) {
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
	after := int64(0)
	var hidden []session.MessageRef
	if through > 0 {
		if after, err = m.lastHidden(ctx, &previous); err != nil {
			return nil, err
		}
		if hidden, err = m.store.RefsBetween(ctx, through, after); err != nil {
			return nil, err
		}
	}
	var edited []session.Message
	before := namesInDetails(&previous)
	for name := range namesInDetails(&c) {
		ref, err := session.ParseRef(name)
		if before[name] || err != nil || slices.Contains(hidden, ref) {
			continue
		}
		msg, err := m.store.MessageHead(ctx, ref, session.Head{})
		if err != nil {
			return nil, err
		}
		edited = append(edited, msg)
	}
	slices.SortFunc(edited, func(a, b session.Message) int { return cmp.Compare(a.RowID, b.RowID) })
	var older, newer []session.MessageRef // than what is hidden whole
	for i := range edited {
		if edited[i].RowID <= after {
			older = append(older, edited[i].ID)
		} else {
			newer = append(newer, edited[i].ID)
		}
	}
	return slices.Concat(older, hidden, newer), nil
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
