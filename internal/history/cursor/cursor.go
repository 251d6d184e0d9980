// Package cursor reads what Cursor leaves on a host: the conversations of its editor, those of its CLI agent, and
// transcripts.
//
// One conversation may lie in several of these stores. The rank is: the editor's bubbles, the agent's store, the
// transcript, which is a lossy copy. The editor's database holds login tokens, too: only named keys of its table of
// items are read.
package cursor

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source, with Cursor's places from the environment.
func New(user folders.User, now func() time.Time) *history.Program {
	var places []string
	for _, folder := range user.Editors("Cursor") {
		places = append(places, filepath.Join(folder, "globalStorage"), filepath.Join(folder, "workspaceStorage"))
	}
	home := user.Getenv("CURSOR_CONFIG_DIR")
	if !filepath.IsAbs(home) {
		home = history.Expand("~/.cursor", user.Getenv)
	}
	for _, name := range []string{"chats", "acp-sessions", "projects"} {
		places = append(places, history.FolderIn(home, name))
	}
	return &history.Program{
		Source: session.SourceCursor, Folders: history.InFolders(places...), Now: now, Search: search, File: file,
		Order: history.SortedBy(compare), Replay: readTranscript, Database: readDatabase,
		Commands: []string{"cursor", "cursor-agent", "Cursor"},
	}
}

// Reasons to skip that only Cursor's histories have.
const (
	skipCopy    = "lossy copy of a stored conversation"
	skipNull    = "row without a value"
	skipEmpty   = "bubble without words"
	skipTurnEnd = "end of a turn"
	skipNoStore = "chat of which no message is left"
)

// Names of Cursor's stores.
const (
	editorName  = "state.vscdb"
	agentName   = "store.db"
	transcripts = "agent-transcripts"
)

var transcriptName = pattern.New(`^[0-9A-Za-z][0-9A-Za-z_-]{7,}\.(jsonl|txt)$`)

// maxDepth reaches from a home to the store of an SDK's agent.
const maxDepth = 8

// search lists the databases and transcripts below a folder.
func search(f *history.Finder, folder string) {
	before := len(f.Found)
	f.Folder(folder, maxDepth, func(name string) bool {
		return name == editorName || name == agentName || transcriptName.MatchString(name)
	})
	kept := f.Found[:before]
	for _, found := range f.Found[before:] {
		switch name := filepath.Base(found.Path); {
		case name == editorName || name == agentName:
			if with, err := history.StatSQLite(found.Path); err == nil {
				found = with
			}
		case !slices.Contains(strings.Split(found.Path, string(filepath.Separator)), transcripts):
			continue
		}
		kept = append(kept, found)
	}
	f.Found = kept
}

// file lists a file that is named.
func file(f *history.Finder, path string) {
	if name := filepath.Base(path); name == editorName || name == agentName || history.IsDatabaseName(path) {
		f.Database(path)
	} else {
		f.File(path)
	}
}

// compare orders the stores by their rank, and sub-agents behind the sessions that started them.
func compare(a, b history.Found) int {
	return cmp.Or(rank(a.Path)-rank(b.Path), a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(a.Path, b.Path))
}

func rank(path string) int {
	switch name := filepath.Base(path); {
	case name == editorName && filepath.Base(filepath.Dir(path)) == "globalStorage":
		return 0
	case name == editorName:
		return 1
	case name == agentName:
		return 2
	case filepath.Base(filepath.Dir(path)) == "subagents":
		return 4
	}
	return 3
}

// modelOf returns the name of a model, "" for the one that Cursor chooses without saying which.
func modelOf(name string) string {
	if name == "default" || name == "auto" {
		return ""
	}
	return name
}

// call begins a row of the ledger.
func call(id string, at session.Time) history.Call {
	return history.Call{Call: session.Call{ExternalID: "cursor:" + id, CreatedAt: at}}
}
