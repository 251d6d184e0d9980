package contextmgr

import (
	"encoding/json"

	"sessiond/internal/session"
)

// StatusEphemeral is an overlay that was made in memory to answer a read.
const StatusEphemeral = "ephemeral"

// Budget is what a context is for, and the caller's own text in it. What is left empty is
// taken from the last context that was handed out, then from the session.
type Budget struct {
	Model     string
	Window    int64 // tokens; 0: the session's, then the catalogue's
	MaxOutput int64 // tokens that the reply may take; 0: the reserve alone counts
	Dialect   string
	Settings  Settings

	System         *string         // replaces the caller's system text as a whole
	Initial        *[]session.Part // the caller's own blocks before the conversation
	Tools          json.RawMessage // the caller's tool schemas, counted
	OverheadTokens *int64          // instead of counting Tools
	CloseCalls     bool            // answer calls that wait with an error
	Explain        bool            // tell where each number comes from, and how tokens were counted

	At *Position // nil: the session's head and effective overlay
}

// Position is a point of a session's past, for answering a repeated request as the first time.
type Position struct {
	HeadID       *int64
	CompactionID *int64
}

// TurnInput is what the next turn is for.
type TurnInput struct {
	Budget
	Volatile string // text of the moment (date, state), frozen with the newest message
	Flush    FlushCaller
}

// View is a context and everything that there is to say about it.
type View struct {
	ID       string            `json:"context_id,omitempty"` // of a committed one
	Messages []session.Message `json:"-"`                    // nil while calls are pending
	System   string            `json:"-"`
	Model    string            `json:"model"`
	Dialect  string            `json:"-"`
	Info     session.ModelInfo `json:"-"`
	Borders  []int             `json:"-"` // messages behind which a cache mark goes; SystemBorder: the system text

	Tokens      Tokens       `json:"tokens"`
	Prefix      Prefix       `json:"prefix"`
	Compaction  *ViewOverlay `json:"compaction"`
	Pending     []string     `json:"pending_calls"`
	Provenance  []Provenance `json:"provenance"`
	Adjustments []string     `json:"adjustments"`
	Losses      []string     `json:"losses"`
	Directives  []Directive  `json:"directives"`
	Warnings    []string     `json:"warnings"`
	Settings    []Setting    `json:"settings,omitempty"` // with explain
	Counting    *Counting    `json:"counting,omitempty"` // with explain: how tokens.total came about
}

// ViewOverlay is the overlay that a context was made with.
type ViewOverlay struct {
	ID       string           `json:"id,omitempty"`
	Strategy session.Strategy `json:"strategy"`
	Status   session.Status   `json:"status"` // done, staged (used to answer a read) or ephemeral
}

// Directive asks the agent for something.
type Directive struct {
	Type         string             `json:"type"` // memory_flush, continue, compaction_choice
	Prompt       string             `json:"prompt,omitempty"`
	SystemPrompt string             `json:"system_prompt,omitempty"`
	Choices      []session.Strategy `json:"choices,omitempty"`
	Generation   string             `json:"generation,omitempty"` // of a memory flush: the overlay in whose time it is asked for; "" before the first
}
