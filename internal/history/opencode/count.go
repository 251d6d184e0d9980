package opencode

import (
	"context"
	"path/filepath"

	"sessiond/internal/history"
)

// CountSessions implements history.Counter.
func (s *Source) CountSessions(ctx context.Context, found history.Found) (int, error) {
	if filepath.Ext(found.Path) == ".db" {
		return history.CountRows(ctx, found.Path, "session")
	}
	sessions, err := filepath.Glob(filepath.Join(found.Path, "session", "*", "*.json")) // of generation 1
	return max(len(sessions), 1), err
}
