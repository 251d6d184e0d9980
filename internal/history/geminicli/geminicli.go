// Package geminicli reads the sessions of Gemini CLI: files of JSON lines (generation 2), files
// of one JSON object (generation 1), and the log of prompts where neither is left.
//
// Gemini CLI writes a message again when it becomes more, replaces the whole list of messages
// when it resumes or compacts, and takes messages back. So a file is folded first, into the
// messages that there ever were and the list that is left; then they are added in the order in
// which they came.
package geminicli

import (
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Gemini CLI's folder in the home that env names. Beside its sessions lie
// credentials, which are never opened.
func New(env func(string) string, now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceGeminiCLI, Folders: history.InFolders(history.FolderIn(history.Expand("~/.gemini", env),
			"tmp")), Now: now,
		Search: func(f *history.Finder, folder string) { f.Folder(folder, maxDepth, isHistory) },
		Order:  history.SortedBy(compare), Replay: read, Commands: []string{"gemini", "gemini-cli"},
	}
}

// Reasons to skip that only these files have.
const (
	skipHeader   = "repeated header"
	skipSettings = "settings of the session"
	skipCarrier  = "results stored with their calls"
	skipPrompt   = "prompt of a session that has a file"
)
