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

// snake returns the other spelling of a field: inline_data.
func snake(field string) string {
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

// kindField returns the field by which a part is known that a name stands for, in either
// spelling; "" if it is none.
func kindField(name string) string {
	for _, field := range [...]string{fieldText, fieldInline, fieldFile, fieldCall, fieldResponse, fieldCode, fieldCodeResult, fieldToolCall, fieldToolResponse} {
		if name == field || name == snake(field) {
			return field
		}
	}
	return ""
}
