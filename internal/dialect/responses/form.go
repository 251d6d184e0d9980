// Package responses is the wire form of OpenAI's Responses API: a list of items.
//
// Consecutive items that the model made are one assistant message, consecutive outputs of
// tools one tool message, any other item is one message. An item's own fields stand in the
// extra.item of its first part, so a part with an item begins one; its elements are the parts
// that follow. The fields that no column holds are there, and win over the columns on export.
//
// A tool that the provider runs (a search, an interpreter) is a call and its result in the
// assistant's message: nobody answers it.
//
// A whole response object {object:"response", output:[…]} is taken too: what stands around
// its output is in the message's extra.response.
package responses

import (
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "openai.responses"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, Send: Send}
}

// Types of items.
const (
	itemMessage         = "message"
	itemReasoning       = "reasoning"
	itemCompaction      = "compaction"
	itemReference       = "item_reference"
	itemFunctionCall    = "function_call"
	itemCustomCall      = "custom_tool_call"
	itemComputerCall    = "computer_call"
	itemLocalShellCall  = "local_shell_call"
	itemShellCall       = "shell_call"
	itemApplyPatchCall  = "apply_patch_call"
	itemToolSearchCall  = "tool_search_call"
	itemWebSearchCall   = "web_search_call"
	itemFileSearchCall  = "file_search_call"
	itemInterpreterCall = "code_interpreter_call"
	itemImageCall       = "image_generation_call"
	itemMCPCall         = "mcp_call"
	itemMCPTools        = "mcp_list_tools"
	itemMCPRequest      = "mcp_approval_request"
	itemMCPResponse     = "mcp_approval_response"

	itemFunctionOutput   = "function_call_output"
	itemCustomOutput     = "custom_tool_call_output"
	itemComputerOutput   = "computer_call_output"
	itemLocalShellOutput = "local_shell_call_output"
	itemShellOutput      = "shell_call_output"
	itemApplyPatchOutput = "apply_patch_call_output"
	itemToolSearchOutput = "tool_search_output"
)

// Types of the elements of a content.
const (
	typeInputText  = "input_text"
	typeOutputText = "output_text"
	typeText       = "text"
	typeRefusal    = "refusal"
	typeImage      = "input_image"
	typeScreenshot = "computer_screenshot"
	typeFile       = "input_file"
	typeAudio      = "input_audio"
	typeSummary    = "summary_text"
	typeReasoning  = "reasoning_text"
)

// roleDeveloper is the role of the wire that shares session.System with another.
const roleDeveloper = "developer"

// textType is the type that a text has in a message of a role.
func textType(role session.Role) string {
	if role == session.Assistant {
		return typeOutputText
	}
	return typeInputText
}

// typeCustom marks a call of a custom tool, in the word that openai.chat has for it too.
const typeCustom = "custom"

// callSpec says where an item of a call holds what the columns hold.
type callSpec struct {
	tool      string // the tool's name; "" = the item's name says it
	arguments string // the field of the arguments
	text      bool   // the arguments are a string, and not any JSON value
	needsID   bool   // call_id must be there
	hosted    bool   // the provider runs it: id names it, and its result stands in it
}

// specOf returns the callSpec of a type of items.
func specOf(kind string) (callSpec, bool) {
	switch kind {
	case itemFunctionCall:
		return callSpec{arguments: "arguments", text: true, needsID: true}, true
	case itemCustomCall:
		return callSpec{arguments: "input", text: true, needsID: true}, true
	case itemComputerCall:
		return callSpec{tool: "computer", arguments: "action", needsID: true}, true
	case itemLocalShellCall:
		return callSpec{tool: "local_shell", arguments: "action"}, true
	case itemShellCall:
		return callSpec{tool: "shell", arguments: "action", needsID: true}, true
	case itemApplyPatchCall:
		return callSpec{tool: "apply_patch", arguments: "operation", needsID: true}, true
	case itemToolSearchCall:
		return callSpec{tool: "tool_search", arguments: "arguments"}, true
	case itemWebSearchCall:
		return callSpec{tool: "web_search", arguments: "action", hosted: true}, true
	case itemFileSearchCall:
		return callSpec{tool: "file_search", arguments: "queries", hosted: true}, true
	case itemInterpreterCall:
		return callSpec{tool: "code_interpreter", arguments: "code", text: true, hosted: true}, true
	case itemImageCall:
		return callSpec{tool: "image_generation", arguments: "revised_prompt", text: true, hosted: true}, true
	case itemMCPCall:
		return callSpec{arguments: "arguments", text: true, hosted: true}, true
	}
	return callSpec{}, false
}

// outputTool returns the tool whose output an item is; known is false for an item that is none.
// The output of a function does not say whose it is.
func outputTool(kind string) (tool string, known bool) {
	switch kind {
	case itemFunctionOutput, itemCustomOutput:
		return "", true
	case itemComputerOutput:
		return "computer", true
	case itemLocalShellOutput:
		return "local_shell", true
	case itemShellOutput:
		return "shell", true
	case itemApplyPatchOutput:
		return "apply_patch", true
	case itemToolSearchOutput:
		return "tool_search", true
	}
	return "", false
}
