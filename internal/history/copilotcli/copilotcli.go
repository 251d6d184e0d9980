// Package copilotcli reads the sessions of GitHub Copilot CLI, versions 1.0.34 to 1.0.102.
//
// A session is one file of events, which only grows; those of its sub-agents stand in the same file.
// The order of the lines is that of the conversation. Source of the field names: the schema in the
// npm package @github/copilot, schemas/session-events.schema.json.
package copilotcli

import (
	"context"
	"path/filepath"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is Copilot CLI's history.Source.
type Source struct {
	home string // ~/.copilot
	now  func() time.Time
}

// New makes the source, with Copilot CLI's usual place from the environment: $COPILOT_HOME, in which
// the program expands no ~, else ~/.copilot.
func New(env func(string) string, now func() time.Time) *Source {
	home := env("COPILOT_HOME")
	if home == "" {
		home = history.Expand("~/.copilot", env)
	}
	return &Source{home: home, now: now}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceCopilotCLI }

// Places implements history.Source. The files beside it may hold tokens and are never opened.
func (s *Source) Places() []string {
	if !filepath.IsAbs(s.home) {
		return nil
	}
	return []string{filepath.Join(s.home, "session-state")}
}

// fileName matches the file in a session's folder, and the file of a session of early builds.
var fileName = regexp.MustCompile(`^(events|[0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$`)

// Find implements history.Source. A root is a home or a folder of sessions. Deeper in a session's
// folder lie files of the user, whatever their names are.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var f history.Finder
	err := f.Roots(ctx, roots, s.Places(), func(root string) {
		if sessions := filepath.Join(root, "session-state"); history.IsFolder(sessions) {
			root = sessions
		}
		f.Folder(root, 2, fileName.MatchString)
	}, f.File)
	f.SortByTime()
	return f.Found, f.Problems, err
}

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	return history.Replay(ctx, s.Name(), found, cursor, known, s.now, emit, read)
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
	ID     string `yaml:"id"`
	Name   string `yaml:"name"` // the title
	CWD    string `yaml:"cwd"`
	Branch string `yaml:"branch"`
}

// workspaceOf reads the workspace.yaml beside a session's events. It is empty where it cannot be read
// and where it is another session's.
func workspaceOf(events, id string) (w workspace) {
	text, err := history.ReadFile(filepath.Join(filepath.Dir(events), "workspace.yaml"))
	if err != nil || len(text) > 1<<20 || yaml.Unmarshal(text, &w) != nil || w.ID != id {
		return workspace{}
	}
	return w
}
