// Package wire holds the parts that the dialects share.
//
// A decoder (Reader) turns an entry into messages with open extras (Message, Part, Extra), encodes
// these again and compares. The difference is the remainder, extra.rest (Rest, Merge), so that no
// form lists the fields that it does not know. Where no remainder makes the entry whole, its own
// JSON is kept (extra.raw). Numbers compare as they are written; an escape that is no Unicode
// text is kept as it came.
package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Form is one dialect as three functions. Export inverts Decode; Send writes a request that the
// provider accepts.
type Form struct {
	Name string

	// Decode reads messages of one request or reply, in order. Errors have code Malformed,
	// Invalid or TooLarge and name the place: messages[3].content[0].
	Decode func(raw []jsontext.Value) (Decoded, error)

	// Export encodes messages: those decoded by this form as the same JSON values, those of
	// another form as this form's Send writes them.
	Export func(msgs []session.Message) ([]jsontext.Value, error)

	// FirstEntry returns how many of the messages Export makes the first entry of; nil: each is exported by itself.
	FirstEntry func(msgs []session.Message) int

	// Send encodes the part of a provider's request that holds the conversation. It is nil for
	// a form that no provider accepts.
	Send func(in Request) (Sent, error)

	// Rules returns what a provider requires of messages before Send, by the provider's and the model's name. It is
	// nil for a form that no provider accepts.
	Rules func(provider, model string) Rules

	// ResendsReasoning says that replies go back with their reasoning.
	ResendsReasoning bool

	// CacheReach is in how many blocks before a mark the provider searches its cache; 0: it needs no marks.
	CacheReach int
}

// Decoded is the result of Decode. A message has kind, role, origin, dialect, parts and extra; the
// store adds ids, times and token counts.
type Decoded struct {
	Messages []session.Message
	Warnings []string // values that are stored otherwise than they came, with their paths
}

// Request is a context to be sent. Its messages are in order and already repaired: each call
// has its result, results follow their calls.
type Request struct {
	System   string
	Messages []session.Message
	Model    string
	Provider string // of the model, as the ledger of calls names it; "": unknown

	// Borders are the messages behind which the provider's cache is to keep what it has read,
	// -1 for the system text. A form without cache marks has nothing to write for them.
	Borders []int

	// Before is how many of the messages the context before this one had: a provider's cache holds
	// what was sent of them. 0: unknown.
	Before int
}

// Sent is a context in a provider's words. Request goes into the provider's body as it is.
type Sent struct {
	Request session.JSON
	Losses  []string // what was left out or changed: "20260211_001.42: unknown part type x"

	// ThinkingOff says that the request must not ask the model to think: its provider refuses
	// to go on in a loop of tools whose calls were made without a thought of its own.
	ThinkingOff bool

	// ToolNames maps the name that a tool is sent under to its own, where the provider does not
	// take that.
	ToolNames map[string]string

	// BrokenBy names the rule by which what was sent of the context before is sent otherwise now,
	// "" if none did.
	BrokenBy string
}
