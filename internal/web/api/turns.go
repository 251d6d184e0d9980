package api

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/problem"
)

type turnBody struct {
	Messages   []jsontext.Value `json:"messages,omitempty" doc:"Messages to append; none: only build the context"`
	Call       *callBody        `json:"call,omitempty" doc:"The model call behind the last reply"`
	ExpectHead headArg          `json:"expect_head,omitzero" doc:"The head that the caller expects, else 409; null: the session must be empty"`
	Parent     messageArg       `json:"parent,omitzero" doc:"Append after this message instead of the head: begins a branch, and the head moves there"`

	Dialect        string         `json:"dialect,omitempty" enum:"openai.chat,openai.responses,anthropic,gemini" doc:"The provider's form of the context; default: that of the last turn, else openai.chat"`
	Model          name           `json:"model,omitempty"`
	Window         *int64         `json:"window,omitempty" doc:"The model's window, in tokens; default: the session's, else the catalogue's"`
	MaxOutput      int64          `json:"max_output,omitempty" doc:"Tokens to reserve for the reply"`
	System         *text          `json:"system,omitempty" doc:"The system text. It is stored: a later turn without system uses it again; \"\" removes it"`
	Initial        initialArg     `json:"initial,omitzero" doc:"The caller's text or parts that stand before the conversation; stored like system"`
	Volatile       text           `json:"volatile,omitempty" doc:"Text that changes from turn to turn, like the date. It is added to the newest message and stays there, so that the provider's cache stays valid"`
	Tools          jsontext.Value `json:"tools,omitempty" doc:"The tool schemas that the caller sends to the provider: they are counted, not returned"`
	OverheadTokens *int64         `json:"overhead_tokens,omitempty" doc:"Tokens outside the messages, if the caller counted them; instead of tools"`
	CloseCalls     bool           `json:"close_calls,omitempty" doc:"Answer tool calls that have no result with an error result, so that the context can be sent"`
	Settings       settings       `json:"settings,omitempty" doc:"Settings of the context manager for this context"`

	WorkspaceAccess string `json:"workspace_access,omitempty" enum:"rw,ro,none" doc:"The agent's access to its files; only with rw (the default) a turn requests a memory flush"`
	Heartbeat       bool   `json:"heartbeat,omitempty" doc:"An automatic turn: it requests no memory flush"`
	CLIBackend      bool   `json:"cli_backend,omitempty" doc:"A program with a context of its own runs the turn: it requests no memory flush"`

	Explain bool `json:"explain,omitempty" doc:"Explain where each number comes from and how tokens are counted"`
}

// turnView is the result of a turn. The append is stored even if the context fails.
type turnView struct {
	Appended *appendedView    `json:"appended" doc:"What was stored"`
	Context  *ContextView     `json:"context" doc:"The next context; null: problem says why"`
	Problem  *problem.Problem `json:"problem,omitempty" doc:"Why there is no context"`
}

type turnInput struct {
	InSession
	Keyed
	body[turnBody]
}

// takeTurn appends and returns the next context. It checks the whole request before it stores
// anything. After the append a failed context is a problem beside the append, not an error.
func (s *Server) takeTurn(ctx context.Context, in *turnInput) (*output[turnView], error) {
	b := &in.value
	wanted, err := s.turnInput(b)
	if err != nil {
		return nil, err
	}
	if b.Parent.given && len(b.Messages) == 0 {
		return nil, session.Errorf(session.Invalid, "parent needs messages: it says where they are appended").
			At("parent", "stands without messages")
	}
	add := appendBody{
		Messages: b.Messages, ExpectHead: b.ExpectHead, Parent: b.Parent, Call: b.Call,
		turnDialect: b.Dialect,
	}
	done, err := s.append(ctx, in.ID, &add, in.idem)
	if err != nil {
		return nil, err
	}
	out := turnView{Appended: &done.appendedView}
	view, err := s.contextAfter(ctx, in.ID, wanted, &done.done)
	if err == nil {
		out.Context, err = Render(view)
	}
	if err != nil {
		out.Problem = s.problem(ctx, err)
	}
	return reply(out, nil)
}

