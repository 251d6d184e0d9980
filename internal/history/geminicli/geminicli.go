// Package geminicli reads the sessions of Gemini CLI: files of JSON lines (generation 2), files
// of one JSON object (generation 1), and the log of prompts where neither is left.
//
// Gemini CLI writes a message again when it becomes more, replaces the whole list of messages
// when it resumes or compacts, and takes messages back. So a file is folded first, into the
// messages that there ever were and the list that is left; then they are added in the order in
// which they came.
package geminicli

import (
	"path/filepath"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is Gemini CLI's history.Source.
type Source struct {
	home string // ~/.gemini
	now  func() time.Time
}

// New makes the source, with Gemini CLI's folder in the home that env names.
func New(env func(string) string, now func() time.Time) *Source {
	return &Source{home: history.Expand("~/.gemini", env), now: now}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceGeminiCLI }

// Places implements history.Source. Beside them lie credentials, which are never opened.
func (s *Source) Places() []string {
	if s.home == "" {
		return nil
	}
	return []string{filepath.Join(s.home, "tmp")}
}

// Reasons to skip that only these files have.
const (
	skipHeader   = "repeated header"
	skipSettings = "settings of the session"
	skipCarrier  = "results that stand with their calls"
	skipPrompt   = "prompt of a session that has a file"
)
