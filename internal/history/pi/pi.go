// Package pi reads the session files of the pi coding agent: versions 1, 2 and 3, and those
// of versions 3 and 4 that its SDK's harness wrote. Its fork omp writes version 3 with a line
// before the header, the slot, which holds the title and is rewritten in place.
//
// A file is read twice. The first pass finds the entries and how they hang together, so
// that cycles, orphans, repeated lines and the path of the leaf are known before anything is
// stored; the second one decodes the entries that are new, a batch at a time.
package pi

import (
	"path/filepath"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is the history.Source of pi, or of omp.
type Source struct {
	name   session.Source
	places []string
	shared string // the folder that a variable of both programs names; "": none
	omps   string // omp's own folder
}

// New makes the source, with pi's usual places from the environment: $PI_CODING_AGENT_DIR,
// else ~/.pi/agent, and $PI_CODING_AGENT_SESSION_DIR.
func New(env func(string) string) *Source {
	home := env("PI_CODING_AGENT_DIR")
	if home == "" {
		home = "~/.pi/agent"
	}
	return newSource(session.SourcePi, env, history.Expand(home, env), history.Expand(env("PI_CODING_AGENT_SESSION_DIR"), env))
}

// NewOmp makes omp's source: ~/.omp/agent, $XDG_DATA_HOME/omp/sessions (else in ~/.local/share), and
// $PI_CODING_AGENT_DIR, which pi reads, too.
func NewOmp(env func(string) string) *Source {
	data := history.DataHome(env)
	if data != "" {
		data = filepath.Join(data, "omp", "sessions")
	}
	return newSource(session.SourceOmp, env, history.Expand("~/.omp/agent", env), data, history.Expand(env("PI_CODING_AGENT_DIR"), env))
}

func newSource(name session.Source, env func(string) string, places ...string) *Source {
	s := &Source{name: name, shared: history.Expand(env("PI_CODING_AGENT_DIR"), env), omps: history.Expand("~/.omp/agent", env)}
	for _, place := range places {
		if place != "" {
			s.places = append(s.places, place)
		}
	}
	return s
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return s.name }

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
