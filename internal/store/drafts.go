package store

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/session"
)

// A draft that anything refers to stays.
const forgetDrafts = `
	DELETE FROM sessions WHERE draft = 1 AND created_at < ?1 AND updated_at < ?1 AND message_count = 0
	AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.session_id = sessions.id AND c.session_id <> '')
	AND NOT EXISTS (SELECT 1 FROM states c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_id = sessions.id AND c.parent_id <> '') RETURNING id`

// ForgetDrafts removes the empty drafts that were made before a time, and tells how many.
func (s *Store) ForgetDrafts(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.write(ctx, func(t *tx) error {
		gone, err := list[session.ID](t.ctx, t, forgetDrafts, session.At(before))
		if err != nil {
			return fmt.Errorf("forget drafts: %w", err)
		}
		n = int64(len(gone))
		for _, id := range gone {
			if err := t.execEach([]string{ // what does not keep it
				`DELETE FROM links WHERE session_id = ?`,
				`DELETE FROM compaction_undos WHERE session_id = ?`,
				`DELETE FROM marks WHERE session_id = ?`,
				`DELETE FROM flushes WHERE session_id = ?`,
				`DELETE FROM contexts WHERE session_id = ?`,
			}, id); err != nil {
				return fmt.Errorf("forget draft %s: %w", id, err)
			}
		}
		return nil
	})
	return n, err
}
