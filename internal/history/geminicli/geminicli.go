// Package geminicli reads the sessions of Gemini CLI: files of JSON lines (generation 2), files
// of one JSON object (generation 1), and the log of prompts where neither is left.
//
// Gemini CLI writes a message again when it becomes more, replaces the whole list of messages
// when it resumes or compacts, and takes messages back. So a file is folded first, into the
// messages that there ever were and the list that is left; then they are added in the order in
// which they came.
package geminicli

import (
	"cmp"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Gemini CLI's folders from the environment. Beside its sessions lie credentials, which are
// never opened.
func New(env func(string) string, now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceGeminiCLI, Folders: history.InFolders(history.FolderIn(homeOf(env), "tmp")), Now: now,
		Search: func(f *history.Finder, folder string) { f.Folder(folder, maxDepth, isHistory) },
		Order:  history.SortedBy(compare), Replay: read, Commands: []string{"gemini", "gemini-cli"},
	}
}

// homeOf returns Gemini CLI's folder, "" where it is not known.
func homeOf(env func(string) string) string {
	return history.FolderIn(cmp.Or(env("GEMINI_CLI_HOME"), env("HOME")), ".gemini")
}

// Reasons to skip that only these files have.
const (
	skipHeader   = "repeated header"
	skipSettings = "settings of the session"
	skipCarrier  = "results stored with their calls"
	skipPrompt   = "prompt of a session that has a file"
	skipSilent   = "session in which nobody spoke"
)
