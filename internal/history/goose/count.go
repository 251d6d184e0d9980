package goose

import (
	"context"

	"sessiond/internal/history"
)

// CountSessions implements history.Counter.
func (s *Source) CountSessions(ctx context.Context, found history.Found) (int, error) {
	if !isDatabase(found.Path) {
		return 1, nil
	}
	return history.CountRows(ctx, found.Path, "sessions")
}
