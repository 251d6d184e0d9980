package contextmgr

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// StatusEphemeral is the status of an overlay that was made in memory to answer a read.
const StatusEphemeral = "ephemeral"

// Budget says what a context is for, with the caller's own text. Empty fields are taken from the
// last context, then from the session.
type Budget struct {
	Model     string
	Window    int64 // tokens; 0: the session's, then the catalogue's
	MaxOutput int64 // tokens that the reply may take; 0: only the reserve counts
	Dialect   string
	Settings  Settings

	System         *string         // replaces the caller's whole system text
	Initial        *[]session.Part // the caller's blocks before the conversation
	Tools          jsontext.Value  // the caller's tool schemas, counted
	OverheadTokens *int64          // replaces the count of Tools
	CloseCalls     bool            // answer pending calls with an error
	Explain        bool            // say where each number comes from, and how tokens were counted

	At *Position // nil: the session's head and effective overlay

	preferStaged bool // see preferStaged
}

// Position is a point of a session's past, for answering a repeated request as the first time.
type Position struct {
	HeadID       *int64
	CompactionID *int64
}

// TurnInput asks for the context of the next turn.
type TurnInput struct {
	Budget
	Volatile string // text of the moment (date, state), frozen with the newest message
	Flush    FlushCaller
}

// View is a context with everything that callers want to know of it.
type View struct {
	ID       string            `json:"context_id,omitempty" doc:"Name it as context_id in the record of the call made with this context. Missing: the context was only read, or calls are pending"`
	Messages []session.Message `json:"-"` // nil while calls are pending
	System   string            `json:"-"`
	Model    string            `json:"model"`
	Provider string            `json:"-"` // that the session's last call of this model named; "": unknown
	Dialect  string            `json:"-"`
	Info     session.ModelInfo `json:"-"`
	Borders  []int             `json:"-"` // messages that get a cache mark; SystemBorder: the system text
	Before   int               `json:"-"` // how many messages were in the context before; 0: unknown

	Tokens      Tokens       `json:"tokens" doc:"Size of the context and the limits of the model"`
	Prefix      Prefix       `json:"prefix" doc:"How much of the context before it extends"`
	Compaction  *ViewOverlay `json:"compaction" doc:"The compaction in effect; null: none"`
	Pending     []string     `json:"pending_calls" doc:"Ids of tool calls without a result: append their results first, or take the turn with close_calls"`
	Provenance  []Provenance `json:"provenance" doc:"Source of each item"`
	Adjustments []string     `json:"adjustments" doc:"Changes that the provider's rules or the reserve required"`
	Losses      []string     `json:"losses" doc:"Content that was left out or shortened"`
	Directives  []Directive  `json:"directives" doc:"Requests to the caller"`
	Warnings    []string     `json:"warnings" doc:"Warnings, for people"`
	Settings    []Setting    `json:"settings,omitempty" doc:"With explain: each setting, with its source"`
	Counting    *Counting    `json:"counting,omitempty" doc:"With explain: how tokens were counted"`
}

// ViewOverlay is the overlay of a context.
type ViewOverlay struct {
	ID       string           `json:"id,omitempty" doc:"The compaction's id, like cmp_12; missing: it exists only in this answer"`
	Strategy session.Strategy `json:"strategy"`
	Status   session.Status   `json:"status" doc:"done, staged (ready, used for a reading request) or ephemeral (only in this answer)"`
}

// Directive asks the agent for something.
type Directive struct {
	Type         string             `json:"type" doc:"memory_flush (run the prompt, so that the agent saves its memory), continue, or compaction_choice (compact with one of choices)"`
	Prompt       string             `json:"prompt,omitempty" doc:"Text for the model, in the user's role"`
	SystemPrompt string             `json:"system_prompt,omitempty" doc:"System text for that run"`
	Choices      []session.Strategy `json:"choices,omitempty" doc:"Of compaction_choice: the strategies"`
	Generation   *string            `json:"generation,omitempty" doc:"Of memory_flush: send it back with the acknowledgement; \"\" before the first compaction"`
}

// view describes the context. saved is its record, nil for one that was only read.
func (t *turn) view(saved *session.Context, explain bool) View {
	s := t.s
	v := View{
		System: t.draft.System, Model: s.model, Provider: s.provider(), Dialect: s.Dialect, Info: s.info,
		Tokens: t.tokens, Prefix: t.prefix(),
		Pending: nonNil(t.draft.Pending), Provenance: nonNil(t.draft.Provenance()), Adjustments: nonNil(t.draft.Adjustments),
		Losses: nonNil(t.draft.Losses), Directives: nonNil(t.directives), Warnings: nonNil(s.warnings),
	}
	if n := &s.numbers; n.Capped != "" && (explain || n.fractionIsChosen()) {
		v.Adjustments = append(v.Adjustments, n.Capped)
	}
	if len(v.Pending) == 0 {
		v.Messages, v.Borders, v.Before = t.draft.Messages(), t.cacheBorders(v.Prefix), t.endOfLast(v.Prefix)+1
	}
	if saved != nil {
		v.ID = session.ContextName(saved.RowID)
	}
	if c := s.Overlay; c != nil {
		v.Compaction = &ViewOverlay{Strategy: c.Strategy, Status: c.Status}
		if c.RowID == 0 {
			v.Compaction.Status = StatusEphemeral
		} else {
			v.Compaction.ID = session.CompactionName(c.RowID)
		}
	}
	if explain {
		v.Settings, v.Counting = s.numbers.Settings, s.explainCount(&t.tokens)
	}
	return v
}

// provider returns whom the model is asked of, as far as the session's last call says it.
func (s *snapshot) provider() string {
	if s.model != s.sess.Model {
		return ""
	}
	return s.sess.Provider
}

// nonNil returns an empty slice for nil, which JSON would write as null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
