// Package talktest makes the messages of conversations for tests of summaries.
package talktest

import (
	"fmt"
	"strings"

	"sessiond/internal/session"
)

// Count is a stand-in for the reference counter: three bytes are a token.
func Count(s string) int64 { return int64(len(s)+2) / 3 }

// Said returns a message.
func Said(role session.Role, origin session.Origin, text string) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, InContext: true,
		Parts: []session.Part{session.TextPart(text)},
	}
	if role == session.Assistant {
		m.Finish = session.FinishStop
	}
	return m
}

// Person returns what a person said.
func Person(text string) session.Message { return Said(session.User, session.Person, text) }

// Model returns what the model said.
func Model(text string) session.Message { return Said(session.Assistant, session.Model, text) }

// Injected returns what a program said for a person.
func Injected(text string) session.Message {
	return Said(session.User, session.Program, text)
}

// Call returns the call of a tool.
func Call(tool, arguments string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, Finish: session.FinishToolCalls,
		InContext: true,
		Parts:     []session.Part{{Kind: session.PartToolCall, ToolName: tool, CallID: "c1", Arguments: arguments}},
	}
}

// Result returns the result of a call.
func Result(tool, text string, failed bool) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: session.Tool, Origin: session.ByTool, InContext: true,
		Parts: []session.Part{{Kind: session.PartToolResult, ToolName: tool, CallID: "c1", Text: text, IsError: &failed}},
	}
}

// CompanyB is a conversation in which a tool names prices early on and much talk follows.
func CompanyB() []session.Message {
	msgs := []session.Message{
		Person("Compare the prices of the three vendors for me. Never order anything without asking me first."),
		Call("web_search", `{"query":"vendor prices"}`),
		Result("web_search",
			"CompanyA sells it at $99 a seat.\nCompanyB sells it at $129 a seat.\nCompanyC sells it at $89 a seat.", false),
		Model("I have the prices of all three."),
	}
	for i := range 100 {
		msgs = append(msgs,
			Person(fmt.Sprintf("Let us talk about topic number %d of the plan now, and about how the team works.", i)),
			Model(fmt.Sprintf("Topic %d is about the way in which the team works on its plan, step by step.", i)))
	}
	return msgs
}

func Between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	section, _, _ := strings.Cut(rest, to)
	return section
}
