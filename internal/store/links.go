package store

import (
	"context"
	"math"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// link is how a session hangs on its parent: where a fork leaves it and what it inherits, or
// what started a child. Its zero value is a session that shares nothing.
type link struct {
	MessageID    *int64     `db:"message_id"`
	CallID       string     `db:"call_id"`
	Root         session.ID `db:"root_id"`       // the session that the family of forks began with
	Number       int64      `db:"number"`        // of a fork in its family
	CompactionID int64      `db:"compaction_id"` // the newest record that a fork inherits
	ActivatedAt  string     `db:"activated_at"`  // when the newest overlay that a fork inherits took effect; "": none did
	FrozenID     int64      `db:"frozen_id"`
}

// readLink returns the zero value for a session without a link.
func readLink(ctx context.Context, q engine.Queryer, id session.ID) (link, error) {
	l, err := engine.Get[link](ctx, q, linkOfSession, id)
	if engine.NoRows(err) {
		return link{}, nil
	}
	return l, session.Wrap(err, "how %s hangs on its parent", id)
}

const linkOfSession = `
	SELECT message_id, call_id, root_id, number, compaction_id, activated_at, frozen_id FROM links WHERE session_id = ?`

func (t *tx) saveLink(id session.ID, l link) error {
	return session.Wrap(t.Exec(`INSERT INTO links (session_id, message_id, call_id, root_id, number, compaction_id, activated_at, frozen_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (session_id) DO UPDATE SET message_id = excluded.message_id, call_id = excluded.call_id, root_id = excluded.root_id,
		number = excluded.number, compaction_id = excluded.compaction_id, activated_at = excluded.activated_at, frozen_id = excluded.frozen_id`,
		id, l.MessageID, l.CallID, l.Root, l.Number, l.CompactionID, l.ActivatedAt, l.FrozenID), "link %s to its parent", id)
}

// newLink makes the link of a new session to its parent. Codes: Invalid.
func (t *tx) newLink(parent session.Session, in NewSession) (link, error) {
	if in.ParentKind == session.ParentFork {
		made := t.Now
		if in.CreatedAt != nil {
			made = *in.CreatedAt
		}
		if in.Inherits != nil {
			made = *in.Inherits
		}
		return importedFork(made), nil
	}
	if in.Started == nil {
		return link{CallID: in.StartedCall}, nil
	}
	at, err := t.placeOnTree(parent, *in.Started, "parent_message")
	return link{MessageID: at.id, CallID: in.StartedCall}, err
}

// importedFork is the link of a fork that another program made: what its ancestors had in
// force goes by the time at which it was made there; none was at no time.
func importedFork(made session.Time) link {
	l := link{CompactionID: math.MaxInt64}
	if !made.IsZero() {
		l.ActivatedAt = made.SQL()
	}
	return l
}

// inheritUntil lets an imported fork inherit what took effect until a time, if that is later than what it had.
func (t *tx) inheritUntil(sess session.Session, at session.Time) error {
	if sess.ParentKind != session.ParentFork || at.IsZero() {
		return nil
	}
	l, err := readLink(t.Ctx, t, sess.ID)
	if err != nil || l.CompactionID != math.MaxInt64 || at.SQL() <= l.ActivatedAt {
		return err
	}
	l.ActivatedAt = at.SQL()
	return t.saveLink(sess.ID, l)
}

// extendSharedPath notes that an imported fork's path goes through a message of another session.
func (t *tx) extendSharedPath(sess session.Session, message int64) error {
	if sess.ParentKind != session.ParentFork {
		return nil
	}
	l, err := readLink(t.Ctx, t, sess.ID)
	if err != nil {
		return err
	}
	if l.MessageID != nil {
		further, err := onPath(t.Ctx, t, message, *l.MessageID)
		if err != nil || !further || message == *l.MessageID {
			return err
		}
	}
	l.MessageID = &message
	return t.saveLink(sess.ID, l)
}

// checkNoCycle refuses a parent that hangs on the session itself. Codes: Invalid.
func (t *tx) checkNoCycle(id, parent session.ID) error {
	for above := parent; above != ""; {
		if above == id {
			return session.Errorf(session.Invalid, "session %s cannot hang on %s, which hangs on it", id, parent).
				At("parent_id", "would be a cycle")
		}
		sess, err := readSession(t.Ctx, t, above)
		if session.CodeOf(err) == session.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		above = sess.ParentID
	}
	return nil
}

// within reports whether a record of an ancestor is among those that a fork inherits.
func (l link) within(c *overlayRow) bool {
	return c.ID <= l.CompactionID && c.ActivatedAt != nil && c.ActivatedAt.SQL() <= l.ActivatedAt
}

// intersect returns what is inherited through one more fork.
func (l link) intersect(other link) link {
	l.CompactionID = min(l.CompactionID, other.CompactionID)
	l.ActivatedAt = min(l.ActivatedAt, other.ActivatedAt)
	l.FrozenID = min(l.FrozenID, other.FrozenID)
	l.MessageID = other.MessageID
	return l
}

// onTree reports whether a message is on a session's tree: one of its own, or one of the path
// that a fork shares.
func onTree(ctx context.Context, q engine.Queryer, sess session.Session, ref session.MessageRef,
	rowID int64,
) (bool, error) {
	if ref.Session == sess.ID {
		return true, nil
	}
	if sess.ParentKind != session.ParentFork {
		return false, nil
	}
	l, err := readLink(ctx, q, sess.ID)
	if err != nil || l.MessageID == nil {
		return false, err
	}
	return onPath(ctx, q, *l.MessageID, rowID)
}

// SharedPath gives the path that a fork shares, newest first, as runs from a first to a last
// message; none for another session or one in the trash. Codes: NotFound.
func (s *Store) SharedPath(ctx context.Context, id session.ID) ([][2]session.MessageRef, error) {
	sess, err := s.Session(ctx, id)
	if err != nil || sess.ParentKind != session.ParentFork || sess.DeletedAt != nil {
		return nil, err
	}
	l, err := readLink(ctx, s, id)
	if err != nil || l.MessageID == nil {
		return nil, err
	}
	var runs [][2]session.MessageRef
	err = eachSpan(ctx, s, l.MessageID, func(sp Span) error {
		runs = append(runs, [2]session.MessageRef{{Session: sp.Session, Seq: sp.From}, {Session: sp.Session, Seq: sp.To}})
		return nil
	})
	return runs, err
}

// Link returns how a session hangs on its parent; nil without one.
func (s *Store) Link(ctx context.Context, sess session.Session) (*session.Link, error) {
	if sess.ParentID == "" {
		return nil, nil
	}
	l, err := readLink(ctx, s, sess.ID)
	if err != nil {
		return nil, err
	}
	out := session.Link{Session: sess.ID, Kind: sess.ParentKind, Parent: sess.ParentID, Call: l.CallID, Title: sess.Title}
	if l.MessageID != nil {
		ref, err := refOf(ctx, s, *l.MessageID)
		if err != nil {
			return nil, err
		}
		out.Message = &ref
	}
	return &out, nil
}

// Hanging lists the forks and children of a session that are not in the trash, oldest first,
// at most limit of them.
func (s *Store) Hanging(ctx context.Context, id session.ID, limit int) ([]session.Link, error) {
	all, err := engine.List[session.Link](ctx, s, hangingOn, id, limit)
	return all, session.Wrap(err, "forks and children of %s", id)
}

const hangingOn = `
	SELECT s.id AS session_id, s.parent_id, s.parent_kind, s.title, COALESCE(l.call_id, '') AS call_id, m.session_id || '.' || m.seq AS message
	FROM sessions s LEFT JOIN links l ON l.session_id = s.id LEFT JOIN messages m ON m.id = l.message_id
	WHERE s.parent_id = ? AND s.parent_id <> '' AND s.deleted_at IS NULL ORDER BY s.rowid LIMIT +?`
