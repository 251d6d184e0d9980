// Package pi reads the session files of the pi coding agent: versions 1, 2 and 3, and those
// of versions 3 and 4 that its SDK's harness wrote. Its fork omp writes version 3 with a line
// before the header, the slot, which holds the title and is rewritten in place.
//
// A file is read twice. The first pass finds the entries and how they hang together, so
// that cycles, orphans, repeated lines and the path of the leaf are known before anything is
// stored; the second one decodes the entries that are new, a batch at a time.
package pi

import (
	"cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with pi's usual places from the environment: $PI_CODING_AGENT_DIR,
// else ~/.pi/agent, and $PI_CODING_AGENT_SESSION_DIR.
func New(env func(string) string) *history.Program {
	return newSource(session.SourcePi, env, homeOf(env), sessionsOf(env))
}

func homeOf(env func(string) string) string {
	return history.Expand(cmp.Or(env("PI_CODING_AGENT_DIR"), "~/.pi/agent"), env)
}

// sessionsOf returns the folder that holds sessions alone; "" if none is named.
func sessionsOf(env func(string) string) string {
	return history.Expand(env("PI_CODING_AGENT_SESSION_DIR"), env)
}

// NewOmp makes omp's source: ~/.omp/agent, $XDG_DATA_HOME/omp/sessions (else in ~/.local/share), and
// $PI_CODING_AGENT_DIR, which pi reads, too.
func NewOmp(env func(string) string) *history.Program {
	p := newSource(session.SourceOmp, env, history.Expand("~/.omp/agent", env),
		history.FolderIn(history.DataHome(env), "omp/sessions"), history.Expand(env("PI_CODING_AGENT_DIR"), env))
	p.Slot = slotSize
	return p
}

func newSource(name session.Source, env func(string) string, places ...string) *history.Program {
	shared := sharedFolder{
		isOmp: name == session.SourceOmp, path: history.Expand(env("PI_CODING_AGENT_DIR"), env),
		omps: history.Expand("~/.omp/agent", env),
	}
	return &history.Program{
		Source: name, Folders: history.InFolders(places...), Search: search, Order: shared.order,
		Replay: read, EarlyToo: func(string) bool { return true },
	}
}

// Reasons to skip that only pi's files have.
const (
	skipHeader = "repeated header"
	skipOlder  = "older copy of the session"
)

// The kinds of lines.
const (
	lineSession       = "session"
	lineTitle         = "title" // omp's slot
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
