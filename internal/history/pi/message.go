package pi

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

type rawJSON = jsontext.Value

// talk decodes a line that holds a message, by the message's role.
func (l *Line) talk() {
	m := &l.Message
	if l.Inner == nil {
		m.Kind, l.Raw = session.KindUnknown, true
		return
	}
	message := history.Taker{Object: l.Inner}
	m.Kind, m.InContext = session.KindMessage, true
	switch role := message.String("role"); role {
	case "user":
		m.Role, m.Origin = session.User, session.Person
		m.Parts, l.shape = contentOf(message.Take("content"))
		message.Take("role")
	case "assistant":
		l.reply(&message)
	case "toolResult":
		l.result(&message)
	case "system":
		m.Role = session.System
		l.prompt(&message)
	case "bashExecution":
		m.Kind, m.Role, m.Origin = session.KindBash, session.User, session.Person
		m.InContext = !takeFlag(&message, "excludeFromContext", false)
		if !m.InContext {
			message.Object = append(message.Object, jsonx.Member{Key: "excludeFromContext", Value: rawJSON("true")})
		}
		shell(&message, m)
	case "custom", "hookMessage":
		m.Kind, m.Role = session.KindCustomMessage, session.User
		m.Display = takeFlag(&message, "display", true)
		m.Parts, l.shape = contentOf(message.Take("content"))
	case "branchSummary", "compactionSummary":
		m.Kind, m.Role = session.KindBranchSummary, session.User
		l.summary(&message)
	default:
		m.Kind, m.InContext, l.Raw = session.KindUnknown, false, true
	}
	l.Rest.Object = l.Rest.With("message", message.Object.Value())
}

// finishOf returns the finish that a stop reason of pi says exactly, "" for none.
func finishOf(stopReason string) session.Finish {
	switch stopReason {
	case "stop":
		return session.FinishStop
	case "length":
		return session.FinishLength
	case "toolUse":
		return session.FinishToolCalls
	case "error":
		return session.FinishError
	case "aborted":
		return session.FinishAborted
	case "deferred":
		return session.FinishPaused
	}
	return ""
}

// reply decodes a model's message and its usage.
func (l *Line) reply(message *history.Taker) {
	m := &l.Message
	m.Role, m.Origin = session.Assistant, session.Model
	m.Parts, l.shape = contentOf(message.Take("content"))
	m.Provider = message.Text("provider")
	if m.Model = message.String("responseModel"); m.Model == "" {
		m.Model = message.Text("model")
	}
	if m.Finish = finishOf(message.String("stopReason")); m.Finish != "" {
		message.Take("stopReason")
	}
	message.Take("role")
	if !l.bill(message.Get("usage"), session.PurposeChat, m.Provider, m.Model) {
		return
	}
	call := &l.Calls[0]
	if m.Finish.Failed() {
		call.Status, call.Error = session.CallFailed, message.String("errorMessage")
		if call.Error == "" {
			call.Error = string(m.Finish)
		}
	}
	// A reply's own time is that of the request.
	if begun, ok := history.UnixMilli(message.Get("timestamp")); ok {
		took := m.CreatedAt.Sub(begun.Time)
		if ms := took.Milliseconds(); took >= 0 && took < time.Hour {
			call.LatencyMS = &ms
		}
	}
}

// bill adds a call if there is a usage to count.
func (l *Line) bill(usage []byte, purpose session.Purpose, provider, model string) bool {
	call, ok := usageOf(usage, provider)
	if !ok {
		return false
	}
	call.Purpose, call.Provider, call.Model = purpose, provider, model
	l.Calls = append(l.Calls, history.Call{Call: call})
	return true
}

// result decodes the answer to a call: one tool_result part with the text, and a part for
// each image. blocks tells how the text was divided, where it was not one plain block.
func (l *Line) result(message *history.Taker) {
	m := &l.Message
	m.Role, m.Origin = session.Tool, session.ByTool
	answer := session.Part{
		Kind: session.PartToolResult, CallID: message.Text("toolCallId"),
		ToolName: message.Text("toolName"),
	}
	if is := string(message.Get("isError")); is == "true" || is == "false" {
		answer.IsError = new(takeFlag(message, "isError", false))
	}
	blocks, shape := contentOf(message.Take("content"))
	l.shape = shape
	m.Parts = []session.Part{answer}
	var texts []string
	var layout []jsontext.Value
	for _, block := range blocks {
		if block.Kind != session.PartText {
			layout = append(layout, rawJSON(jsonx.Object{field("part", len(m.Parts))}.Column()))
			if block.Kind == session.PartImage {
				block.CallID = answer.CallID
			}
			m.Parts = append(m.Parts, block)
			continue
		}
		texts = append(texts, block.Text)
		part := jsonx.Object{field("bytes", len(block.Text))}
		if block.Extra != nil {
			part = append(part, field("rest", rawJSON(block.Extra)))
		}
		layout = append(layout, rawJSON(part.Column()))
	}
	m.Parts[0].Text = strings.Join(texts, "\n")
	plain := len(blocks) == 1 && len(texts) == 1 && texts[0] != "" && blocks[0].Extra == nil
	if len(layout) > 0 && !plain {
		m.Parts[0].Extra = jsonx.Object{field("blocks", rawJSON(jsonx.Array(layout)))}.Column()
	}
	message.Take("role")
	l.bill(message.Get("usage"), session.PurposeTool, "", "")
}

// prompt decodes the state of the system prompt: its content, then its sections by name.
func (l *Line) prompt(message *history.Taker) {
	m := &l.Message
	m.Parts, l.shape = contentOf(message.Take("content"))
	sections, ok := jsonx.ReadFields(message.Get("sections"))
	if !ok || len(sections)+len(m.Parts) > session.MaxParts {
		return
	}
	for _, section := range sections {
		text, exact := jsonx.Text(section.Value)
		if !exact {
			return // a removed section: the whole patch stays in extra
		}
		part := session.TextPart(text)
		part.Extra = session.JSONOf(map[string]string{"section": section.Key})
		m.Parts = append(m.Parts, part)
	}
	message.Take("sections")
}

// summary takes a summary as the text of a message; an empty one does not enter the context.
func (l *Line) summary(from *history.Taker) {
	text := from.Text("summary")
	if l.Message.InContext = text != ""; text != "" {
		l.Message.Parts = []session.Part{session.TextPart(text)}
	}
}

// shell writes a command that the person ran as pi gives it to the model. Where the output
// stands in the text is kept, in bytes, so that it need not be stored twice.
func shell(message *history.Taker, m *session.Message) {
	output, exact := jsonx.Text(message.Get("output"))
	var b strings.Builder
	fmt.Fprintf(&b, "Ran `%s`\n", message.String("command"))
	var extra session.JSON
	if output == "" {
		b.WriteString("(no output)")
	} else {
		b.WriteString("```\n")
		if exact {
			extra = session.JSONOf(map[string][2]int{"output": {b.Len(), b.Len() + len(output)}})
			message.Take("output")
		}
		b.WriteString(output + "\n```")
	}
	code, failed := history.Number(message.Get("exitCode"))
	switch {
	case string(message.Get("cancelled")) == "true":
		b.WriteString("\n\n(command cancelled)")
	case failed && code != 0:
		fmt.Fprintf(&b, "\n\nCommand exited with code %g", code)
	}
	if path := message.String("fullOutputPath"); path != "" && string(message.Get("truncated")) == "true" {
		fmt.Fprintf(&b, "\n\n[Output truncated. Full output: %s]", path)
	}
	part := session.TextPart(b.String())
	part.Extra = extra
	m.Parts = []session.Part{part}
}
