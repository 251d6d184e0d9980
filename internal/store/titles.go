package store

import (
	"context"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// improveTitles makes titles of an earlier version anew that say nothing, or came from a command or from what a program
// put before the words of a person: a person's own titles, those of
// models and programs, and all others stay.
func (s *Store) improveTitles(ctx context.Context) error {
	type titled struct {
		ID     session.ID `db:"id"`
		Title  string     `db:"title"`
		Marked bool       `db:"marked"` // begins or ends as what programs put around words
	}
	poor, err := engine.List[titled](ctx, s, poorTitles)
	if err != nil {
		return session.Wrap(err, "find titles to improve")
	}
	better := map[session.ID]string{}
	for _, old := range poor {
		if !old.Marked && session.TitleOf(old.Title) != "" {
			continue
		}
		rows, err := engine.List[int64](ctx, s, firstPrompts, old.ID)
		if err != nil {
			return session.Wrap(err, "prompts of %s", old.ID)
		}
		prompts, err := s.MessagesByID(ctx, rows)
		if err != nil {
			continue // where the file is damaged, the title stays
		}
		if nothing := session.TitleOf(old.Title) == ""; nothing {
			better[old.ID] = ""
		}
		for i := range prompts {
			if title := titleOf(&prompts[i]); title != "" {
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
			if err := t.Exec(`UPDATE sessions SET title = ?, title_source = CASE WHEN ? = '' THEN '' ELSE title_source END, revision = revision + 1, updated_at = ?
				WHERE id = ? AND title_source = 'first_message'`, title, title, t.Now, id); err != nil {
				return err
			}
		}
		return nil
	})
	return session.Wrap(err, "improve titles")
}

const (
	poorTitles = `
	SELECT id, title, marked FROM (SELECT *, title LIKE '/%' OR title LIKE '<%' OR title LIKE '[%' OR title LIKE 'Caveat:%' OR title LIKE '# AGENTS.md%'
		OR title LIKE '%plan:' OR title LIKE '❯%' AS marked FROM sessions WHERE title_source = 'first_message' AND purged_at IS NULL) AS titled
	WHERE marked OR LENGTH(title) < 24`
	firstPrompts = `
	SELECT id FROM messages WHERE session_id = ? AND origin = 'person' AND role = 'user' ORDER BY seq LIMIT 20`
)
