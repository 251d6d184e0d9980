// Package hermes reads the sessions of Hermes, the agent of Nous Research.
//
// A database holds them all, one more for each named profile. A compaction hides rows and copies those that it keeps;
// an undone turn is hidden, too. Builds of spring 2026 wrote files, and some wrote both: the database wins.
package hermes

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Hermes's folder from the environment. Beside its sessions lie keys, which are never
// opened.
func New(user folders.User, now func() time.Time) *history.Program {
	home := user.Getenv("HERMES_HOME")
	switch {
	case folders.IsAbs(home):
	case user.IsOn("windows"):
		home = history.FolderIn(user.Data(), "hermes")
	default:
		home = history.FolderIn(user.Home(), ".hermes")
	}
	return &history.Program{
		Source: session.SourceHermes, Folders: history.InFolders(home), Now: now, Search: search,
		File: (*history.Finder).FileOrDatabase, Replay: readFile, Database: readDatabase, Commands: []string{"hermes"},
		Order: history.SortedBy(func(a, b history.Found) int {
			return cmp.Or(rank(a)-rank(b), history.ByName(a, b), strings.Compare(a.Path, b.Path))
		}),
	}
}

const (
	databaseName = "state.db"
	fileStart    = "session_"
)

// rank puts files behind the databases, which win.
func rank(f history.Found) int {
	if history.IsDatabaseName(f.Path) {
		return 0
	}
	return 1
}

// search lists the sessions of a home folder and of its profiles. What else lies there may hold keys, or is large.
func search(f *history.Finder, folder string) {
	homes := []string{folder, filepath.Join(folder, ".hermes")}
	for _, home := range homes[:2:2] {
		profiles, _ := filepath.Glob(filepath.Join(home, "profiles", "*")) // of a good pattern
		homes = append(homes, profiles...)
	}
	before := len(f.Found)
	for i, home := range homes {
		if i == 0 || history.IsFolder(home) {
			f.Folder(home, 1, isOurs)
		}
		if sessions := filepath.Join(home, "sessions"); history.IsFolder(sessions) {
			f.Folder(sessions, 1, isOurs)
		}
	}
	f.WithLogs(before, isDatabase)
}

func isDatabase(name string) bool { return name == databaseName }

// isOurs matches the databases, and the files of older builds but for their index and for copies of requests.
func isOurs(name string) bool {
	return isDatabase(name) || strings.HasPrefix(name, fileStart) && strings.HasSuffix(name, ".json") ||
		strings.HasSuffix(name, ".jsonl")
}
