// Package openaichat is the wire form of OpenAI's Chat Completions and of the many servers
// that speak it.
//
// One message is one session.Message. Its parts stand in this order: reasoning, content,
// refusal, audio, calls. What no column can hold exactly stays raw in extra and wins over the
// columns on export, so that a field is never understood and lost at once.
package openaichat

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "openai.chat"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, Send: Send}
}

// Shapes of a content that are not a string with text in it.
const (
	shapeAbsent = "absent"
	shapeNull   = "null"
	shapeEmpty  = "empty" // ""
	shapeArray  = "array"
)

// Roles of the wire that share a role with another one.
const (
	roleDeveloper = "developer"
	roleFunction  = "function"
)

// Types of calls and of elements of content.
const (
	typeFunction = "function"
	typeCustom   = "custom"
	typeText     = "text"
	typeImage    = "image_url"
	typeAudio    = "input_audio"
	typeFile     = "file"
	typeRefusal  = "refusal"
)

// Fields of a message that become parts.
const (
	fieldReasoning        = "reasoning"         // OpenRouter, vLLM
	fieldReasoningContent = "reasoning_content" // DeepSeek, Qwen
	fieldRefusal          = "refusal"
	fieldAudio            = "audio"
	fieldToolCalls        = "tool_calls"
	fieldFunctionCall     = "function_call"
)

// messageExtra is messages.extra of a message that came in this form.
type messageExtra struct {
	Shape  string       `json:"shape,omitempty"`
	Role   string       `json:"role,omitempty"`   // developer or function
	Fields wire.Object  `json:"fields,omitzero"`  // as they came
	Choice *wire.Object `json:"choice,omitempty"` // what stood around the message in a reply's choice
}

// partExtra is parts.extra of a part that came in this form.
type partExtra struct {
	wire.Media
	Field  string          `json:"field,omitempty"`  // of the message, for a part that is not of its content
	Type   string          `json:"type,omitempty"`   // of a call that is no function's, of an element that no kind holds
	At     *int            `json:"at,omitempty"`     // of a result: which element is its text, -1 for none; nil: the first
	Prefix string          `json:"prefix,omitempty"` // of a data URL, before its bytes
	Absent []string        `json:"absent,omitempty"` // what export would write and the wire had not
	Inner  wire.Object     `json:"inner,omitzero"`   // fields of image_url, input_audio, file, function or custom, as they came
	Fields wire.Object     `json:"fields,omitzero"`  // fields around it, as they came
	Raw    json.RawMessage `json:"raw,omitempty"`    // all of it, where no kind holds it
}

func (x *partExtra) store(p *session.Part) {
	if b := session.JSONOf(x); string(b) != "{}" {
		p.Extra = b
	}
}

func extraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	if len(p.Extra) == 0 {
		return x, nil
	}
	if err := json.Unmarshal(p.Extra, &x); err != nil {
		return x, session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return x, nil
}
