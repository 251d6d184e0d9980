package goose

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// Find implements history.Source. It finds sessions.db and the *.jsonl files of a folder, and of
// its `sessions` and `data/sessions`, never in Goose's folders for settings and logs. A single file
// may be a database, *.db, a transcript or an export. Find opens no file; databases come
// before the files that they may supersede.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var databases, files history.Finder
	err := files.Roots(ctx, roots, s.places, func(root string) { folder(root, &databases, &files) }, func(root string) {
		if isDatabase(root) {
			databases.Database(root)
		} else {
			files.File(root)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	files.SortByName() // by the time of creation
	return append(databases.Found, files.Found...), append(databases.Problems, files.Problems...), nil
}

func folder(root string, databases, files *history.Finder) {
	for _, below := range []string{"", "sessions", filepath.Join("data", "sessions")} {
		path := filepath.Join(root, below)
		if below != "" && !history.IsFolder(path) {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, "sessions.db")); err == nil {
			databases.Database(filepath.Join(path, "sessions.db"))
		}
		files.Folder(path, 1, isTranscript)
	}
}

func isTranscript(name string) bool { return strings.HasSuffix(name, ".jsonl") }

func isDatabase(path string) bool {
	switch filepath.Ext(path) {
	case ".db", ".sqlite", ".sqlite3":
		return true
	}
	return false
}

// CountSessions implements history.Counter.
func (s *Source) CountSessions(ctx context.Context, found history.Found) (int, error) {
	if !isDatabase(found.Path) {
		return 1, nil
	}
	return history.CountRows(ctx, found.Path, "sessions")
}
