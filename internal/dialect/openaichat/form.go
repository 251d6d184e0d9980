// Package openaichat is the wire form of OpenAI's Chat Completions and of the many servers
// that speak it.
//
// One message is one session.Message. Its parts stand in this order: reasoning, content,
// refusal, audio, calls. The fields that no column holds are in extra.rest, and win over the
// columns on export.
package openaichat

import "sessiond/internal/dialect/wire"

// Name is the dialect's name.
const Name = "openai.chat"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, Send: Send}
}

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
