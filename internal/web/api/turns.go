package api

import (
	"context"
	"encoding/json"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/problem"
)

type turnBody struct {
	Messages   []json.RawMessage `json:"messages,omitempty" doc:"To append; none: only the context is made"`
	Call       *callBody         `json:"call,omitempty" doc:"The model call behind the last reply"`
	ExpectHead messageArg        `json:"expect_head,omitzero" doc:"The head that must still be there; null: the session must be empty"`
	Parent     messageArg        `json:"parent,omitzero" doc:"Append after this message and move the head there"`

	Dialect        string          `json:"dialect,omitempty" doc:"Of the context; the last turn's without it, else openai.chat"`
	Model          name            `json:"model,omitempty"`
	Window         *int64          `json:"window,omitempty" doc:"Tokens; the session's or the catalogue's without it"`
	MaxOutput      int64           `json:"max_output,omitempty" doc:"Tokens that the reply may take"`
	System         *text           `json:"system,omitempty" doc:"The caller's system text, replaced as a whole; kept until it is given again"`
	Initial        initialArg      `json:"initial,omitzero" doc:"The caller's blocks before the conversation: a text or parts; kept like system"`
	Volatile       text            `json:"volatile,omitempty" doc:"Text of the moment (date, state), frozen with the newest message"`
	Tools          json.RawMessage `json:"tools,omitempty" doc:"The tool schemas that the provider is given, to be counted"`
	OverheadTokens *int64          `json:"overhead_tokens,omitempty" doc:"What is not in the messages, instead of tools"`
	CloseCalls     bool            `json:"close_calls,omitempty" doc:"Answer calls that wait for a result with an error"`
	Settings       object          `json:"settings,omitempty" doc:"Numbers of the context manager for this context"`

	WorkspaceAccess string `json:"workspace_access,omitempty" enum:"rw,ro,none" doc:"What the agent may do with its files; without rw (the default) it is asked for no memory flush"`
	Heartbeat       bool   `json:"heartbeat,omitempty" doc:"No person is behind this turn: no memory flush is asked for"`
	CLIBackend      bool   `json:"cli_backend,omitempty" doc:"A command-line back end runs it, which keeps a context of its own: no memory flush is asked for"`

	Explain bool `json:"explain,omitempty" doc:"Tell where each number comes from, and how tokens were counted"`
}

// turnView is what a turn did. The append stands whatever became of the context.
type turnView struct {
	Appended *appendedView    `json:"appended"`
	Context  *ContextView     `json:"context"`
	Problem  *problem.Problem `json:"problem,omitempty" doc:"Why there is no context"`
}

type turnInput struct {
	InSession
	Keyed
	body[turnBody]
}

type turnOutput struct {
	Body turnView
}

// takeTurn appends and gives the next context. Whatever is wrong with the request is said
// before anything is stored; once stored, a context that cannot be made is a problem beside
// the append and not instead of it.
func (s *Server) takeTurn(ctx context.Context, in *turnInput) (*turnOutput, error) {
	id, err := in.sessionID()
	if err != nil {
		return nil, err
	}
	wanted, err := in.value.turn()
	if err != nil {
		return nil, err
	}
	b := &in.value
	if b.Parent.given && len(b.Messages) == 0 {
		return nil, session.Errorf(session.Invalid, "parent stands without messages: it says where they are appended").At("parent", "stands without messages")
	}
	idem, err := in.idempotency(ctx, in.raw())
	if err != nil {
		return nil, err
	}
	add := appendBody{Messages: b.Messages, ExpectHead: b.ExpectHead, Parent: b.Parent, Call: b.Call}
	if _, err := dialect.Detect(b.Messages); err != nil { // then the context's dialect decides
		add.Dialect = b.Dialect
	}
	done, err := s.append(ctx, id, &add, idem)
	if err != nil {
		return nil, err
	}
	out := &turnOutput{Body: turnView{Appended: &done.appendedView}}
	view, err := s.contextAfter(ctx, id, wanted, &done.done)
	if err == nil {
		out.Body.Context, err = Render(view)
	}
	if err != nil {
		out.Body.Problem = s.problem(ctx, err)
	}
	return out, nil
}

// contextAfter gives the context that a turn asks for. A repeated request whose context was
// handed out gets it again and nothing is written; one that lost its answer before that gets
// its context now; one that others went past gets the context as of its own head.
func (s *Server) contextAfter(ctx context.Context, id session.ID, wanted contextmgr.TurnInput, done *store.Appended) (contextmgr.View, error) {
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

// positionOf gives a head of the past, under the overlay that is in force now if that lies on
// its path.
func (s *Server) positionOf(ctx context.Context, head session.MessageRef, overlay *int64) (*contextmgr.Position, error) {
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

// turn makes the manager's input. Codes: Invalid.
func (b *turnBody) turn() (contextmgr.TurnInput, error) {
	in := contextmgr.TurnInput{Volatile: string(b.Volatile), Budget: contextmgr.Budget{
		Model: string(b.Model), MaxOutput: b.MaxOutput, Dialect: b.Dialect, System: (*string)(b.System),
		OverheadTokens: b.OverheadTokens, CloseCalls: b.CloseCalls, Explain: b.Explain,
	}}
	if err := checkDialect(b.Dialect); err != nil {
		return in, err
	}
	if err := positive("window", b.Window); err != nil {
		return in, err
	}
	if b.Window != nil {
		in.Window = *b.Window
	}
	if err := notNegative("max_output", b.MaxOutput); err != nil {
		return in, err
	}
	if b.OverheadTokens != nil {
		if err := notNegative("overhead_tokens", *b.OverheadTokens); err != nil {
			return in, err
		}
	}
	if err := oneOf("workspace_access", b.WorkspaceAccess, "", "rw", "ro", "none"); err != nil {
		return in, err
	}
	in.Flush = contextmgr.FlushCaller{Workspace: contextmgr.Workspace(b.WorkspaceAccess), Heartbeat: b.Heartbeat, CLIBackend: b.CLIBackend}
	if b.Initial.given {
		in.Initial = &b.Initial.parts
	}
	switch wire.KindOf(b.Tools) {
	case '[', '{':
		in.Tools = b.Tools
	case 'n':
	default:
		return in, session.Errorf(session.Invalid, "tools must be what the provider is given: an array of schemas, not %s", wire.Describe(b.Tools)).
			At("tools", "must be an array")
	}
	var err error
	in.Settings, err = contextmgr.ParseSettings(session.JSON(b.Settings))
	return in, under("settings", err)
}
