// Package goose reads what Goose leaves on a host: its database of sessions, in all schema
// versions up to 17, the *.jsonl files from before, and exported sessions.
//
// The rows of a session are read first: when each was written, who sees it, and a print of what it
// says. So copies, edits and compactions are known before the new messages are decoded and added.
package goose

import (
	"path/filepath"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Goose's usual places from the environment: $GOOSE_PATH_ROOT if
// it is an absolute path, else $XDG_DATA_HOME/goose, and where some builds kept sessions.
func New(env func(string) string) *history.Program {
	var places []string
	add := func(base string, below ...string) {
		if base != "" {
			places = append(places, filepath.Join(append([]string{base}, below...)...))
		}
	}
	if root := env("GOOSE_PATH_ROOT"); folders.IsAbs(root) {
		add(root, "data", "sessions")
	} else {
		data := history.DataHome(env)
		add(data, "goose", "sessions")
		add(data, "Block", "goose", "sessions")
		mac := history.Expand("~/Library/Application Support", env)
		add(mac, "Block", "goose", "data", "sessions")
		add(mac, "Block", "goose", "sessions")
		add(mac, "Block.block.goose", "sessions")
		add(mac, "goose", "sessions")
		add(env("APPDATA"), "Block", "goose", "data", "sessions")
		add(env("APPDATA"), "Block", "goose", "sessions")
		add(history.Expand("~/.goose/sessions", env))
	}
	return &history.Program{
		Source: session.SourceGoose, Folders: history.InFolders(places...), Search: search, File: file,
		Order: history.SortedBy(compare), Sessions: sessions, Replay: readFile, Database: readDatabase,
	}
}

// Reasons to skip that only Goose's histories have.
const (
	skipSuperseded  = "superseded by database"
	skipInterface   = "interface copy"
	skipBookkeeping = "bookkeeping"
	skipForeign     = "without conversations, not opened" // counted by table, never read
)

// reads is the version of this reader. Another one reads every session of a database again.
const reads = 2
