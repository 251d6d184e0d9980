package goose

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// search lists sessions.db and the *.jsonl files of a folder, and of its `sessions` and
// `data/sessions`, never of Goose's folders for settings and logs. It opens no file.
func search(f *history.Finder, root string) {
	for _, below := range []string{"", "sessions", filepath.Join("data", "sessions")} {
		path := filepath.Join(root, below)
		if below != "" && !history.IsFolder(path) {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, "sessions.db")); err == nil {
			f.Database(filepath.Join(path, "sessions.db"))
		}
		f.Folder(path, 1, func(name string) bool { return strings.HasSuffix(name, ".jsonl") })
	}
}

// file lists a database, a transcript or an export.
func file(f *history.Finder, path string) {
	if history.IsDatabaseName(path) {
		f.Database(path)
	} else {
		f.File(path)
	}
}

// compare orders databases before the files that they may supersede, and these by the time of creation,
// which is their name.
func compare(a, b history.Found) int {
	inDatabase := func(f history.Found) int {
		if history.IsDatabaseName(f.Path) {
			return 1
		}
		return 0
	}
	if by := inDatabase(b) - inDatabase(a); by != 0 || inDatabase(a) == 1 {
		return by
	}
	return history.ByName(a, b)
}

// sessions names the sessions of a database.
func sessions(ctx context.Context, found history.Found) (ids []string, known bool) {
	if !history.IsDatabaseName(found.Path) {
		return nil, false
	}
	return history.RowIDs(ctx, found.Path, tableSessions)
}
