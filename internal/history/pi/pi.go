// Package pi reads the session files of the pi coding agent: versions 1, 2 and 3, and those
// of versions 3 and 4 that its SDK's harness wrote.
//
// A file is read twice. The first pass finds the entries and how they hang together, so
// that cycles, orphans, repeated lines and the path of the leaf are known before anything is
// stored; the second one decodes the entries that are new, a batch at a time.
package pi

import (
	"sessiond/internal/session"
)

// Source is pi's history.Source.
type Source struct {
	home string // the agent directory
}

// New makes the source. agentDir is pi's own folder, "" for the usual one:
// $PI_CODING_AGENT_DIR, else ~/.pi/agent; env reads the environment.
func New(agentDir string, env func(string) string) *Source {
	if agentDir == "" {
		agentDir = agentDirOf(env)
	}
	return &Source{home: agentDir}
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
