// Package codex reads the rollouts of the Codex CLI, its IDE extension and its app: bare items,
// envelopes, and paginated histories; plain or compressed, live or archived.
//
// Codex writes most of a conversation twice: as items (response_item), which the model sees, and as
// events (event_msg) for its display. The items count. An event that repeats one is skipped, but it
// tells which items in the user's role a person wrote; token counts, roll-backs, aborts and names are
// events only. In a file without items the events are the conversation.
//
// A file is read twice. The survey finds what a line by itself does not say: which of the
// user's messages a person wrote, where the copies of a fork end, and which records at the end
// belong to a reply that is still being written. The second pass turns records into messages.
//
// A record of the conversation is known by a hash of what it says and of all that was said
// before it. So a record has the same key wherever a rollout is moved, compressed or copied
// to, a fork's copies have the keys of their originals, and what follows a changed record has
// keys of its own: it is a branch.
package codex

import (
	"cmp"
	"path/filepath"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/session"
)

func homeOf(env func(string) string) string {
	return cmp.Or(env("CODEX_HOME"), history.Expand("~/.codex", env))
}

// New makes the source, with Codex' usual place from the environment: $CODEX_HOME, else
// ~/.codex, and $CODEX_SQLITE_HOME for its mirror.
func New(env func(string) string, now func() time.Time) *history.Program {
	home := homeOf(env)
	state := env("CODEX_SQLITE_HOME")
	if !folders.IsAbs(state) || state == home {
		state = ""
	}
	return &history.Program{
		Source: session.SourceCodex, Folders: func() []string { return places(home, state) }, Now: now,
		Search: search, File: file, Order: ordered, Sessions: sessions, Replay: read, Database: readMirror,
		Commands: []string{"codex"}, EarlyToo: func(path string) bool { return beside(filepath.Base(path)) == 0 },
	}
}

func read(in *history.Intake) {
	switch filepath.Base(in.Found.Path) {
	case indexName:
		readNames(in)
		return
	case promptsName:
		readPrompts(in)
		return
	}
	readRollout(in)
}

// Reasons to skip that only rollouts have.
const (
	skipHeader    = "repeated header"
	skipOrigin    = "header of the session it was forked off"
	skipInherited = "inherited from the session it was forked off"
	skipFiller    = "state record without content"
	skipCopy      = "event that repeats an item"
	skipTurn      = "beginning or end of a turn"
	skipContext   = "unchanged turn context"
	skipTokens    = "token count that repeats"
	skipNoTokens  = "token count without usage"
	skipName      = "name of a session that is not here"
	skipOldName   = "older name of a session"
	skipNoName    = "no name of a session"
	skipThread    = "state of a session that is not here"
	skipEdge      = "link of a session that is not here"
	skipCircle    = "link in a circle"
	skipPrompt    = "prompt of a session that is here"
	skipLost      = "prompt of a session that is not here"
	skipNoPrompt  = "no prompt of a session"
	skipEmpty     = "item without content"
)

// Outer types of records.
const (
	typeMeta      = "session_meta"
	typeContext   = "turn_context"
	typeItem      = "response_item"
	typeEvent     = "event_msg"
	typeCompacted = "compacted"
	typeUsage     = "token_usage_record"
	typeWorld     = "world_state"
	typeAgents    = "inter_agent_communication"
	typeAgentMeta = "inter_agent_communication_metadata"
	typeFiller    = "state" // of the era before envelopes
)

// paginated is the history_mode of files whose events are few and whose records are numbered.
const paginated = "paginated"
