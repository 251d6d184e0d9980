package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// overlayRow is of a record what tells whether it is in force.
type overlayRow struct {
	ID          int64               `db:"id"`
	Strategy    session.Strategy    `db:"strategy"`
	ActivatedAt *session.Time       `db:"activated_at"`
	Hidden      int64               `db:"hidden_tokens"`
	Summary     int64               `db:"summary_tokens"`
	ThroughID   *int64              `db:"through_id"`
	Through     *session.MessageRef `db:"through"`
	Record      string              `db:"record"` // a message that must be on the path, too; "": none
}

// ancestors calls visit with each session that a fork was forked off, directly or through others, and with
// what of its records the fork inherits.
func ancestors(ctx context.Context, q engine.Queryer, sess session.Session,
	visit func(id session.ID, l link) error,
) error {
	inherits := link{CompactionID: math.MaxInt64, ActivatedAt: "\uffff", FrozenID: math.MaxInt64}
	for sess.ParentKind == session.ParentFork {
		next, err := readLink(ctx, q, sess.ID)
		if err != nil || next.MessageID == nil { // it shares nothing
			return err
		}
		inherits = inherits.intersect(next)
		if sess, err = readAncestor(ctx, q, sess.ParentID); session.CodeOf(err) == session.NotFound {
			return nil
		} else if err != nil {
			return err
		}
		if err := visit(sess.ID, inherits); err != nil {
			return err
		}
	}
	return nil
}

// lineage reads the records of a session and of those that it was forked off. A fork inherits
// what its ancestors had activated, undone and redone when it was made, and nothing later:
// undos are its own from then on.
func lineage(ctx context.Context, q engine.Queryer, sess session.Session) ([]session.Compaction, error) {
	all, err := engine.List[session.Compaction](ctx, q, compactionsOfSession, sess.ID)
	if err != nil {
		return nil, fmt.Errorf("compactions of %s: %w", sess.ID, err)
	}
	if err := ancestors(ctx, q, sess, func(id session.ID, l link) error {
		return engine.Each(ctx, q, func(c *session.Compaction) error {
			if l.within(&overlayRow{ID: c.RowID, ActivatedAt: c.ActivatedAt}) {
				all = append(all, *c)
			}
			return nil
		}, compactionsOfSession, id)
	}); err != nil {
		return nil, fmt.Errorf("compactions of %s: %w", sess.ID, err)
	}
	for i := range all {
		if err := nameCompaction(&all[i]); err != nil {
			return nil, err
		}
	}
	undone, err := undosOf(ctx, q, sess.ID)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if at, ok := undone[all[i].RowID]; ok {
			all[i].Undone, all[i].UndoneAt = true, &at
		}
	}
	slices.SortStableFunc(all, func(a, b session.Compaction) int { return int(a.RowID - b.RowID) })
	return all, nil
}

var compactionsOfSession = `SELECT ` + compactionColumns + ` FROM compactions c WHERE c.session_id = ? ORDER BY c.id`

func undosOf(ctx context.Context, q engine.Queryer, id session.ID) (map[int64]session.Time, error) {
	undone := map[int64]session.Time{}
	err := q.Read(ctx, intoUndos(undone, id))
	return undone, session.Wrap(err, "undos of %s", id)
}

func intoUndos(undone map[int64]session.Time, id session.ID) engine.Reading {
	type undo struct {
		Compaction int64        `db:"compaction_id"`
		At         session.Time `db:"at"`
	}
	return engine.Into(func(u *undo) error {
		undone[u.Compaction] = u.At
		return nil
	}, `SELECT compaction_id, at FROM compaction_undos WHERE session_id = ?`, id)
}

