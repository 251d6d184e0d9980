// Package cline reads the sessions of Cline and of its forks, Roo Code first of all.
//
// There are two stores. Cline's CLI 3 and its extension from version 4 on write a folder for each session, with the
// messages of the session and of its sub-agents. Older extensions, CLI 1 and 2 and all forks write a folder for each
// task: the messages as they went to the model, and events for the screen, which have the times and the usage.
package cline

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Folders of extensions, below globalStorage. The first of each program is its own, others are forks of it.
var (
	clineFolders = []string{"saoudrizwan.claude-dev"}
	rooFolders   = []string{"rooveterinaryinc.roo-cline", "zoocodeorganization.zoo-code", "kilocode.kilo-code"}
)

// New makes the source of Cline, with its places from the environment.
func New(user folders.User, now func() time.Time) *history.Program {
	env := user.Getenv
	data := env("CLINE_DATA_DIR")
	if !filepath.IsAbs(data) {
		if data = history.Expand("~/.cline/data", env); filepath.IsAbs(env("CLINE_DIR")) {
			data = filepath.Join(env("CLINE_DIR"), "data")
		}
	}
	sessions := env("CLINE_SESSION_DATA_DIR")
	if !filepath.IsAbs(sessions) {
		sessions = history.FolderIn(data, "sessions")
	}
	places := append([]string{sessions, history.FolderIn(data, "tasks")}, tasks(user, clineFolders)...)
	return program(session.SourceCline, places, now)
}

// NewRoo makes the source of Roo Code and of its forks: Zoo Code, and Kilo Code until version 5.
func NewRoo(user folders.User, now func() time.Time) *history.Program {
	return program(session.SourceRoo, tasks(user, rooFolders), now)
}

func program(source session.Source, places []string, now func() time.Time) *history.Program {
	isRoo := source == session.SourceRoo
	return &history.Program{
		Source: source, Folders: history.InFolders(places...), Now: now, Order: history.SortedBy(compare),
		Search: func(f *history.Finder, folder string) { search(f, folder, isRoo) },
		File:   file,
		Tree:   read, Replay: refuse, Commands: []string{"cline"},
	}
}

// tasks returns the folders of tasks of some extensions, in all editors.
func tasks(user folders.User, extensions []string) (places []string) {
	users := user.Editors("Code", "Code - Insiders", "VSCodium", "Code - OSS", "Cursor", "Windsurf")
	for _, server := range []string{"~/.vscode-server", "~/.vscode-remote", "~/.cursor-server"} {
		if folder := history.Expand(server+"/data/User", user.Getenv); folder != "" {
			users = append(users, folder)
		}
	}
	for _, folder := range users {
		for _, extension := range extensions {
			places = append(places, filepath.Join(folder, "globalStorage", extension, "tasks"))
		}
	}
	return places
}

// Names of files.
const (
	messagesEnd = ".messages.json"
	talkName    = "api_conversation_history.json"
	oldTalkName = "claude_messages.json"
	eventsName  = "ui_messages.json"
	itemName    = "history_item.json"
	factsName   = "task_metadata.json"
)

// Reasons to skip that only these stores have.
const (
	skipConverted = "converted from a task that is stored"
	skipEvent     = "event for the screen"
	skipNotice    = "notice of the program"
)

// maxDepth reaches from a home to the messages of a task.
const maxDepth = 9

// search lists the folders of sessions and tasks. Those of other programs of the family are left to these.
func search(f *history.Finder, folder string, isRoo bool) {
	before := len(f.Found)
	f.Folder(folder, maxDepth, isMessages)
	f.Trees(before, allFiles)
	f.Found = slices.DeleteFunc(f.Found, func(found history.Found) bool { return isOfRoo(found.Path) != isRoo })
}

// allFiles matches what a session or task consists of.
const allFiles = "*.json"

func isMessages(name string) bool {
	return strings.HasSuffix(name, messagesEnd) || name == talkName || name == oldTalkName || name == eventsName
}

// file takes the session or task of a file that was named.
func file(f *history.Finder, path string) {
	if isMessages(filepath.Base(path)) {
		f.TreeAround(path, allFiles)
	} else {
		f.File(path)
	}
}

// isOfRoo reports whether a folder is one of Roo Code's or of its forks' tasks.
func isOfRoo(folder string) bool {
	extension := filepath.Base(filepath.Dir(filepath.Dir(folder)))
	return slices.Contains(rooFolders, extension) || strings.Contains(extension, "roo")
}

// compare orders tasks before sessions, which may go on with them, and these by the time in their names, so that a fork
// comes after its origin.
func compare(a, b history.Found) int {
	return cmp.Or(rank(a.Path)-rank(b.Path), strings.Compare(filepath.Base(a.Path), filepath.Base(b.Path)))
}

func rank(folder string) int {
	if filepath.Base(filepath.Dir(folder)) == "tasks" {
		return 0
	}
	return 1
}

// refuse reports a file that is no folder of a session.
func refuse(in *history.Intake) {
	in.Fail(session.Errorf(session.Invalid, "no session of %s: name the folder that holds its messages", in.Source()))
}
