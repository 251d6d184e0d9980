package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Kinds of marks.
const (
	MarkPin   = "pin"   // stays in the context even when an overlay hides it
	MarkLabel = "label" // a person's word for a place
)

// Pins lists the pinned messages of a session, by row, oldest first.
func (s *Store) Pins(ctx context.Context, id session.ID) ([]int64, error) {
	return engine.List[int64](ctx, s, pinsOfSession, id)
}

const pinsOfSession = `SELECT message_id FROM marks WHERE session_id = ? AND kind = 'pin' ORDER BY message_id`

// Labels returns the labels of a session's messages, by row.
func (s *Store) Labels(ctx context.Context, id session.ID) (map[int64]string, error) {
	type label struct {
		Message int64  `db:"message_id"`
		Text    string `db:"text"`
	}
	labels := map[int64]string{}
	err := engine.Each(ctx, s, func(l *label) error {
		labels[l.Message] = l.Text
		return nil
	}, `SELECT message_id, text FROM marks WHERE session_id = ? AND kind = 'label'`, id)
	return labels, err
}

// SetMark sets or, with on false, takes away a mark. A pin on a message that the effective
// overlay hides begins a new epoch, since it comes back into the context.
// Codes: NotFound.
func (s *Store) SetMark(ctx context.Context, id session.ID, ref session.MessageRef, kind, text string,
	on bool,
) (session.Session, error) {
	return write(ctx, s, func(t *tx) (session.Session, error) {
		sess, err := readSession(t.Ctx, t, id)
		if err != nil {
			return sess, err
		}
		at, err := t.placeAfter(ref)
		if err != nil {
			return sess, err
		}
		if err := checkOnTree(t.Ctx, t, sess, ref, *at.id); err != nil {
			return sess, err
		}
		if err := t.setMark(id, *at.id, kind, text, on); err != nil {
			return sess, err
		}
		if err := t.event(id, EventSessionChanged, 0, nil); err != nil {
			return sess, err
		}
		if kind == MarkPin && sess.CompactionID != nil {
			err = t.newEpoch(&sess, 0)
			return sess, err
		}
		sess.Revision, sess.UpdatedAt = sess.Revision+1, t.Now
		return sess, t.Exec(`UPDATE sessions SET revision = ?, updated_at = ? WHERE id = ?`, sess.Revision, sess.UpdatedAt, id)
	})
}

// checkOnTree refuses a message that is not on a session's tree. Codes: NotFound.
func checkOnTree(ctx context.Context, q engine.Queryer, sess session.Session, ref session.MessageRef,
	rowID int64,
) error {
	on, err := onTree(ctx, q, sess, ref, rowID)
	if err == nil && !on {
		err = checkSeen(ctx, q, ref)
	}
	if err == nil && !on {
		err = session.Errorf(session.NotFound, "message %s is not one of session %s, nor of the path that it shares",
			ref, sess.ID)
	}
	return err
}

func (t *tx) setMark(id session.ID, messageID int64, kind, text string, on bool) error {
	query, args := `DELETE FROM marks WHERE session_id = ? AND message_id = ? AND kind = ?`, []any{id, messageID, kind}
	if on {
		query = `INSERT INTO marks (session_id, message_id, kind, text, created_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (session_id, message_id, kind) DO UPDATE SET text = excluded.text`
		args = append(args, text, t.Now)
	}
	return session.Wrap(t.Exec(query, args...), "mark message")
}

// TouchedFiles lists what the tool calls of the path's messages in (after, through] read or
// changed, rows of messages; after 0: from the root.
func (s *Store) TouchedFiles(ctx context.Context, after, through int64) ([]session.TouchedFile, error) {
	spans, err := pathSpans(ctx, s, &through)
	if err != nil {
		return nil, err
	}
	var from session.MessageRef
	if after != 0 {
		if from, err = refOf(ctx, s, after); err != nil {
			return nil, err
		}
	}
	var all []session.TouchedFile
	for _, sp := range spansAfter(spans, from, false) {
		files, err := engine.List[session.TouchedFile](ctx, s, touchedInSpan, sp.Session, sp.From, sp.To)
		if err != nil {
			return nil, fmt.Errorf("touched files: %w", err)
		}
		all = append(files, all...)
	}
	return all, nil
}

const touchedInSpan = `
	SELECT f.path, f.message_id, f.op, f.session_id FROM messages m
	JOIN touched_files f ON f.message_id = m.id
	WHERE m.session_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq, f.path, f.op`
