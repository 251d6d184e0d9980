// Package opencode reads what opencode and its fork Kilo CLI leave on a host: databases (of versions
// 1.x and 2, often in one file), the trees of JSON files from before (two generations of them),
// exported sessions and share downloads.
//
// All of them become the same form first: messages with parts, as the database of 1.x holds them
// (record.go). Five readers yield these: of rows (database.go), of rows of version 2 (version2.go),
// of files (tree.go), and of exports and shares (export.go). read.go imports a session: rows change
// in place, so a session that changed is read whole, and its messages are compared with the stored
// ones by a fingerprint of what they say.
package opencode

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes opencode's source, with its data folder from the environment:
// $XDG_DATA_HOME/opencode, else ~/.local/share/opencode, and the database of $OPENCODE_DB.
func New(env func(string) string, now func() time.Time) *history.Program {
	return newSource(session.SourceOpencode, env("OPENCODE_DB"), env, now)
}

// NewKilo makes Kilo CLI's source: $XDG_DATA_HOME/kilo, else ~/.local/share/kilo, and $KILO_DB.
func NewKilo(env func(string) string, now func() time.Time) *history.Program {
	return newSource(session.SourceKilo, env("KILO_DB"), env, now)
}

// newSource makes the source of a program whose name is that of its data folder and begins those of its
// databases.
func newSource(name session.Source, db string, env func(string) string, now func() time.Time) *history.Program {
	data := history.FolderIn(history.DataHome(env), string(name))
	if db == ":memory:" || !folders.IsAbs(db) && (db == "" || data == "") {
		db = ""
	} else if !folders.IsAbs(db) {
		db = filepath.Join(data, db)
	}
	return &history.Program{
		Source: name, Folders: history.InFolders(data, db), Now: now,
		Search: func(f *history.Finder, folder string) {
			(&finder{f, string(name)}).folder(folder, maxDepthOfFolders)
		},
		File: file, Order: history.SortedBy(compare), Sessions: sessions, Replay: readExport, Tree: readTree,
		Database: readDatabase,
		Commands: []string{string(name)},
	}
}

// Reasons to skip that only opencode's histories have.
const (
	skipNewer       = "in a newer store already"
	skipEvent       = "event log"
	skipTwin        = "same in both versions of opencode"
	skipOlder       = "changed in version 2 of opencode"
	skipBookkeeping = "bookkeeping"
	skipForeign     = "without conversations, not opened" // counted by table, never read
	skipDiff        = "file diffs"
	skipUnreadable  = "unreadable file"
)

// reads is the version of this reader. Another one reads everything again.
const reads = 4

// Where a session is kept.
const (
	inOldTree  = "old files" // a file for each message
	inTree     = "files"
	inExport   = "export"
	inDatabase = "database"
)

// trustIn ranks where a session is kept, by how much it is trusted.
func trustIn(store string) int {
	return slices.Index([]string{inOldTree, inTree, inExport, inDatabase}, store)
}

// sessions names the sessions of a found thing: those that opencode moved on to its next generation
// still lie in the one before.
func sessions(ctx context.Context, found history.Found) (ids []string, known bool) {
	if !history.IsFolder(found.Path) {
		return history.RowIDs(ctx, found.Path, tableSession, tableSessionV2)
	}
	files, err := sessionFiles(found.Path)
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return files, err == nil
}
