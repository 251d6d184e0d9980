package goose

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// Find implements history.Source. Of a folder it takes sessions.db and the *.jsonl files, of
// one that holds a `sessions` or `data/sessions` those in there. Goose's folders for settings
// and logs are not looked into. A single file is taken as it is: a database by its *.db, an
// export by its *.json. Only names are looked at; a database comes before the files, which it
// may supersede.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	usual := len(roots) == 0
	if usual {
		roots = s.places
	}
	var databases, files history.Finder
	for _, root := range roots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		info, err := os.Stat(root)
		switch {
		case usual && errors.Is(err, fs.ErrNotExist): // Goose was never used here
		case err != nil:
			files.Problem(root, err)
		case info.IsDir():
			folder(root, &databases, &files)
		case isDatabase(root):
			databases.Database(root)
		default:
			files.File(root)
		}
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
