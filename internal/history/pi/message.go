package pi

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

type rawJSON = json.RawMessage

// talk decodes a line that holds a message, by the message's role.
func (d *decoder) talk(rest *taker, e *entry, remark *note) {
	inner, ok := rest.message, rest.message != nil
	if !ok {
		inner, ok = history.Fields(rest.Get("message"))
	}
	if !ok {
		e.message.Kind, e.raw = session.KindUnknown, true
		return
	}
	message := take(inner)
	message.blocks = rest.blocks
	m := &e.message.Message
	m.Kind, m.InContext = session.KindMessage, true
	switch role := message.String("role"); role {
	case "user":
		m.Role, m.Origin = session.User, session.Person
		m.Parts, remark.shape = message.content()
		message.take("role")
	case "assistant":
		reply(&message, e, remark)
	case "toolResult":
		result(&message, e, remark)
	case "system":
		m.Role = session.System
		prompt(&message, m, remark)
	case "bashExecution":
		m.Kind, m.Role, m.Origin = session.KindBash, session.User, session.Person
		m.InContext = !message.flag("excludeFromContext", false)
		if !m.InContext {
			message.Object = append(message.Object, history.Field{Key: "excludeFromContext", Raw: rawJSON("true")})
		}
		shell(&message, m)
	case "custom", "hookMessage":
		m.Kind, m.Role = session.KindCustomMessage, session.User
		m.Display = message.flag("display", true)
		m.Parts, remark.shape = message.content()
	case "branchSummary", "compactionSummary":
		m.Kind, m.Role = session.KindBranchSummary, session.User
		d.summary(&message, m)
	default:
		m.Kind, m.InContext, e.raw = session.KindUnknown, false, true
	}
	rest.Object = rest.With("message", objectJSON(message.Object))
}

func objectJSON(o history.Object) []byte {
	if len(o) == 0 {
		return []byte("{}")
	}
	return o.JSON()
}

// finishes are pi's stop reasons that a finish says exactly.
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
func reply(message *taker, e *entry, remark *note) {
	m := &e.message.Message
	m.Role, m.Origin = session.Assistant, session.Model
	m.Parts, remark.shape = message.content()
	m.Provider = message.text("provider")
	if m.Model = message.String("responseModel"); m.Model == "" {
		m.Model = message.text("model")
	}
	if m.Finish = finishOf(message.String("stopReason")); m.Finish != "" {
		message.take("stopReason")
	}
	message.take("role")
	if !e.bill(message.Get("usage"), session.PurposeChat, m.Provider, m.Model) {
		return
	}
	call := &e.calls[0]
	if m.Finish.Failed() {
		call.Status, call.Error = session.CallFailed, message.String("errorMessage")
		if call.Error == "" {
			call.Error = string(m.Finish)
		}
	}
	// A reply's own time is that of the request.
	if begun, ok := unixMilli(message.Get("timestamp")); ok {
		took := m.CreatedAt.Sub(begun.Time)
		if ms := took.Milliseconds(); took >= 0 && took < time.Hour {
			call.LatencyMS = &ms
		}
	}
}

// bill adds a call if there is a usage to count.
func (e *entry) bill(usage []byte, purpose session.Purpose, provider, model string) bool {
	call, ok := usageOf(usage, provider)
	if !ok {
		return false
	}
	call.Purpose, call.Provider, call.Model = purpose, provider, model
	e.calls = append(e.calls, history.Call{Call: call})
	return true
}

// result decodes the answer to a call: one tool_result part with the text, and a part for
// each image. blocks tells how the text was divided, where it was not one plain block.
func result(message *taker, e *entry, remark *note) {
	m := &e.message.Message
	m.Role, m.Origin = session.Tool, session.ByTool
	answer := session.Part{Kind: session.PartToolResult, CallID: message.text("toolCallId"), ToolName: message.text("toolName")}
	if is := string(message.Get("isError")); is == "true" || is == "false" {
		failed := message.flag("isError", false)
		answer.IsError = &failed
	}
	blocks, shape := message.content()
	remark.shape = shape
	m.Parts = []session.Part{answer}
	var texts []string
	var layout []history.Object
	for _, block := range blocks {
		if block.Kind != session.PartText {
			layout = append(layout, history.Object{{Key: "part", Raw: rawJSON(fmt.Sprint(len(m.Parts)))}})
			if block.Kind == session.PartImage {
				block.CallID = answer.CallID
			}
			m.Parts = append(m.Parts, block)
			continue
		}
		texts = append(texts, block.Text)
		part := history.Object{{Key: "bytes", Raw: rawJSON(fmt.Sprint(len(block.Text)))}}
		if block.Extra != nil {
			part = append(part, history.Field{Key: "rest", Raw: rawJSON(block.Extra)})
		}
		layout = append(layout, part)
	}
	m.Parts[0].Text = strings.Join(texts, "\n")
	if plain := len(blocks) == 1 && len(layout[0]) == 1 && m.Parts[0].Text != ""; !plain && len(layout) > 0 {
		m.Parts[0].Extra = layoutJSON(layout)
	}
	message.take("role")
	e.bill(message.Get("usage"), session.PurposeTool, "", "")
}

func layoutJSON(layout []history.Object) session.JSON {
	list := []byte{'['}
	for i, o := range layout {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, o.JSON()...)
	}
	return history.Object{{Key: "blocks", Raw: append(list, ']')}}.JSON()
}

// prompt decodes the state of the system prompt: its content, then its sections by name.
func prompt(message *taker, m *session.Message, remark *note) {
	m.Parts, remark.shape = message.content()
	sections, ok := history.Fields(message.Get("sections"))
	if !ok || len(sections)+len(m.Parts) > session.MaxParts {
		return
	}
	for _, section := range sections {
		text, exact := history.Text(section.Raw)
		if !exact {
			return // a removed section: the whole patch stays in extra
		}
		part := session.TextPart(text)
		part.Extra = session.JSONOf(map[string]string{"section": section.Key})
		m.Parts = append(m.Parts, part)
	}
	message.take("sections")
}

// summary takes a summary as the text of a message; an empty one does not enter the context.
func (d *decoder) summary(from *taker, m *session.Message) {
	raw := from.Get("summary")
	text := from.text("summary")
	if m.InContext = text != ""; !m.InContext {
		if raw != nil {
			from.Object = from.With("summary", raw)
		}
		return
	}
	m.Parts = []session.Part{session.TextPart(text)}
}

// shell writes a command that the person ran as pi gives it to the model. Where the output
// stands in the text is kept, in bytes, so that it need not be stored twice.
func shell(message *taker, m *session.Message) {
	output, exact := history.Text(message.Get("output"))
	var b strings.Builder
	fmt.Fprintf(&b, "Ran `%s`\n", message.String("command"))
	var extra session.JSON
	if output == "" {
		b.WriteString("(no output)")
	} else {
		b.WriteString("```\n")
		if exact {
			extra = session.JSONOf(map[string][2]int{"output": {b.Len(), b.Len() + len(output)}})
			message.take("output")
		}
		b.WriteString(output + "\n```")
	}
	code, failed := number(message.Get("exitCode"))
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
