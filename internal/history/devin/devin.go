// Package devin reads the sessions of Devin's command line, which Devin Desktop uses for its local agents, too.
//
// A database holds all messages, as nodes of trees: the conversation goes from a node of the session back to the root,
// what lies beside it was abandoned. A message may stand in several nodes. Transcripts beside the database have what
// builds before the autumn of 2026 used; newer ones have it in the nodes.
package devin

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Devin's folder on the user's system. Its login lies above that folder, and has another
// name.
func New(user folders.User, now func() time.Time) *history.Program {
	data := history.DataHome(user.Getenv)
	if user.IsOn("windows") {
		data = user.Config()
	}
	return &history.Program{
		Source: session.SourceDevin, Folders: history.InFolders(history.FolderIn(data, "devin/cli")), Now: now,
		Search: search, File: (*history.Finder).FileOrDatabase, Replay: readTranscript, Database: readDatabase,
		Commands: []string{"devin"},
		Order: history.SortedBy(func(a, b history.Found) int {
			return cmp.Or(rank(a)-rank(b), strings.Compare(a.Path, b.Path))
		}),
	}
}

const (
	databaseName = "sessions.db"
	transcripts  = "transcripts"
)

// rank puts transcripts behind the databases, whose sessions they are of.
func rank(f history.Found) int {
	if history.IsDatabaseName(f.Path) {
		return 0
	}
	return 1
}

// maxDepth reaches from a home to its database.
const maxDepth = 6

// search lists the databases below a folder, with the transcripts beside them.
func search(f *history.Finder, folder string) {
	before := len(f.Found)
	if f.Usual { // the program's versions lie there, too
		f.Folder(folder, 1, isDatabase)
		folder = filepath.Join(folder, transcripts)
	}
	if !f.Usual || history.IsFolder(folder) {
		f.Folder(folder, maxDepth, func(name string) bool { return isDatabase(name) || strings.HasSuffix(name, ".json") })
	}
	kept := f.Found[:before]
	for _, found := range f.Found[before:] {
		if rank(found) == 0 || filepath.Base(filepath.Dir(found.Path)) == transcripts {
			kept = append(kept, found)
		}
	}
	f.Found = kept
	f.WithLogs(before, isDatabase)
}

func isDatabase(name string) bool { return name == databaseName }
