// Package wire is what the dialects share: the shape of a dialect (Form), and JSON that is read
// without losing a byte that matters: number literals, escapes that are no Unicode text, fields
// that nobody documented. A decoder goes through its entries with a Reader, which gives Values
// and Fields that know where they stand, and takes out of them what it understands; what is left
// becomes an Extra, and wins over the columns when the entry is exported.
package wire

import (
	"encoding/json"

	"sessiond/internal/session"
)

// Form is one dialect as three functions. Decode and Export are each other's inverse; Send
// is another thing: what the provider accepts as a request.
type Form struct {
	Name string

	// Decode reads messages of one request or reply, in order. Errors have code Malformed,
	// Invalid or TooLarge and name the place: messages[3].content[0].
	Decode func(raw []json.RawMessage) (Decoded, error)

	// Export gives messages back: those decoded by this form exactly as JSON values, one for
	// one; those of another form as this form's Send would say them.
	Export func(msgs []session.Message) ([]json.RawMessage, error)

	// Send makes the part of a provider's request that holds the conversation. It is nil for
	// a form that no provider takes.
	Send func(in Request) (Sent, error)
}

// Decoded is what a form read. A message has kind, role, origin, dialect, parts and extra,
// and what else the wire said; ids, times and token counts are the store's to give.
type Decoded struct {
	Messages []session.Message
	Warnings []string // what was stored otherwise than it came, with its path
}

// Request is a context to be sent. Its messages are in order and already repaired: each call
// has its result, results follow their calls.
type Request struct {
	System   string
	Messages []session.Message
	Model    string

	// Borders are the messages behind which the provider's cache is to keep what it has read,
	// -1 for the system text. A form without cache marks has nothing to write for them.
	Borders []int
}

// Sent is a context in a provider's words. Request goes into the provider's body as it is.
type Sent struct {
	Request session.JSON
	Losses  []string // what was left out or changed: "20260211_001.42: unknown part type x"

	// ThinkingOff says that the request must not ask the model to think: its provider refuses
	// to go on in a loop of tools whose calls were made without a thought of its own.
	ThinkingOff bool
}
