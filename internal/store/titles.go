package store

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// SetModelTitle gives a session a title that a model made, unless somebody gave it one.
func (s *Store) SetModelTitle(ctx context.Context, id session.ID, title string) error {
	if err := checkStorable([]field{{"title", title}}); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		res, err := t.exec(`UPDATE sessions SET title = ?, title_source = 'model', revision = revision + 1, updated_at = ?
			WHERE id = ? AND title_source = 'first_message' AND deleted_at IS NULL`, title, t.now, id)
		if err != nil {
			return fmt.Errorf("set the title: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return t.event(id, EventSessionChanged, 0, nil)
	})
}
