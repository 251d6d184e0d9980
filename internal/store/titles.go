package store

import (
	"context"

	"sessiond/internal/session"
)

// improveTitles makes titles of an earlier version anew that came from such a prompt: a person's own titles, those of
// models and programs, and all others stay.
func (s *Store) improveTitles(ctx context.Context) error {
	type titled struct {
		ID    session.ID `db:"id"`
		Title string     `db:"title"`
	}
	poor, err := list[titled](ctx, s, poorTitles)
	if err != nil {
		return wrap(err, "find titles to improve")
	}
	better := map[session.ID]string{}
	for _, old := range poor {
		rows, err := list[int64](ctx, s, firstPrompts, old.ID)
		if err != nil {
			return wrap(err, "prompts of %s", old.ID)
		}
		prompts, err := s.MessagesByID(ctx, rows)
		if err != nil {
			continue // where the file is damaged, the title stays
		}
		for i := range prompts {
			if title := titleOf(&prompts[i]); title != "" && !session.IsCommand(title) {
				better[old.ID] = title
				break
			}
		}
	}
	if len(better) == 0 {
		return nil
	}
	err = s.write(ctx, func(t *tx) error {
		for id, title := range better {
			if err := t.exec(`UPDATE sessions SET title = ?, revision = revision + 1, updated_at = ? WHERE id = ? AND title_source = 'first_message'`, title, t.now, id); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "improve titles")
}

const (
	poorTitles = `
	SELECT id, title FROM sessions WHERE title_source = 'first_message' AND purged_at IS NULL
	AND (title LIKE '/%' OR title LIKE '<%' OR title LIKE '[%' OR title LIKE 'Caveat:%' OR title LIKE '# AGENTS.md%' OR title LIKE '%plan:' OR title LIKE '❯%')`
	firstPrompts = `
	SELECT id FROM messages WHERE session_id = ? AND origin = 'person' AND role = 'user' ORDER BY seq LIMIT 20`
)
