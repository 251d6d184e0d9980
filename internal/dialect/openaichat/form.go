// Package openaichat is the wire form of OpenAI's Chat Completions and of the many servers
// that speak it.
//
// One message is one session.Message. Its parts stand in this order: reasoning, content,
// refusal, audio, calls. What no column can hold exactly stays raw in extra and wins over the
// columns on export, so that a field is never understood and lost at once.
package openaichat

import (
	"sessiond/internal/dialect/wire"
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
