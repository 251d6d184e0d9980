// Package zed reads the threads of Zed's own agent.
//
// One database holds all threads, each as one document that is replaced at every save. request_token_usage has the last
// request of each turn alone: it is the size of a context, and no sum. Threads of other agents in Zed lie in the
// histories of those.
package zed

import (
	"path/filepath"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Zed's places on the user's system.
func New(user folders.User, now func() time.Time) *history.Program {
	data := filepath.Join(user.Data(), "zed")
	if user.IsOn("darwin") || user.IsOn("windows") {
		data = filepath.Join(user.Data(), "Zed")
	}
	flatpak := filepath.Join(user.Getenv("FLATPAK_XDG_DATA_HOME"), "zed")
	if !folders.IsAbs(flatpak) {
		flatpak = history.Expand("~/.var/app/dev.zed.Zed/data/zed", user.Getenv)
	}
	return &history.Program{
		Source: session.SourceZed, Now: now, Search: search, File: (*history.Finder).FileOrDatabase,
		Folders: history.InFolders(history.FolderIn(data, "threads"), history.FolderIn(flatpak, "threads")),
		Replay:  refuse, Database: readDatabase, Commands: []string{"zed", "zeditor", "zed-editor"},
	}
}

const databaseName = "threads.db"

// maxDepth reaches from a folder of data to the threads.
const maxDepth = 4

// search lists the databases below a folder. Settings, which may hold keys, have other names.
func search(f *history.Finder, folder string) {
	before := len(f.Found)
	f.Folder(folder, maxDepth, isOurs)
	f.WithLogs(before, isOurs)
}

func isOurs(name string) bool { return name == databaseName }

func refuse(in *history.Intake) {
	in.Fail(session.Errorf(session.Invalid, "no threads of Zed: that is a database, %s", databaseName))
}
