// Package gemini is the wire form of Google's Gemini API, generateContent: contents of parts.
//
// One content is one session.Message and each part of it one session.Part, in order, with two
// exceptions. Parts within a function's response follow it as parts of their own. A content
// that mixes responses with what a person says becomes a tool's message and a user's message,
// which share extra.wire.entry and are put together again on export. Code that the provider
// ran and its output are a call and a result in one message of the model's.
//
// The wire often has no ids. Those that are made here (see madeID) are marked and neither
// exported nor sent. Field names are read in both spellings that protobuf's JSON allows
// (functionCall and function_call) and written as the API documents them.
package gemini

import "sessiond/internal/dialect/wire"

// Name is the dialect's name.
const Name = "gemini"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, Send: Send}
}

// Roles of the wire.
const (
	roleUser     = "user"
	roleModel    = "model"
	roleFunction = "function" // older clients give it to responses
	roleTool     = "tool"     // some frameworks do
	roleSystem   = "system"   // of a systemInstruction
)

// Fields of which a part has one: what it is.
const (
	fieldText         = "text"
	fieldInline       = "inlineData"
	fieldFile         = "fileData"
	fieldCall         = "functionCall"
	fieldResponse     = "functionResponse"
	fieldCode         = "executableCode"
	fieldCodeResult   = "codeExecutionResult"
	fieldToolCall     = "toolCall"     // of a tool that the provider runs
	fieldToolResponse = "toolResponse" // and what that gave
)

// Fields that stand beside them.
const (
	fieldThought         = "thought"
	fieldSignature       = "thoughtSignature"
	fieldVideoMetadata   = "videoMetadata"
	fieldMediaResolution = "mediaResolution"
)

// Shapes of what is not as usual: of a message its parts (usual: an array), of a text that it
// is not there, of a response (usual: an object), of arguments (usual: an object).
const (
	shapeAbsent = "absent"
	shapeNull   = "null"
	shapeString = "string"
)

// snake gives the other spelling of a field.
func snake(field string) string {
	switch field {
	case fieldInline:
		return "inline_data"
	case fieldFile:
		return "file_data"
	case fieldCall:
		return "function_call"
	case fieldResponse:
		return "function_response"
	case fieldCode:
		return "executable_code"
	case fieldCodeResult:
		return "code_execution_result"
	case fieldToolCall:
		return "tool_call"
	case fieldToolResponse:
		return "tool_response"
	case fieldSignature:
		return "thought_signature"
	case fieldVideoMetadata:
		return "video_metadata"
	case fieldMediaResolution:
		return "media_resolution"
	}
	b := make([]byte, 0, len(field)+2)
	for i := range len(field) {
		c := field[i]
		if c >= 'A' && c <= 'Z' {
			b = append(b, '_', c-'A'+'a')
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

// kindField gives the field by which a part is known that a name stands for, in either
// spelling; "" if it is none.
func kindField(name string) string {
	switch name {
	case fieldText:
		return fieldText
	case fieldInline, "inline_data":
		return fieldInline
	case fieldFile, "file_data":
		return fieldFile
	case fieldCall, "function_call":
		return fieldCall
	case fieldResponse, "function_response":
		return fieldResponse
	case fieldCode, "executable_code":
		return fieldCode
	case fieldCodeResult, "code_execution_result":
		return fieldCodeResult
	case fieldToolCall, "tool_call":
		return fieldToolCall
	case fieldToolResponse, "tool_response":
		return fieldToolResponse
	}
	return ""
}
