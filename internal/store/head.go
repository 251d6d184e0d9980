package store

import (
	"context"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// HeadMove is a request to go on from another place of a session's tree.
type HeadMove struct {
	Session    session.ID
	To         *session.MessageRef // any message on the session's tree; nil: before its first
	IfRevision *int64
	Idem       *Idempotency
}

// HeadMoved tells what a move did. Moved is false where the head was there already, and where
// an earlier request with the same key had moved it.
type HeadMoved struct {
	Session session.Session
	From    *session.MessageRef
	Moved   bool
}

// MoveHead puts the head on another message of the session's tree, in a new epoch and with the
// overlay that is in force there. Nothing is deleted: what was left stays a branch. Codes:
// NotFound, Invalid (not on the tree), PreconditionFailed, Conflict (in the trash).
func (s *Store) MoveHead(ctx context.Context, in HeadMove) (HeadMoved, error) {
	return writeOnce(ctx, s, in.Idem, func(t *tx, o *outcome) (HeadMoved, error) {
		sess, err := t.replaySession(o)
		return HeadMoved{Session: sess}, err
	}, func(t *tx) (HeadMoved, outcome, error) {
		out, err := t.moveHeadTo(in)
		return out, outcome{
			SessionID: string(in.Session), Revision: out.Session.Revision, HeadID: out.Session.HeadID,
			Status: 200,
		}, err
	})
}

func (t *tx) moveHeadTo(in HeadMove) (HeadMoved, error) {
	sess, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return HeadMoved{}, err
	}
	out := HeadMoved{Session: sess, From: sess.Head}
	if in.IfRevision != nil && *in.IfRevision != sess.Revision {
		return out, staleRevision(sess, *in.IfRevision)
	}
	if sess.DeletedAt != nil {
		return out, inTrash(sess.ID)
	}
	var to place
	var origin session.Origin
	if in.To != nil {
		if to, err = t.placeOnTree(sess, *in.To, "seq"); err != nil {
			return out, err
		}
		if origin, err = t.turnOrigin(*in.To); err != nil {
			return out, err
		}
	}
	if sameID(to.id, sess.HeadID) {
		return out, nil
	}
	sess.HeadID, sess.Head, sess.TurnOrigin = to.id, in.To, origin
	if err := t.updateOverlay(&sess); err != nil {
		return out, err
	}
	sess.Epoch++
	if err := t.saveProgress(&sess); err != nil {
		return out, err
	}
	out.Session, out.Moved = sess, true
	return out, t.event(sess.ID, EventHeadMoved, 0, session.JSONOf(map[string]any{"head": sess.Head, "from": out.From}))
}

// Pop is a request to take the head back by one message.
type Pop struct {
	Session    session.ID
	ExpectHead *ExpectHead // nil: unchecked
	Idem       *Idempotency
}

// Popped is the result of a Pop. Ref is the message that was the head; nil: there was none.
type Popped struct {
	Session session.Session
	Ref     *session.MessageRef
}

// PopMessage moves the head before the message that is the head. The message stays, as a branch. Codes: NotFound,
// Conflict (ExpectHead; in the trash).
func (s *Store) PopMessage(ctx context.Context, in Pop) (Popped, error) {
	return writeOnce(ctx, s, in.Idem, func(t *tx, o *outcome) (Popped, error) {
		sess, err := t.replaySession(o)
		out := Popped{Session: sess}
		if err == nil && o.ObjectID != "" {
			var ref session.MessageRef
			ref, err = session.ParseRef(o.ObjectID)
			out.Ref = &ref
		}
		return out, err
	}, func(t *tx) (Popped, outcome, error) {
		out, err := t.popMessage(in)
		o := outcome{
			SessionID: string(in.Session), Revision: out.Session.Revision, HeadID: out.Session.HeadID, Status: 200,
		}
		if out.Ref != nil {
			o.ObjectID = out.Ref.String()
		}
		return out, o, err
	})
}

func (t *tx) popMessage(in Pop) (Popped, error) {
	sess, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return Popped{}, err
	}
	if err := checkHead(sess, in.ExpectHead); err != nil {
		return Popped{}, err
	}
	if sess.HeadID == nil {
		return Popped{Session: sess}, nil
	}
	before := new(session.MessageRef)
	err = t.Row(`SELECT p.session_id, p.seq FROM messages m JOIN messages p ON p.id = m.parent_id WHERE m.id = ?`,
		[]any{*sess.HeadID}, &before.Session, &before.Seq)
	switch {
	case engine.NoRows(err):
		before = nil
	case err != nil:
		return Popped{}, err
	}
	moved, err := t.moveHeadTo(HeadMove{Session: in.Session, To: before})
	return Popped{Session: moved.Session, Ref: moved.From}, err
}

// AddBranchSummary stores a branch summary after the message that the head had been moved to.
// If the head is still there it becomes the head; else it stands beside what was said since,
// out of the context, and onPath is false. Its calls are counted either way. Codes: NotFound,
// Conflict (in the trash).
func (s *Store) AddBranchSummary(ctx context.Context,
	in session.BranchSummary,
) (m session.Message, attached bool, err error) {
	m = in.Message
	m.Parts = slices.Clone(in.Message.Parts)
	m.Kind, m.Role, m.Origin, m.InContext, m.Display = session.KindBranchSummary, session.User, session.Program, true, true
	if err := s.prepare(&m); err != nil {
		return m, false, err
	}
	err = s.write(ctx, func(t *tx) error {
		attached, err = t.addBranchSummary(in, &m)
		return err
	})
	return m, attached, err
}

func (t *tx) addBranchSummary(in session.BranchSummary, m *session.Message) (attached bool, err error) {
	sess, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return false, err
	}
	if sess.DeletedAt != nil {
		return false, inTrash(sess.ID)
	}
	var at place
	if in.After != nil {
		if at, err = t.placeOnTree(sess, *in.After, "seq"); err != nil {
			return false, err
		}
	}
	was := sess
	msgs := []session.Message{*m}
	if _, err := t.insertLine(&sess, at, msgs); err != nil {
		return false, err
	}
	*m = msgs[0]
	if attached = sameID(was.HeadID, at.id); attached {
		sess.ContextTokens += m.Tokens
	} else {
		sess.HeadID, sess.Head = was.HeadID, was.Head
	}
	for _, c := range in.Calls {
		c.SessionID, c.MessageID = sess.ID, &m.RowID
		if err := t.addCall(&c, &sess); err != nil {
			return attached, err
		}
	}
	if err := t.saveProgress(&sess); err != nil {
		return attached, err
	}
	data := session.JSONOf(map[string]any{"from": m.Seq, "attached": attached})
	return attached, t.event(sess.ID, EventMessagesAppended, m.Seq, data)
}
