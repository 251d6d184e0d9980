// Package vscodecopilot reads the chats of VS Code: those of GitHub Copilot and of other participants.
//
// A chat is a log of operations on one object, or that object whole. A request of it has the prompt, what the person
// saw of the answer, and in its result the rounds of the model: both hold the same calls. The rounds count where
// they exist.
package vscodecopilot

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

// New makes the source, with the places of VS Code and of the editors that are built from it.
func New(user folders.User, now func() time.Time) *history.Program {
	users := user.Editors("Code", "Code - Insiders", "VSCodium", "Code - OSS", "Positron")
	if flatpak := history.Expand("~/.var/app/com.visualstudio.code/config/Code/User", user.Getenv); flatpak != "" {
		users = append(users, flatpak)
	}
	var places []string
	for _, folder := range users {
		places = append(places, filepath.Join(folder, "workspaceStorage"),
			filepath.Join(folder, "globalStorage", emptyWindows), filepath.Join(folder, "globalStorage", transferred))
	}
	return &history.Program{
		Source: session.SourceVSCodeCopilot, Folders: history.InFolders(places...), Now: now, Search: search,
		Order: history.SortedBy(compare), Replay: read, Commands: []string{"code", "code-insiders", "codium"},
	}
}

// Folders of chats.
const (
	chats        = "chatSessions"
	emptyWindows = "emptyWindowChatSessions"
	transferred  = "transferredChatSessions"
	transcripts  = "transcripts"
)

// Reasons to skip that only these chats have.
const (
	skipCopy = "copy of a stored chat"
	skipTurn = "mark of a turn"
	skipBare = "request without a prompt"
)

// maxDepth reaches from a home to a transcript.
const maxDepth = 9

// search lists the chats and transcripts below a folder.
func search(f *history.Finder, folder string) {
	f.Folder(folder, maxDepth, func(name string) bool {
		return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")
	})
	f.Found = slices.DeleteFunc(f.Found, func(found history.Found) bool { return !isHistory(found.Path) })
}

func isHistory(path string) bool {
	switch folder := filepath.Base(filepath.Dir(path)); folder {
	case chats, emptyWindows, transferred:
		return true
	case transcripts:
		return isTranscript(path)
	}
	return false
}

func isTranscript(path string) bool {
	folder := filepath.Dir(path)
	return filepath.Base(folder) == transcripts && filepath.Ext(path) == ".jsonl" &&
		strings.EqualFold(filepath.Base(filepath.Dir(folder)), "github.copilot-chat")
}

// compare orders chats before their copies, which say less, and transcripts last.
func compare(a, b history.Found) int {
	return cmp.Or(rank(a.Path)-rank(b.Path), cmp.Compare(b.Size, a.Size), strings.Compare(a.Path, b.Path))
}

func rank(path string) int {
	switch {
	case isTranscript(path):
		return 2
	case filepath.Ext(path) == ".json":
		return 1
	}
	return 0
}
