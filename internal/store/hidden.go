package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Hide is a request to leave a message of the path, or some of its parts, out of what comes next. Nothing is deleted.
type Hide struct {
	Session session.ID
	Message session.MessageRef
	Parts   []int // by their index; nil: all of them
	Idem    *Idempotency
}

// Hidden is what a path has but leaves out: the parts by their index; nil: the whole message.
type Hidden map[session.MessageRef][]int

// Has reports whether a part of a message is left out.
func (h Hidden) Has(ref session.MessageRef, part int) bool {
	parts, known := h[ref]
	return known && (parts == nil || slices.Contains(parts, part))
}

func (h Hidden) add(ref session.MessageRef, parts []int) {
	if before, known := h[ref]; len(parts) == 0 || known && before == nil {
		h[ref] = nil
	} else {
		h[ref] = append(before, parts...)
	}
}

// hidesPrefix begins the external id of a marker that hides, by which an index finds it.
const hidesPrefix = "hides "

// hideExtra is the extra of such a marker, in the words of pi's edits of contexts.
type hideExtra struct {
	Edit session.ContextEdit `json:"context_edit"`
}

// HideMessage leaves a message out. If it is the head, the head moves before it, as by PopMessage; else a marker is
// appended that hides it on all paths with the marker. Codes: NotFound (it is not on the path, or hidden already),
// Conflict (in the trash).
func (s *Store) HideMessage(ctx context.Context, in Hide) (session.Session, error) {
	marker := session.Message{
		Kind: session.KindMarker, Origin: session.Program, Display: true, Dialect: "native",
		Extra: session.JSONOf(hideExtra{session.ContextEdit{Target: in.Message.String(), LeftOut: in.Parts}}),
		Parts: []session.Part{session.TextPart("deleted: " + in.Message.String())},
	}
	if err := s.prepare(&marker); err != nil {
		return session.Session{}, err
	}
	return writeOnce(ctx, s, in.Idem, (*tx).replaySession, func(t *tx) (session.Session, outcome, error) {
		after, err := t.hideMessage(in, marker)
		return after, outcome{
			SessionID: string(in.Session), Revision: after.Revision, HeadID: after.HeadID, Status: 200,
		}, err
	})
}

func (t *tx) hideMessage(in Hide, marker session.Message) (session.Session, error) {
	sess, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return sess, err
	}
	if sess.DeletedAt != nil {
		return sess, inTrash(sess.ID)
	}
	at, err := t.placeAfter(in.Message)
	if err != nil {
		return sess, err
	}
	on := false
	if sess.HeadID != nil {
		if on, err = onPath(t.Ctx, t, *sess.HeadID, *at.id); err != nil {
			return sess, err
		}
	}
	hidden, err := hiddenOn(t.Ctx, t, sess.HeadID)
	if err != nil {
		return sess, err
	}
	parts, known := hidden[in.Message]
	shown := func(part int) bool { return !slices.Contains(parts, part) }
	if !on || known && (parts == nil || in.Parts != nil && !slices.ContainsFunc(in.Parts, shown)) {
		return sess, session.Errorf(session.NotFound, "message %s is not on the path of session %s, or hidden already",
			in.Message, sess.ID)
	}
	if in.Parts == nil && *at.id == *sess.HeadID {
		popped, err := t.popMessage(Pop{Session: sess.ID})
		return popped.Session, err
	}
	marker.ExternalID = fmt.Sprintf("%s%s @%d", hidesPrefix, in.Message, sess.LastSeq+1)
	done, err := t.append(Append{Session: sess.ID}, []session.Message{marker})
	if err != nil {
		return sess, err
	}
	if sess, err = readSession(t.Ctx, t, in.Session); err != nil {
		return sess, err
	}
	sess.Head = done.Head
	sess.Epoch++ // contexts lose a message
	return sess, t.saveProgress(&sess)
}

// Hidden returns what the path to a head leaves out.
func (s *Store) Hidden(ctx context.Context, head *int64) (Hidden, error) {
	return hiddenOn(ctx, s, head)
}

func hiddenOn(ctx context.Context, q engine.Queryer, head *int64) (Hidden, error) {
	hidden := Hidden{}
	spans, err := pathSpans(ctx, q, head)
	if err != nil {
		return nil, err
	}
	read := map[session.ID]bool{}
	for i := range spans {
		id := spans[i].Session
		if read[id] {
			continue
		}
		read[id] = true
		err := engine.Each(ctx, q, func(row *hidingRow) error {
			ref := session.MessageRef{Session: id, Seq: row.Seq}
			if !slices.ContainsFunc(spans, func(sp Span) bool { return sp.holds(ref) }) {
				return nil
			}
			var extra hideExtra
			if json.Unmarshal(row.Extra, &extra) != nil {
				return nil // a caller's own, of this name by chance
			}
			if target, err := session.ParseRef(extra.Edit.Target); err == nil {
				hidden.add(target, extra.Edit.LeftOut)
			}
			return nil
		}, hidingMarkers, id)
		if err != nil {
			return nil, fmt.Errorf("hidden messages of %s: %w", id, err)
		}
	}
	return hidden, nil
}

type hidingRow struct {
	Seq   int64        `db:"seq"`
	Extra session.JSON `db:"extra"`
}

// '!' follows ' '.
const hidingMarkers = `SELECT seq, extra FROM messages
	WHERE session_id = ? AND external_id >= 'hides ' AND external_id < 'hides!' AND external_id <> '' AND kind = 'marker'`

// MessagesByWireID names the messages of a session that contain an item with this id, the newest first: by their
// external id, which may have a number behind it, or else those that came with the id in an item of a reply.
func (s *Store) MessagesByWireID(ctx context.Context, id session.ID, wireID string) ([]session.MessageRef, error) {
	var found []session.MessageRef
	for n := 1; ; n++ {
		ref, err := s.MessageByKey(ctx, id, NumberedKey(wireID, n))
		if err != nil {
			return nil, err
		}
		if ref == nil {
			break
		}
		found = append(found, *ref)
	}
	slices.Reverse(found)
	if len(found) > 0 {
		return found, nil
	}
	seqs, err := engine.List[int64](ctx, s, itemsByWireID, id, wireID)
	for _, seq := range seqs {
		found = append(found, session.MessageRef{Session: id, Seq: seq})
	}
	return found, err
}

// NumberedKey is the external id of the n-th message of a session with the same id of its own.
func NumberedKey(id string, n int) string {
	if n < 2 {
		return id
	}
	return fmt.Sprintf("%s~%d", id, n)
}

const itemsByWireID = `SELECT m.seq FROM messages m JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	WHERE m.session_id = ? AND m.dialect = 'openai.responses' AND m.external_id = '' AND p.extra IS NOT NULL
	  AND CAST(json_extract(p.extra, '$.item.id') AS TEXT) = ? ORDER BY m.seq DESC`

// NearestOn names the last message of the path to head that is older than a row; nil: there is none.
func (s *Store) NearestOn(ctx context.Context, head *int64, row int64) (*session.MessageRef, error) {
	spans, err := pathSpans(ctx, s, head)
	if err != nil {
		return nil, err
	}
	for _, sp := range spans {
		ref, err := engine.First[session.MessageRef](ctx, s, `SELECT session_id || '.' || seq FROM messages
			WHERE session_id = ? AND seq BETWEEN ? AND ? AND id < ? ORDER BY seq DESC LIMIT 1`, sp.Session, sp.From, sp.To, row)
		if err != nil || ref != nil {
			return ref, err
		}
	}
	return nil, nil
}
