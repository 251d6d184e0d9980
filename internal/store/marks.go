package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Kinds of marks.
const (
	MarkPin  = "pin"  // stays in the context even when an overlay hides it
	MarkTag  = "tag"  // a person's word for a session or a message
	MarkNote = "note" // a person's text about one
	// MarkLabel is the first tag of a message, which programs call its label. It is stored as a tag in place 0.
	MarkLabel = "label"
)

// mostTags is how many tags a session or a message has at most.
const mostTags = 100

// Pins lists the pinned messages of a session, by row, oldest first.
func (s *Store) Pins(ctx context.Context, id session.ID) ([]int64, error) {
	return engine.List[int64](ctx, s, pinsOfSession, id)
}

const pinsOfSession = `SELECT message_id FROM marks WHERE session_id = ? AND kind = 'pin' ORDER BY message_id`

// Marks lists the pins, tags and notes of a session and of the messages of its tree: first the session's own, then by
// message. Codes: NotFound.
func (s *Store) Marks(ctx context.Context, id session.ID) ([]session.Mark, error) {
	if _, err := s.Session(ctx, id); err != nil {
		return nil, err
	}
	all, err := engine.List[session.Mark](ctx, s, marksOfSession, id)
	return all, session.Wrap(err, "marks of %s", id)
}

const (
	markColumns = `k.session_id, k.message_id, k.kind, k.text, k.place, k.revision, k.created_at, m.session_id || '.' || m.seq AS message`

	marksOfSession = `SELECT ` + markColumns + ` FROM marks k LEFT JOIN messages m ON m.id = k.message_id
		WHERE k.session_id = ? ORDER BY k.message_id, k.kind, k.place`
)

// mostMarksWith is how many marks a search looks at, the newest ones.
const mostMarksWith = 1000

// MarksWith returns the tags and notes that have one of the texts in them, in small letters, of sessions that are not
// in the trash; the newest if there are very many.
func (s *Store) MarksWith(ctx context.Context, texts []string) ([]session.Mark, error) {
	in, args := scopeOf(ctx)
	all, err := engine.List[session.Mark](ctx, s, fmt.Sprintf(marksWith, in),
		append(append([]any{string(session.JSONOf(texts))}, args...), mostMarksWith)...)
	return all, session.Wrap(err, "marks by their texts")
}

const marksWith = `
	WITH wanted AS MATERIALIZED (SELECT value FROM json_each(?))
	SELECT ` + markColumns + ` FROM marks k JOIN sessions s ON s.id = k.session_id LEFT JOIN messages m ON m.id = k.message_id
	WHERE k.kind <> 'pin' AND s.deleted_at IS NULL AND s.purged_at IS NULL%s
	  AND EXISTS (SELECT 1 FROM wanted t WHERE INSTR(LOWER(k.text), t.value) > 0) ORDER BY k.created_at DESC LIMIT ?`

// Marking is a session, or a message of its tree, that a person marks.
type Marking struct {
	Session session.ID
	Message *session.MessageRef // nil: the session itself
	Idem    *Idempotency
}

// ChangeTags adds tags and removes others. A tag that is there stays as it was written. Codes: NotFound, Invalid.
func (s *Store) ChangeTags(ctx context.Context, of Marking, add, remove []string) (session.Session, error) {
	return s.mark(ctx, of, func(t *tx, sess *session.Session, row int64) (bool, error) {
		had, err := t.tagsOf(sess.ID, row)
		if err != nil {
			return false, err
		}
		changed := false
		for _, text := range remove {
			if i := indexOfTag(had, text); i >= 0 {
				if err := t.removeMark(sess.ID, row, MarkTag, had[i].Place); err != nil {
					return false, err
				}
				had, changed = slices.Delete(had, i, i+1), true
			}
		}
		for _, text := range add {
			if text, err = session.CheckTag(text); err != nil {
				return false, err
			}
			if indexOfTag(had, text) >= 0 {
				continue
			}
			if len(had) == mostTags {
				return false, session.Errorf(session.Invalid, "it has %d tags, which is the limit: remove one first", mostTags).
					At("tag", "at most %d tags", mostTags)
			}
			place := int64(1)
			if len(had) > 0 {
				place = max(place, had[len(had)-1].Place+1)
			}
			if err := t.setMark(sess.ID, row, MarkTag, text, place, 0); err != nil {
				return false, err
			}
			had, changed = append(had, session.Mark{Text: text, Place: place}), true
		}
		return changed, nil
	})
}

