package api

import (
	"bytes"
	"cmp"
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Contexts is what the routes need of the context manager.
type Contexts interface {
	ParseSettings(raw session.JSON) (contextmgr.Settings, error)
	Assemble(ctx context.Context, id session.ID, b contextmgr.Budget) (contextmgr.View, error)
	Turn(ctx context.Context, id session.ID, in contextmgr.TurnInput) (contextmgr.View, error)
	Compact(ctx context.Context, id session.ID, in contextmgr.CompactInput) (session.Compaction, contextmgr.Preview, error)
	Begin(ctx context.Context, id session.ID, in contextmgr.CompactInput) (*contextmgr.Begun, error)
	Cancel(ctx context.Context, id session.ID, compaction int64) (session.Compaction, error)
	Undo(ctx context.Context, id session.ID, compaction int64) (session.Session, error)
	Redo(ctx context.Context, id session.ID, compaction int64) (session.Session, error)
	SizeWarning(ctx context.Context, id session.ID) (string, error)
	Sources(ctx context.Context, id session.ID, compaction int64) ([]session.MessageRef, error)
	SummarizeBranch(ctx context.Context, id session.ID, from session.MessageRef,
		to *session.MessageRef) (made *session.Message, attached bool, err error)
	CheckPin(ctx context.Context, id session.ID, ref session.MessageRef) error
}

// ContextView is a context in a dialect. The caller copies Request into the provider's body; it is
// null while calls are pending.
type ContextView struct {
	contextmgr.View
	Dialect string       `json:"dialect" enum:"openai.chat,openai.responses,anthropic,gemini" doc:"The provider's form of request"`
	Request session.JSON `json:"request" doc:"The fields that go into the provider's request, beside model and tools: messages of openai.chat, input and instructions of openai.responses, messages and system of anthropic, contents and systemInstruction of gemini; null while calls are pending"`

	// ThinkingLevel is off if the provider would reject thinking in this request; else it is omitted
	// and the caller chooses.
	ThinkingLevel string `json:"thinking_level,omitempty" enum:"off" doc:"off: the provider would reject this request with thinking on. Missing: choose freely"`

	ToolNames map[string]string `json:"tool_names,omitempty" doc:"Tools whose names the provider does not take: the name in the request, and the tool's own. Declare the tool under the first, and run the second when the model calls it"`
}

// Render encodes a context in its dialect. Codes: Invalid.
func Render(v contextmgr.View) (*ContextView, error) {
	out := &ContextView{View: v, Dialect: cmp.Or(v.Dialect, dialect.Default)}
	if len(v.Pending) == 0 {
		sent, err := dialect.Send(out.Dialect, dialect.Request{
			System: v.System, Messages: v.Messages, Model: v.Model, Provider: v.Provider, Borders: v.Borders, Before: v.Before,
		})
		if err != nil {
			return nil, err
		}
		out.Request, out.ToolNames = sent.Request, sent.ToolNames
		if sent.BrokenBy != "" && out.Prefix.BrokenBy == "" {
			out.Prefix.StableTokens, out.Prefix.BrokenBy = 0, sent.BrokenBy
		}
		out.Losses = append(out.Losses, sent.Losses...)
		if sent.ThinkingOff {
			out.ThinkingLevel = "off"
			out.Adjustments = append(out.Adjustments, "thinking must be off for this request: its turn began without thinking")
		}
	}
	// Programs iterate over these without a check for null.
	out.Pending = emptyNotNil(out.Pending)
	out.Provenance = emptyNotNil(out.Provenance)
	out.Adjustments = emptyNotNil(out.Adjustments)
	out.Losses = emptyNotNil(out.Losses)
	out.Directives = emptyNotNil(out.Directives)
	out.Warnings = emptyNotNil(out.Warnings)
	return out, nil
}

func emptyNotNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

type getContextInput struct {
	InSession
	Model     string `query:"model" doc:"The model's id; default: the session's"`
	Dialect   string `query:"dialect" enum:"openai.chat,openai.responses,anthropic,gemini" doc:"The provider's form of the context; default: that of the last turn, else openai.chat"`
	Window    int64  `query:"window" minimum:"1" doc:"The model's window, in tokens; default: the session's, else the catalogue's"`
	MaxOutput int64  `query:"max_output" minimum:"0" doc:"Tokens to reserve for the reply"`
	Explain   bool   `query:"explain" doc:"Explain where each number comes from and how tokens are counted"`
}

func (s *Server) readContext(ctx context.Context, in *getContextInput) (*output[*ContextView], error) {
	if err := checkDialect(in.Dialect); err != nil {
		return nil, err
	}
	view, err := s.Contexts.Assemble(ctx, in.ID, contextmgr.Budget{
		Model: in.Model, Dialect: in.Dialect, Window: in.Window, MaxOutput: in.MaxOutput, Explain: in.Explain,
	})
	if err != nil {
		return nil, err
	}
	return reply(Render(view))
}

// checkDialect reports whether requests can be encoded in a dialect; "" passes. Codes: Invalid.
func checkDialect(name string) error {
	if name == "" || dialect.Sendable(name) {
		return nil
	}
	_, err := dialect.Send(name, dialect.Request{})
	if err == nil {
		return nil
	}
	return session.Errorf(session.CodeOf(err), "%w", err).At("dialect", "contexts are not available in this dialect")
}

// initialArg is the caller's own blocks before the conversation: a text, or an array of
// parts, ours or a provider's content elements.
type initialArg struct {
	given bool
	parts []session.Part
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *initialArg) UnmarshalJSON(raw []byte) error {
	a.given = true
	form, field := dialect.OpenAIChat, "content"
	switch jsonx.KindOf(raw) {
	case 'n':
		return nil
	case '"':
	case '[':
		if bytes.Contains(raw, []byte(`"kind"`)) {
			form, field = dialect.Native, "parts"
		}
		if elements, err := jsonx.ParseArray("initial", raw); err == nil && len(elements) == 0 {
			return nil
		}
	default:
		return refuse("must be a string or an array of parts, not %s", jsonx.Describe(raw))
	}
	var message jsonx.Object
	message.SetText("role", string(session.User))
	message.Set(field, raw)
	decoded, err := dialect.Decode(form, []jsontext.Value{message.Value()})
	if err != nil {
		return refuse("cannot be read: %s", err.Error())
	}
	for _, m := range decoded.Messages {
		a.parts = append(a.parts, m.Parts...)
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (initialArg) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString},
		{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}},
	}}
}
