package api

import (
	"context"

	past "sessiond/internal/memory"
	"sessiond/internal/session"
	"sessiond/internal/tokens"
)

type hookBody struct {
	Program   string `json:"program" required:"true" doc:"The program that asks, like codex"`
	Settings  text   `json:"settings,omitempty" doc:"What the answer depends on beside this request, by the command: its version, database and settings. 409 if the daemon has others"`
	Session   name   `json:"session,omitempty" doc:"The program's id of the session"`
	Directory text   `json:"directory" required:"true" doc:"The working directory: earlier sessions of its project are searched"`
	Event     string `json:"event" required:"true" enum:"SessionStart,UserPromptSubmit,PreToolUse" doc:"The event, by its name in Claude Code"`
	Source    string `json:"source,omitempty" doc:"Of SessionStart: startup or compact"`
	Prompt    text   `json:"prompt,omitempty" doc:"Of UserPromptSubmit: the prompt"`
	File      text   `json:"file,omitempty" doc:"Of PreToolUse: the file that is about to change"`
}

type hookInput struct {
	body[hookBody]
}

type hookView struct {
	Text    string `json:"text" doc:"What to add to the context; empty: nothing"`
	Version string `json:"version" doc:"Version of the daemon"`
}

// answerHook returns what a program's hook adds to its context. Codes: Conflict, Invalid.
func (s *Server) answerHook(ctx context.Context, in *hookInput) (*output[hookView], error) {
	b := &in.value
	if b.Directory == "" {
		return nil, session.Errorf(session.Invalid, "directory is empty").At("directory", "must not be empty")
	}
	if err := oneOf("event", b.Event, "SessionStart", "UserPromptSubmit", "PreToolUse"); err != nil {
		return nil, err
	}
	if string(b.Settings) != s.HookSettings {
		return nil, session.Errorf(session.Conflict,
			"this daemon, version %s, has another version, database or settings than the command", s.Version.Version)
	}
	m := past.Memory{
		Store: s.Store, Index: s.Search, Count: tokens.Reference().Text, Now: s.Now, Givers: s.Routing.Givers,
		Scope: past.NewScope([]string{string(b.Directory)}, s.ExcludeProjects),
	}
	said, err := m.Answer(ctx, session.Source(b.Program), past.Event{
		Session: string(b.Session), Directory: string(b.Directory), Name: b.Event, Source: b.Source, Prompt: string(b.Prompt),
		File: string(b.File),
	})
	return reply(hookView{said, s.Version.Version}, err)
}