// Note returns the note of a session or a message; its revision is 0 where there is none. Codes: NotFound.
func (s *Store) Note(ctx context.Context, of Marking) (note session.Mark, err error) {
	row := int64(0)
	if of.Message != nil {
		m, err := s.TreeMessage(ctx, of.Session, *of.Message)
		if err != nil {
			return note, err
		}
		row = m.RowID
	} else if _, err := s.Session(ctx, of.Session); err != nil {
		return note, err
	}
	found, err := engine.First[session.Mark](ctx, s, noteOf, of.Session, row)
	if found == nil {
		found = &session.Mark{Session: of.Session, Message: of.Message, Kind: MarkNote}
	}
	return *found, session.Wrap(err, "note of %s", of.Session)
}

const noteOf = `SELECT ` + markColumns + ` FROM marks k LEFT JOIN messages m ON m.id = k.message_id
	WHERE k.session_id = ? AND k.message_id = ? AND k.kind = 'note'`

// SetNote writes the note of a session or a message; "" removes it. If ifRevision is not nil, the stored note must have
// that revision; 0 means that there must be no note. Codes: NotFound, Invalid, PreconditionFailed (somebody else
// changed the note).
func (s *Store) SetNote(ctx context.Context, of Marking, text string, ifRevision *int64,
) (note session.Mark, err error) {
	if text, err = session.CheckNote(text); err != nil {
		return note, err
	}
	_, err = s.mark(ctx, of, func(t *tx, sess *session.Session, row int64) (bool, error) {
		had, err := engine.First[session.Mark](t.Ctx, t, noteOf, sess.ID, row)
		if err != nil {
			return false, err
		}
		note = session.Mark{Session: sess.ID, Message: of.Message, Kind: MarkNote}
		if had != nil {
			note = *had
		}
		switch {
		case ifRevision != nil && *ifRevision != note.Revision:
			return false, session.Errorf(session.PreconditionFailed,
				"the note was changed meanwhile: it is at revision %d, not %d; read it again and decide anew", note.Revision,
				*ifRevision)
		case text == note.Text:
			return false, nil
		}
		note.Text, note.Revision, note.At = text, sess.Revision+1, t.Now
		if text == "" {
			note.Revision = 0
			return true, t.removeMark(sess.ID, row, MarkNote, 0)
		}
		return true, t.setMark(sess.ID, row, MarkNote, text, 0, note.Revision)
	})
	return note, err
}

// SetMark sets or, with on false, removes a pin, or the label of a message: its first tag. A pin on a message that the
// effective overlay hides begins a new epoch, since it comes back into the context.
// Codes: NotFound.
func (s *Store) SetMark(ctx context.Context, id session.ID, ref session.MessageRef, kind, text string,
	on bool,
) (session.Session, error) {
	return s.mark(ctx, Marking{Session: id, Message: &ref}, func(t *tx, sess *session.Session, row int64) (bool, error) {
		switch {
		case kind == MarkLabel && on:
			return true, t.setLabel(id, row, text)
		case kind == MarkLabel:
			return true, t.removeFirstTag(id, row)
		case on:
			if err := t.setMark(id, row, kind, text, 0, 0); err != nil {
				return false, err
			}
		default:
			if err := t.removeMark(id, row, kind, 0); err != nil {
				return false, err
			}
		}
		if kind == MarkPin && sess.CompactionID != nil {
			return false, t.newEpoch(sess, 0) // it is a change of its own
		}
		return true, nil
	})
}

