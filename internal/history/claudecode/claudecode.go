// Package claudecode reads the transcripts of Claude Code, of versions 1.0 to 2.1: main files,
// the files of sub-agents, and sub-agents within a main file.
//
// The rows of one reply become one message, which has the name of the last row. Rows are a tree
// by their parents, but not the tree of the conversation: the results of parallel calls hang
// beside one another, and states, hooks and notes hang where they came up. The reader puts them
// in a line, so that a path holds what the model saw. A row that a person typed, or a reply that
// was asked for again, makes a branch.
package claudecode

import (
	"path/filepath"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// New makes the source, with Claude Code's usual places from the environment:
// $CLAUDE_CONFIG_DIR, else ~/.claude and ~/.config/claude. The rest of a home holds credentials and
// copies of files.
func New(env func(string) string, now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceClaudeCode, Folders: history.InFolders(homes(env)...), Now: now,
		Search: search, Order: history.ByBeginning(rank), Replay: read, Commands: []string{"claude", "claude-code"},
		EarlyToo: func(path string) bool { return filepath.Base(path) != journal+ending },
	}
}

// homes returns the folders of projects in the usual places, the one that Claude Code writes to first; "" for one that
// is not known.
func homes(env func(string) string) []string {
	homes := []string{"~/.claude", "~/.config/claude"}
	if set := env("CLAUDE_CONFIG_DIR"); set != "" {
		homes = []string{set}
	}
	for i, home := range homes {
		if homes[i] = history.Expand(home, env); homes[i] != "" {
			homes[i] = filepath.Join(homes[i], projects)
		}
	}
	return homes
}

// Reasons to skip that only these transcripts have.
const (
	skipProgress  = "progress of a tool or hook"
	skipSubagent  = "progress that the sub-agent's own file holds"
	skipRepeated  = "state that repeats"
	skipSilent    = "state of a file in which nobody speaks"
	skipInherited = "inherited from the session it was forked off"
)

// Types of rows.
const (
	typeUser       = "user"
	typeAssistant  = "assistant"
	typeSystem     = "system"
	typeProgress   = "progress"
	typeAttachment = "attachment"
	typeAgentMeta  = "agent_metadata" // of the Agent SDK, in the place of a file beside the sub-agent's
)
