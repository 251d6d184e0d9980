// Package qwencode reads the sessions of Qwen Code, a fork of Gemini CLI.
//
// A session is a file of rows, which only grows. Rows are a tree by their parents, as Claude Code
// writes them, and what they say are contents of Gemini's API. The source of the field names is
// chatRecordingService.ts of QwenLM/qwen-code.
package qwencode

import (
	"context"
	"path/filepath"
	"regexp"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is Qwen Code's history.Source.
type Source struct {
	home string // ~/.qwen
	now  func() time.Time
}

// New makes the source, with Qwen Code's folder in the home that env names.
func New(env func(string) string, now func() time.Time) *Source {
	return &Source{home: history.Expand("~/.qwen", env), now: now}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceQwenCode }

// Places implements history.Source. The files beside it may hold credentials and are never opened.
func (s *Source) Places() []string {
	if s.home == "" {
		return nil
	}
	return []string{filepath.Join(s.home, "projects")}
}

var chatName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}\.jsonl$`)

// maxDepth reaches from a home to a session: projects, folder, chats, file.
const maxDepth = 4

// Find implements history.Source. Of a folder only files with the names of sessions are listed; a
// single file is read whatever its name is.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var f history.Finder
	err := f.Roots(ctx, roots, s.Places(), func(root string) { f.Folder(root, maxDepth, chatName.MatchString) }, f.File)
	f.SortByTime()
	return f.Found, f.Problems, err
}

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	return history.Replay(ctx, s.Name(), found, cursor, known, s.now, emit, read)
}

// skipSilent says why nothing of a session is stored.
const skipSilent = "session in which nobody spoke"
