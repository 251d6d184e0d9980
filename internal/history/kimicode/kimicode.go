// Package kimicode reads the sessions of Kimi Code, and those of kimi-cli, which came before it.
//
// A session of Kimi Code is a folder with a log for each of its agents. A log repeats the talk in several kinds of
// records; it counts once: prompts as messages of the context, replies as steps, and usage by usage.record alone,
// which only has the calls beside the talk.
package kimicode

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// New makes the source, with the folders of both programs from the environment. Beside their sessions lie keys, which
// are never opened.
func New(env func(string) string, now func() time.Time) *history.Program {
	place := func(variable, usual string) string {
		root := env(variable)
		if !filepath.IsAbs(root) {
			root = history.Expand(usual, env)
		}
		return history.FolderIn(root, "sessions")
	}
	var known sync.Map // what state.json says, by path
	return &history.Program{
		Source: session.SourceKimiCode, Now: now, Search: search,
		Folders: history.InFolders(place("KIMI_CODE_HOME", "~/.kimi-code"), place("KIMI_SHARE_DIR", "~/.kimi")),
		Order: history.SortedBy(func(a, b history.Found) int {
			return cmp.Or(rank(&known, a)-rank(&known, b), a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(a.Path, b.Path))
		}),
		Replay: read, Commands: []string{"kimi", "kimi-code"},
	}
}

// Names of files.
const (
	logName     = "wire.jsonl"
	contextName = "context.jsonl"
	stateName   = "state.json"
)

// Reasons to skip that only these logs have.
const (
	skipNotes  = "notes of the program"
	skipTwice  = "second copy of the conversation"
	skipEmpty  = "step without words"
	skipMoved  = "moved from kimi-cli, whose session is stored"
	skipSpoken = "prompt that is also a message"
)

// maxDepth reaches from a home to a log.
const maxDepth = 9

// search lists the logs below a folder, and contexts that have no log.
func search(f *history.Finder, folder string) {
	f.Folder(folder, maxDepth, func(name string) bool { return name == logName || name == contextName })
	logs := map[string]bool{}
	for _, found := range f.Found {
		if filepath.Base(found.Path) == logName {
			logs[filepath.Dir(found.Path)] = true
		}
	}
	f.Found = slices.DeleteFunc(f.Found, func(found history.Found) bool {
		return filepath.Base(found.Path) == contextName && logs[filepath.Dir(found.Path)]
	})
}

// place says what a log is of, by its path.
type place struct {
	folder  string // of the session
	agent   string // "": the main one
	isAgent bool   // it is one of Kimi Code's agents, else of kimi-cli
}

func placeOf(path string) place {
	folder := filepath.Dir(path)
	switch above := filepath.Dir(folder); filepath.Base(above) {
	case "agents":
		p := place{folder: filepath.Dir(above), agent: filepath.Base(folder), isAgent: true}
		if p.agent == "main" {
			p.agent = ""
		}
		return p
	case "subagents":
		return place{folder: filepath.Dir(above), agent: filepath.Base(folder)}
	}
	return place{folder: folder}
}

// rank orders the sessions of kimi-cli before what was made of them, origins before their forks, and sessions before
// their agents.
func rank(known *sync.Map, f history.Found) int {
	p := placeOf(f.Path)
	n := 0
	if p.isAgent {
		state, ok := known.Load(p.folder)
		if !ok {
			state = readState(p.folder)
			known.Store(p.folder, state)
		}
		if n = 1; state.(jsonx.Object).String("forkedFrom") != "" {
			n = 2
		}
	}
	if p.agent != "" {
		n += 3
	}
	return n
}

// readState reads what the program says of a session, nothing where it does not.
func readState(folder string) jsonx.Object {
	text, err := history.ReadFile(filepath.Join(folder, stateName))
	if err != nil {
		return nil
	}
	o, _ := jsonx.ReadObject(text)
	return o
}