// contextAfter returns the context that a turn asks for. A repeated request gets the same
// context again and writes nothing, if the first one made it, else it makes it now. If the head
// has moved on since, it gets the context at its own head.
func (s *Server) contextAfter(ctx context.Context, id session.ID, wanted contextmgr.TurnInput,
	done *store.Appended,
) (contextmgr.View, error) {
	if !done.Replayed || done.Head == nil {
		return s.Contexts.Turn(ctx, id, wanted)
	}
	now := done.Session
	if now.Head == nil || *now.Head != *done.Head {
		at, err := s.positionOf(ctx, *done.Head, now.CompactionID)
		if err != nil {
			return contextmgr.View{}, err
		}
		wanted.At = at
		return s.Contexts.Assemble(ctx, id, wanted.Budget)
	}
	last, _, err := s.Store.LastContext(ctx, id)
	if err != nil {
		return contextmgr.View{}, err
	}
	if last == nil || last.HeadID == nil || *last.HeadID != *now.HeadID {
		return s.Contexts.Turn(ctx, id, wanted)
	}
	view, err := s.Contexts.Assemble(ctx, id, wanted.Budget)
	if err == nil && len(view.Pending) == 0 {
		view.ID = session.ContextName(last.RowID)
	}
	return view, err
}

// positionOf returns a past head, with the effective overlay if that lies on its path.
func (s *Server) positionOf(ctx context.Context, head session.MessageRef,
	overlay *int64,
) (*contextmgr.Position, error) {
	m, err := s.Store.Message(ctx, head)
	if err != nil {
		return nil, err
	}
	at := &contextmgr.Position{HeadID: &m.RowID}
	if overlay == nil {
		return at, nil
	}
	c, err := s.Store.Compaction(ctx, head.Session, *overlay)
	if err != nil || c.ThroughID == nil {
		return at, err
	}
	on, err := s.Store.OnPath(ctx, m.RowID, *c.ThroughID)
	if on {
		at.CompactionID = overlay
	}
	return at, err
}

// turnInput builds the manager's input. Codes: Invalid.
func (s *Server) turnInput(b *turnBody) (contextmgr.TurnInput, error) {
	in := contextmgr.TurnInput{Volatile: string(b.Volatile), Budget: contextmgr.Budget{
		Model: string(b.Model), MaxOutput: b.MaxOutput, Dialect: b.Dialect, System: (*string)(b.System),
		OverheadTokens: b.OverheadTokens, CloseCalls: b.CloseCalls, Explain: b.Explain,
	}}
	if err := cmp.Or(
		checkDialect(b.Dialect),
		positive("window", b.Window),
		notNegative("max_output", &b.MaxOutput),
		notNegative("overhead_tokens", b.OverheadTokens),
		oneOf("workspace_access", b.WorkspaceAccess, "", "rw", "ro", "none"),
	); err != nil {
		return in, err
	}
	in.Window = orZero(b.Window)
	in.Flush = contextmgr.FlushCaller{
		Workspace: contextmgr.Workspace(b.WorkspaceAccess), Heartbeat: b.Heartbeat,
		CLIBackend: b.CLIBackend,
	}
	if b.Initial.given {
		in.Initial = &b.Initial.parts
	}
	switch jsonx.KindOf(b.Tools) {
	case '[', '{':
		in.Tools = b.Tools
	case 'n':
	default:
		return in, session.Errorf(session.Invalid, "tools must be what the provider is given: an array of schemas, not %s",
			jsonx.Describe(b.Tools)).
			At("tools", "must be an array")
	}
	var err error
	in.Settings, err = s.parseSettings(b.Settings)
	return in, err
}
