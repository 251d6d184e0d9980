package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// talkOfRow is session.TalkOf of a row m of messages.
const talkOfRow = `
	CASE WHEN m.kind IN ('unknown', 'custom') OR m.role = 'system' OR m.origin = 'program' AND m.display = 0
	       OR m.kind = 'marker' AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	              AND p.kind = 'text' AND (p.text <> '' OR p.blob IS NOT NULL))
	     THEN 'program'
	     WHEN m.display = 1 AND (m.origin = 'person' OR m.origin = 'model' AND EXISTS (
	              SELECT 1 FROM parts p WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
	              AND p.kind IN ('text', 'refusal') AND (p.text <> '' OR p.blob IS NOT NULL)))
	     THEN 'said' ELSE 'work' END`

// SaidOnPath counts the messages of a session's own on a path that a person or a model said.
func (s *Store) SaidOnPath(ctx context.Context, path Ranges, id session.ID) (said int64, err error) {
	for _, sp := range path {
		if sp.Session != id {
			continue
		}
		n, err := engine.Get[int64](ctx, s, saidInRange, sp.Session, sp.From, sp.To)
		if err != nil {
			return 0, fmt.Errorf("count what was said in %s: %w", id, err)
		}
		said += n
	}
	return said, nil
}

const saidInRange = `SELECT COUNT(*) FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND talk = 'said'`

// LastInTalk returns the beginnings of the last messages of a path that are no rows of the program, oldest first; at
// most so many.
func (s *Store) LastInTalk(ctx context.Context, path Ranges, most int,
	head session.Head,
) (msgs []session.Message, err error) {
	var rows []int64
	for _, sp := range slices.Backward(path) {
		if len(rows) >= most {
			break
		}
		some, err := engine.List[int64](ctx, s, lastOfTalk, sp.Session, sp.From, sp.To, most-len(rows))
		if err != nil {
			return nil, fmt.Errorf("last messages of %s: %w", sp.Session, err)
		}
		rows = append(rows, some...)
	}
	err = s.EachHead(ctx, rows, head, func(m *session.Message) error {
		msgs = append(msgs, *m)
		return nil
	})
	return msgs, err
}

const lastOfTalk = `
	SELECT id FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND talk <> 'program' ORDER BY seq DESC LIMIT ?`
