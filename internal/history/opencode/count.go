package opencode

import (
	"context"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// SessionIDs implements history.Lister: what opencode moved on to its next generation still
// lies in the one before.
func (s *Source) SessionIDs(ctx context.Context, found history.Found) ([]string, error) {
	if history.IsFolder(found.Path) {
		pattern := filepath.Join(found.Path, "session", "*", "*.json")
		if !isTree(found.Path) {
			pattern = filepath.Join(found.Path, "info", "*.json")
		}
		files, err := filepath.Glob(pattern)
		for i, file := range files {
			files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
		}
		return files, err
	}
	return history.RowIDs(ctx, found.Path, tableSession, tableSessionV2)
}
