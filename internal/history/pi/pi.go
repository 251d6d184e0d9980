// Package pi reads the session files of the pi coding agent: versions 1, 2 and 3, and those
// of versions 3 and 4 that its SDK's harness wrote.
//
// A file is read twice. The first pass finds the entries and how they hang together, so
// that cycles, orphans, repeated lines and the path of the leaf are known before anything is
// stored; the second one decodes the entries that are new, a batch at a time.
package pi

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is pi's history.Source.
type Source struct {
	home  string // the agent directory
	extra string // a folder of sessions beside it
}

// New makes the source, with pi's usual places from the environment: $PI_CODING_AGENT_DIR,
// else ~/.pi/agent, and $PI_CODING_AGENT_SESSION_DIR.
func New(env func(string) string) *Source {
	home := env("PI_CODING_AGENT_DIR")
	if home == "" {
		home = "~/.pi/agent"
	}
	return &Source{home: history.Expand(home, env), extra: history.Expand(env("PI_CODING_AGENT_SESSION_DIR"), env)}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourcePi }

// Reasons to skip that only pi's files have.
const (
	skipHeader = "repeated header"
	skipOlder  = "older copy of the session"
)

// The kinds of lines.
const (
	lineSession       = "session"
	lineMessage       = "message"
	lineModel         = "model_change"
	lineThinking      = "thinking_level_change"
	lineCompaction    = "compaction"
	lineBranchSummary = "branch_summary"
	lineCustom        = "custom"
	lineCustomMessage = "custom_message"
	lineLabel         = "label"
	lineInfo          = "session_info"
	lineUsage         = "usage"
	lineContextEdit   = "context_edit"
	lineActiveTools   = "active_tools_change"
	lineLeaf          = "leaf"
	lineLane          = "lane"   // of version 4
	lineRecord        = "record" // of version 4
)
