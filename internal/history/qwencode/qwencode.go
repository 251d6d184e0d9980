// Package qwencode reads the sessions of Qwen Code, a fork of Gemini CLI.
//
// A session is a file of rows, which only grows. Rows are a tree by their parents, as Claude Code
// writes them, and what they say are contents of Gemini's API. The source of the field names is
// chatRecordingService.ts of QwenLM/qwen-code.
package qwencode

import (
	"cmp"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source, with Qwen Code's folders from the environment. Only files with the names of sessions are
// listed: those beside them may hold credentials.
func New(env func(string) string, now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceQwenCode, Folders: history.InFolders(homes(env)...), Now: now,
		Search: func(f *history.Finder, folder string) { f.Folder(folder, maxDepth, chatName.MatchString) },
		Order:  history.ByBeginning(func(history.Found) int { return 0 }),
		Replay: read, Commands: []string{"qwen", "qwen-code"},
	}
}

// homes returns the folders of projects: the one that Qwen Code writes to, and the usual one behind it; "" for one that
// is not known.
func homes(env func(string) string) []string {
	usual := history.FolderIn(history.Expand("~/.qwen", env), projects)
	set := cmp.Or(env("QWEN_RUNTIME_DIR"), env("QWEN_HOME"))
	if set = history.FolderIn(history.Expand(set, env), projects); set == "" || set == usual {
		return []string{usual}
	}
	return []string{set, usual}
}

const projects = "projects"

var chatName = pattern.New(`^([0-9a-f]{8}-[0-9a-f-]{27}|agent-[\w.-]+)\.jsonl$`)

// maxDepth reaches from a home to a sub-agent's file: projects, folder, subagents, session, file.
const maxDepth = 5

// skipSilent says why nothing of a session is stored.
const skipSilent = "session in which nobody spoke"
