package memory

import (
	"context"

	"sessiond/internal/session"
)

// Event is what a program tells a hook, in the words of Claude Code.
type Event struct {
	Session   string // the program's id of the session that asks
	Directory string
	Name      string // SessionStart, UserPromptSubmit, PreToolUse
	Source    string // of SessionStart: startup, resume, clear, compact; of a prompt: resume, or nothing
	Prompt    string
	File      string // that a tool is about to change
}

// Answer returns the text that an event adds to the context of a program's session; "" for none.
func (m *Memory) Answer(ctx context.Context, program session.Source, e Event) (string, error) {
	asking, err := m.Store.SessionBySource(ctx, program, e.Session)
	known := err == nil
	if known {
		m.Scope.Asking = asking.ID
	}
	switch {
	case e.Source == "compact" && known:
		return m.AfterCompaction(ctx, &asking)
	case e.Source == "resume" && known:
		if text, err := m.AfterResume(ctx, &asking); text != "" || err != nil || e.Name == "SessionStart" {
			return text, err
		}
		return m.ForPrompt(ctx, e.Prompt)
	case e.Source == "compact", e.Source == "resume" && e.Name == "SessionStart":
		return "", err
	case e.Name == "SessionStart":
		return m.AtStart(ctx)
	case e.Name == "UserPromptSubmit":
		return m.ForPrompt(ctx, e.Prompt)
	case e.File != "":
		return m.BeforeEdit(ctx, e.File)
	}
	return "", nil
}
