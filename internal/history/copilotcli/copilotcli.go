// Package copilotcli reads the sessions of GitHub Copilot CLI, versions 1.0.34 to 1.0.102.
//
// A session is one file of events, which only grows; those of its sub-agents stand in the same file.
// The order of the lines is that of the conversation. Source of the field names: the schema in the
// npm package @github/copilot, schemas/session-events.schema.json.
package copilotcli

import (
	"cmp"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"sessiond/internal/history"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source, with Copilot CLI's usual place from the environment: $COPILOT_HOME, in which
// the program expands no ~, else ~/.copilot. The files beside the sessions may hold tokens and are never
// opened.
func New(env func(string) string, now func() time.Time) *history.Program {
	return &history.Program{
		Source: session.SourceCopilotCLI, Folders: history.InFolders(history.FolderIn(homeOf(env), sessions)), Now: now,
		Search: search, Replay: read, Commands: []string{"copilot"},
	}
}

// homeOf returns Copilot CLI's folder, "" where it is not known.
func homeOf(env func(string) string) string {
	return cmp.Or(env("COPILOT_HOME"), history.Expand("~/.copilot", env))
}

// sessions is the name of the folder of sessions.
const sessions = "session-state"

// fileName matches the file in a session's folder, and the file of a session of early builds.
var fileName = pattern.New(`^(events|[0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$`)

// search lists the sessions of a home or a folder of sessions. Deeper in a session's folder lie files
// of the user, whatever their names are.
func search(f *history.Finder, folder string) {
	if inHome := filepath.Join(folder, sessions); history.IsFolder(inHome) {
		folder = inHome
	}
	f.Folder(folder, 2, fileName.MatchString)
}

// Reasons to skip that only these files have.
const (
	skipTurn      = "beginning or end of a turn"
	skipPrompt    = "system prompt that repeats"
	skipStart     = "start of a call that its reply holds"
	skipReasoning = "reasoning that its reply holds"
	skipSilent    = "session in which nobody spoke"
)

// workspace is what workspace.yaml says of a session. The program rewrites it in place.
type workspace struct {
	ID        string `yaml:"id"`
	CWD       string `yaml:"cwd"`
	Branch    string `yaml:"branch,omitempty"`
	Name      string `yaml:"name"` // the title
	UserNamed bool   `yaml:"user_named"`
	CreatedAt string `yaml:"created_at"`
	UpdatedAt string `yaml:"updated_at"`
}

// workspaceBeside is the path of the workspace.yaml beside a session's events.
func workspaceBeside(events string) string {
	return filepath.Join(filepath.Dir(events), "workspace.yaml")
}

// workspaceOf reads the workspace.yaml beside a session's events. It is empty where it cannot be read
// and where it is another session's.
func workspaceOf(events, id string) (w workspace) {
	text, err := history.ReadFile(workspaceBeside(events))
	if err != nil || len(text) > 1<<20 || yaml.Unmarshal(text, &w) != nil || w.ID != id {
		return workspace{}
	}
	return w
}
