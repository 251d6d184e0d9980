// Package openclaw reads the conversations that OpenClaw keeps, also those from the time when
// it was called Clawdbot and Moltbot: transcripts in pi's form, the index of session keys
// beside them, the registry of sub-agents, and the databases that replaced the files in July
// 2026.
//
// Whatever a session lies in, its lines are read twice, as pi's are: first to find how they
// hang together, then to decode those that are new. Several files may hold one session
// (the database, a file left behind by the move to it, copies that were made before something
// was cut off): entries are known by their ids, and only one of them moves the head.
package openclaw

import (
	"sync"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// source is what reading one found thing must know of the others.
type source struct {
	env func(string) string

	mu     sync.Mutex
	agents map[string]*agent // by folder: what is known of an agent's sessions
	heads  map[string]head   // of transcripts, by path: a header does not change
	asked  map[string]bool   // transcripts of deleted sessions: whether they were named themselves
}

// New makes the source. Its usual places come from the environment: $OPENCLAW_STATE_DIR and
// its older names, $OPENCLAW_HOME, $HOME.
func New(env func(string) string) *history.Program {
	s := &source{env: env, agents: map[string]*agent{}, heads: map[string]head{}, asked: map[string]bool{}}
	return &history.Program{
		Source: session.SourceOpenClaw, Folders: s.places, Search: gateway, File: s.file, Order: s.inOrder,
		Replay: s.readFile, Database: s.readDatabase,
	}
}

// Reasons to skip that only OpenClaw's files have.
const (
	skipBackup      = "backup of known entry"
	skipOlder       = "older copy of the session"
	skipDeleted     = "deleted by the user"
	skipBookkeeping = "bookkeeping"
	skipTrace       = "trace"
	skipDerived     = "derived"
	skipHot         = "in cold storage and in the database"
	skipPending     = "pending"
	skipUnchanged   = "unchanged"
)

// The types of lines, of which all but the header, leaf and unknown ones are canonical: they
// move the leaf.
const (
	lineSession    = "session"
	lineMessage    = "message"
	lineModel      = "model_change"
	lineCompaction = "compaction"
	lineReset      = "reset"
	lineLabel      = "label"
	lineInfo       = "session_info"
	lineLeaf       = "leaf"
)

func canonical(lineType string) bool {
	switch lineType {
	case lineMessage, lineModel, lineCompaction, lineReset, lineLabel, lineInfo,
		"thinking_level_change", "branch_summary", "custom", "custom_message":
		return true
	}
	return false
}