// mark runs a change of the marks of a session or of a message of its tree. If the change says so, the session gets a
// new revision. The row is 0 for the session itself. Codes: NotFound.
func (s *Store) mark(ctx context.Context, of Marking,
	change func(t *tx, sess *session.Session, row int64) (changed bool, err error),
) (session.Session, error) {
	return writeOnce(ctx, s, of.Idem, (*tx).replaySession, func(t *tx) (sess session.Session, o outcome, err error) {
		if sess, err = readSession(t.Ctx, t, of.Session); err != nil {
			return sess, o, err
		}
		row := int64(0)
		if of.Message != nil {
			at, err := t.placeAfter(*of.Message)
			if err != nil {
				return sess, o, err
			}
			row = *at.id
			if err := checkOnTree(t.Ctx, t, sess, *of.Message, row); err != nil {
				return sess, o, err
			}
		}
		before := sess.Revision
		changed, err := change(t, &sess, row)
		if err != nil {
			return sess, o, err
		}
		if changed {
			err = t.Exec(`UPDATE sessions SET revision = revision + 1, updated_at = ? WHERE id = ?`, t.Now, of.Session)
		}
		if changed || sess.Revision != before {
			err = cmp.Or(err, t.event(of.Session, EventSessionChanged, 0, nil))
		}
		if err != nil {
			return sess, o, err
		}
		sess, err = readSession(t.Ctx, t, of.Session)
		return sess, outcome{SessionID: string(of.Session), Revision: sess.Revision, Status: 200}, err
	})
}

// tagsOf returns the tags of a message, or of the session itself, in their order.
func (t *tx) tagsOf(id session.ID, row int64) ([]session.Mark, error) {
	all, err := engine.List[session.Mark](t.Ctx, t, `SELECT text, place FROM marks
		WHERE session_id = ? AND message_id = ? AND kind = 'tag' ORDER BY place`, id, row)
	return all, session.Wrap(err, "read tags")
}

// indexOfTag returns the index of a tag that is written so in any case, -1: there is none.
func indexOfTag(tags []session.Mark, text string) int {
	return slices.IndexFunc(tags, func(m session.Mark) bool { return strings.EqualFold(m.Text, text) })
}

// setLabel makes a text the first tag of a message, in the place of the label that it had.
func (t *tx) setLabel(id session.ID, row int64, text string) error {
	if err := t.Exec(`DELETE FROM marks WHERE session_id = ? AND message_id = ? AND kind = 'tag' AND (place = 0 OR text = ?)`,
		id, row, text); err != nil {
		return err
	}
	return t.setMark(id, row, MarkTag, text, 0, 0)
}

func (t *tx) removeFirstTag(id session.ID, row int64) error {
	tags, err := t.tagsOf(id, row)
	if err != nil || len(tags) == 0 {
		return err
	}
	return t.removeMark(id, row, MarkTag, tags[0].Place)
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

func (t *tx) setMark(id session.ID, messageID int64, kind, text string, place, revision int64) error {
	return session.Wrap(t.Exec(`INSERT INTO marks (session_id, message_id, kind, text, created_at, place, revision)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id, message_id, kind, place)
		DO UPDATE SET text = excluded.text, created_at = CASE excluded.kind WHEN 'pin' THEN marks.created_at ELSE excluded.created_at END, revision = excluded.revision`,
		id, messageID, kind, text, t.Now, place, revision), "mark")
}

func (t *tx) removeMark(id session.ID, messageID int64, kind string, place int64) error {
	return session.Wrap(t.Exec(`DELETE FROM marks WHERE session_id = ? AND message_id = ? AND kind = ? AND place = ?`,
		id, messageID, kind, place), "remove a mark")
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
