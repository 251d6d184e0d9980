package store

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// Reports gives the newest successful chat calls of a session that were made for a context
// of ours and reported what went in, newest first.
func (s *Store) Reports(ctx context.Context, id session.ID, most int) ([]session.Call, error) {
	var calls []session.Call
	if err := s.list(ctx, &calls, `SELECT `+callColumns+` FROM calls
		WHERE session_id = ? AND session_id <> '' AND purpose = 'chat' AND status = 'ok'
		  AND message_id IS NOT NULL AND context_id IS NOT NULL AND input_tokens + cache_read_tokens + cache_write_tokens > 0
		ORDER BY id DESC LIMIT +?`, id, most); err != nil {
		return nil, fmt.Errorf("reports of %s: %w", id, err)
	}
	return calls, nil
}
