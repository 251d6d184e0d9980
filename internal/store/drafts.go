package store

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// A draft that anything refers to stays.
const forgetDrafts = `
	DELETE FROM sessions WHERE draft = 1 AND created_at < ? AND message_count = 0
	AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.session_id = sessions.id AND c.session_id <> '')
	AND NOT EXISTS (SELECT 1 FROM states c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_id = sessions.id AND c.parent_id <> '')`

// ForgetDrafts removes the empty drafts that were made before a time, and tells how many.
func (s *Store) ForgetDrafts(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.write(ctx, func(t *tx) error {
		res, err := t.exec(forgetDrafts, session.At(before))
		if err != nil {
			return fmt.Errorf("forget drafts: %w", err)
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}