// overlaysOf reads what lineage does, as far as it tells which overlay is in force: the one
// that took effect last comes first.
func overlaysOf(ctx context.Context, q engine.Queryer, sess session.Session) ([]overlayRow, error) {
	own, err := engine.List[overlayRow](ctx, q, overlaysOfSession, sess.ID)
	if err != nil {
		return nil, fmt.Errorf("overlays of %s: %w", sess.ID, err)
	}
	return inheritOverlays(ctx, q, sess, own)
}

// inheritOverlays adds to a session's own overlays those that it inherits.
func inheritOverlays(ctx context.Context, q engine.Queryer, sess session.Session,
	all []overlayRow,
) ([]overlayRow, error) {
	err := ancestors(ctx, q, sess, func(id session.ID, l link) error {
		return engine.Each(ctx, q, func(o *overlayRow) error {
			if l.within(o) {
				all = append(all, *o)
			}
			return nil
		}, overlaysOfSession, id)
	})
	if err != nil {
		return nil, fmt.Errorf("overlays of %s: %w", sess.ID, err)
	}
	slices.SortStableFunc(all, func(a, b overlayRow) int {
		if a.ActivatedAt.Equal(b.ActivatedAt.Time) {
			return int(b.ID - a.ID)
		}
		return b.ActivatedAt.Compare(a.ActivatedAt.Time)
	})
	return all, nil
}

const overlaysOfSession = `
	SELECT c.id, c.strategy, c.activated_at, c.hidden_tokens, c.summary_tokens, c.through_id, m.session_id || '.' || m.seq AS through,
	       COALESCE(CAST(json_extract(c.details, '$.record') AS TEXT), '') AS record
	FROM compactions c LEFT JOIN messages m ON m.id = c.through_id
	WHERE c.session_id = ? AND c.status = 'done' AND c.activated_at IS NOT NULL ORDER BY c.id`

// updateOverlay finds the effective overlay of the session's head anew and the size of the
// context with it, in memory: the newest done record that is not undone and whose last
// represented message is on the path.
func (t *tx) updateOverlay(sess *session.Session) error {
	sess.CompactionID, sess.ContextTokens = nil, 0
	if sess.HeadID == nil {
		return nil
	}
	if err := t.Row(`SELECT path_tokens FROM messages WHERE id = ?`, []any{*sess.HeadID},
		&sess.ContextTokens); err != nil {
		return fmt.Errorf("size of the path: %w", err)
	}
	o, err := t.overlayInForce(*sess, *sess.HeadID, nil)
	if err != nil || o == nil {
		return err
	}
	sess.CompactionID = &o.ID
	sess.ContextTokens += o.Summary - o.Hidden
	return nil
}

// overlayInForce finds the newest overlay of a session that is not undone and ends on the path to
// head, of those that took effect until then; nil for none. A nil until is now.
func (t *tx) overlayInForce(sess session.Session, head int64, until *session.Time) (*overlayRow, error) {
	all, err := overlaysOf(t.Ctx, t, sess)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	undone, err := undosOf(t.Ctx, t, sess.ID)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o overlayRow) bool {
		_, gone := undone[o.ID]
		return gone || o.Through == nil || *o.ThroughID > head || until != nil && o.ActivatedAt.After(until.Time)
	})
	if len(all) == 0 {
		return nil, nil
	}
	oldest := slices.MinFunc(all, func(a, b overlayRow) int { return int(*a.ThroughID - *b.ThroughID) })
	spans, err := spansDownTo(t.Ctx, t, head, *oldest.ThroughID)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if holds(spans, *all[i].Through) && all[i].recordIsOnPath(spans) {
			return &all[i], nil
		}
	}
	return nil, nil
}

func holds(spans []Span, ref session.MessageRef) bool {
	return slices.ContainsFunc(spans, func(sp Span) bool { return sp.holds(ref) })
}

// recordIsOnPath reports whether a path holds the record that the overlay came with, if there is one.
func (o *overlayRow) recordIsOnPath(spans []Span) bool {
	ref, err := session.ParseRef(o.Record)
	return o.Record == "" || err == nil && holds(spans, ref)
}
