// Package codex reads the rollouts of the Codex CLI, its IDE extension and its app: bare items,
// envelopes, and paginated histories; plain or compressed, live or archived.
//
// A file is read twice. The survey finds what a line by itself does not say: which of the
// user's messages a person wrote, where what a fork copied ends, and which records at the end
// belong to a reply that is still being written. The second pass turns records into messages,
// from where the last reading ended, since what it needs to know of the records before is in
// the cursor.
//
// A record of the conversation is known by a hash of what it says and of all that was said
// before it. So a record has the same key wherever a rollout is moved, compressed or copied
// to, a fork's copies have the keys of their originals, and what follows a changed record has
// keys of its own: it is a branch.
package codex

import (
	"path/filepath"
	"time"

	"sessiond/internal/session"
)

// Source is the history.Source of Codex.
type Source struct {
	home  string
	state string // the folder of the mirror, where it is another one
	now   func() time.Time
}

// New makes the source, with Codex' usual place from the environment: $CODEX_HOME, else
// ~/.codex, and $CODEX_SQLITE_HOME for its mirror. now is the clock; nil: the host's.
func New(env func(string) string, now func() time.Time) *Source {
	if now == nil {
		now = time.Now
	}
	home := env("CODEX_HOME")
	if home == "" && env("HOME") != "" {
		home = env("HOME") + "/.codex"
	}
	state := env("CODEX_SQLITE_HOME")
	if !filepath.IsAbs(state) || state == home {
		state = ""
	}
	return &Source{home: home, state: state, now: now}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceCodex }

// Reasons to skip that only rollouts have.
const (
	skipHeader    = "repeated header"
	skipOrigin    = "header of the session it was forked off"
	skipInherited = "inherited from the session it was forked off"
	skipFiller    = "filler"
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
