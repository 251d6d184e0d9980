package openaichat

import (
	"encoding/json"
	"slices"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// assistant writes a reply: its text, or its refusal, and its calls.
func (s *sender) assistant(m *session.Message) {
	s.open = nil
	var elements, calls []json.RawMessage
	refusal, spoken := "", ""
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case session.PartText:
			elements = appendText(elements, p.Content())
		case session.PartRefusal:
			refusal += p.Content()
		case session.PartAudio:
			if spoken += p.Content(); p.Content() == "" {
				s.losePart(m, p)
			}
		case session.PartToolCall:
			if answeredInside(m, p) {
				s.lose(m, "a tool that the provider ran itself: "+wire.Clip(p.ToolName))
				continue
			}
			calls = append(calls, s.call(m, p, len(calls) == 0))
		case session.PartToolResult: // of a call that was left out with it
		default:
			s.losePart(m, p)
		}
	}
	if len(elements) == 0 { // what was said aloud stands in for what was not written
		elements = appendText(elements, spoken)
	}
	var o wire.Object
	o.SetText("role", "assistant")
	switch {
	case len(elements) > 0:
		o.Set("content", contentOf(elements))
		if refusal != "" {
			o.SetText("refusal", refusal)
		}
	case refusal != "":
		var element wire.Object
		element.SetText("type", typeRefusal)
		element.SetText(typeRefusal, refusal)
		o.Set("content", wire.AppendArray(nil, []json.RawMessage{element.JSON()}))
	case len(calls) > 0:
		o.Set("content", json.RawMessage("null"))
	default:
		o.SetText("content", "")
	}
	s.name(m, &o)
	if len(calls) > 0 {
		o.Set(fieldToolCalls, wire.AppendArray(nil, calls))
	}
	s.out = append(s.out, o.JSON())
}

// answeredInside tells whether the reply itself holds the result of a call: then the provider
// ran the tool, and this API would wait for an answer that nobody owes it.
func answeredInside(m *session.Message, call *session.Part) bool {
	for _, r := range m.Results() {
		if r.CallID == call.CallID {
			return true
		}
	}
	return false
}

// call writes one call and opens it; first is one that no other stands before in its reply. A
// function_call of the older API is sent as a tool's.
func (s *sender) call(m *session.Message, p *session.Part, first bool) json.RawMessage {
	var x struct {
		Type string `json:"type"`
	}
	kind, arguments := typeFunction, "arguments"
	if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil && x.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	s.calls++
	id := p.CallID
	if id == "" {
		id = "call_made_" + strconv.Itoa(s.calls)
	}
	id = legalCallID(s.ids.Call(id))
	s.open = append(s.open, openCall{id: p.CallID, name: p.ToolName, sent: id})
	name := legalTool(p.ToolName)
	if name != p.ToolName {
		s.lose(m, "the tool's name "+strconv.Quote(wire.Clip(p.ToolName))+" is sent as "+strconv.Quote(name))
	}
	var inner, o wire.Object
	inner.SetText("name", name)
	inner.SetText(arguments, p.Arguments)
	o.SetText("id", id)
	o.SetText("type", kind)
	o.Set(kind, inner.JSON())
	if signature := s.signature(m, p, first); signature != "" {
		o.Set("extra_content", json.RawMessage(`{"google":{"thought_signature":`+signature+`}}`))
	}
	return o.JSON()
}

// signature gives the thought signature that a Gemini asks for, as JSON; "" for none. Any other
// model's API would refuse the field.
func (s *sender) signature(m *session.Message, p *session.Part, first bool) string {
	if s.generation == 0 {
		return ""
	}
	raw := wire.CallSignature(p)
	if text, exact := wire.TextOf(raw); exact && wire.IsSignature(text) {
		return string(raw)
	} else if text != "" {
		s.lose(m, "a thought signature that is no base64")
	}
	if !first || s.generation < wire.Signed {
		return ""
	}
	if !s.skipped {
		s.lose(m, "calls without a thought signature are sent with the one that skips its check")
	}
	s.skipped = true
	return `"` + wire.NoSignature + `"`
}

// tool writes one message for each result. Other parts belong to the result before them.
func (s *sender) tool(m *session.Message) {
	for at := 0; at < len(m.Parts); {
		next := at + 1
		for next < len(m.Parts) && m.Parts[next].Kind != session.PartToolResult {
			next++
		}
		if m.Parts[at].Kind == session.PartToolResult {
			s.result(m, m.Parts[at:next])
		} else {
			for i := at; i < next; i++ {
				s.losePart(m, &m.Parts[i])
			}
		}
		at = next
	}
}

func (s *sender) result(m *session.Message, parts []session.Part) {
	id := s.close(&parts[0])
	var elements, media []json.RawMessage
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case session.PartToolResult, session.PartText, session.PartRefusal:
			elements = appendText(elements, p.Content())
		default:
			if e := s.medium(m, p); e != nil {
				media = append(media, e)
			}
		}
	}
	if len(media) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of call "+id+":"), media...)
	}
	var o wire.Object
	o.SetText("role", "tool")
	o.SetText("tool_call_id", id)
	o.Set("content", contentOf(elements))
	s.out = append(s.out, o.JSON())
}

// close gives the id of the call that a result answers. One that came without an id, by the
// older API, answers the first open call of its name, else the first open one.
func (s *sender) close(p *session.Part) string {
	id := legalCallID(s.ids.Result(p.CallID))
	at := slices.IndexFunc(s.open, func(c openCall) bool { return c.id == p.CallID })
	if p.CallID == "" {
		at = slices.IndexFunc(s.open, func(c openCall) bool { return c.name == p.ToolName })
		if at < 0 && len(s.open) > 0 {
			at = 0
		}
	}
	if at >= 0 {
		id = s.open[at].sent
		s.open = slices.Delete(s.open, at, at+1)
	}
	return id
}
