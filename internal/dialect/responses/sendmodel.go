package responses

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// assistant writes the items of a reply in their order.
func (s *sender) assistant(m *session.Message) error {
	units, err := unitsOf(m)
	if err != nil {
		return err
	}
	for i := range units {
		s.unit(m, &units[i])
	}
	return nil
}

// unitsOf takes a reply apart into items. In this form a part says that it begins one; in any
// other, texts that stand together are one message, and a call has the results with it that
// stand under its id in the same message, since then the provider ran it.
func unitsOf(m *session.Message) ([]unit, error) {
	var units []unit
	var last *unit
	for i := range m.Parts {
		p := &m.Parts[i]
		x, err := extraOf(m, p)
		if err != nil {
			return nil, err
		}
		switch {
		case x.Of == "response":
			continue // of the response object, and not of the reply
		case x.Item != nil:
		case last != nil && (last.item != nil || says(p) && says(last.parts[0])):
			last.add(p, x)
			continue
		case p.Kind != session.PartToolCall:
			if call := callOf(units, p); call != nil {
				call.add(p, x)
				continue
			}
		}
		units = append(units, unit{item: x.Item})
		last = &units[len(units)-1]
		last.add(p, x)
	}
	return units, nil
}

func (u *unit) add(p *session.Part, x partExtra) {
	u.parts, u.extras = append(u.parts, p), append(u.extras, x)
}

// callOf finds the call, of those that came in another form, that a result in the same reply
// answers, or the result that a picture belongs to.
func callOf(units []unit, p *session.Part) *unit {
	for i := range units {
		u := &units[i]
		if u.item == nil && u.parts[0].Kind == session.PartToolCall && u.parts[0].CallID == p.CallID && p.CallID != "" {
			if answered := len(u.parts) > 1; answered || p.Kind == session.PartToolResult {
				return u
			}
		}
	}
	return nil
}

// says tells whether a part is of what a reply says.
func says(p *session.Part) bool {
	return p.Kind == session.PartText || p.Kind == session.PartRefusal || p.Kind == session.PartAudio
}

func (s *sender) unit(m *session.Message, u *unit) {
	p, x := u.parts[0], &u.extras[0]
	switch {
	case p.Kind == session.PartToolCall:
		s.call(m, u)
	case p.Kind == session.PartReasoning || u.kind() == itemReasoning:
		s.thought(m, u)
	case u.item != nil && x.Type != "" && u.kind() != itemMessage:
		s.special(m, u)
	case says(p) || u.kind() == itemMessage && u.item != nil:
		s.reply(m, u)
	default:
		s.losePart(m, p, x)
	}
}

// reply writes what the model said.
func (s *sender) reply(m *session.Message, u *unit) {
	var elements []json.RawMessage
	said := ""
	for i, p := range u.parts {
		x := &u.extras[i]
		if s.loseElement(m, x); p.Content() == "" && says(p) {
			continue
		}
		switch p.Kind {
		case session.PartText, session.PartAudio:
			said = p.Content()
			elements = append(elements, textElement(`{"type":"output_text","text":`, said))
		case session.PartRefusal:
			elements = append(elements, textElement(`{"type":"refusal","refusal":`, p.Content()))
		default:
			s.losePart(m, p, x)
		}
	}
	if u.item != nil {
		s.loseFields(m, u.item, "role", "content", "phase")
	}
	if len(elements) == 0 {
		return
	}
	var o wire.Object
	o.SetText("type", itemMessage)
	o.SetText("role", "assistant")
	if len(elements) == 1 && said != "" {
		o.SetText("content", said)
	} else {
		o.Set("content", wire.AppendArray(nil, elements))
	}
	if u.item != nil {
		if phase, _ := wire.TextOf(u.item.Get("phase")); phase == "commentary" || phase == "final_answer" {
			o.SetText("phase", phase)
		}
	}
	s.write(&o)
}

// thought keeps reasoning until what it led to is written. Only its maker can read what it
// encrypted, and without that it is nothing to a provider that stored nothing.
func (s *sender) thought(m *session.Message, u *unit) {
	if u.item == nil {
		s.signed(m, u.parts[0])
		return
	}
	encrypted, err := u.field("encrypted_content")
	switch {
	case err != nil || wire.KindOf(encrypted) != '"' || string(encrypted) == `""`:
		s.lose(m, "reasoning without its encrypted content")
		return
	case s.otherMaker(m):
		s.lose(m, "reasoning that "+m.Provider+" encrypted")
		return
	}
	summary := []json.RawMessage{}
	for i, p := range u.parts {
		if u.extras[i].Of == "summary" && p.Kind == session.PartReasoning {
			summary = append(summary, textElement(`{"type":"summary_text","text":`, p.Content()))
		}
	}
	s.wait(m, summary, encrypted)
}

// signed keeps reasoning that came in another form, if that form kept the whole item as its
// signature, as pi does for the model that is asked now. Any other reasoning is left out.
func (s *sender) signed(m *session.Message, p *session.Part) {
	var x struct{ ThinkingSignature string }
	if len(p.Extra) > 0 && m.Model == s.model && m.Model != "" && m.Dialect == "pi" && json.Unmarshal(p.Extra, &x) == nil {
		var item struct {
			Type      string
			Encrypted string `json:"encrypted_content"`
			Summary   []struct{ Text string }
		}
		if json.Unmarshal([]byte(x.ThinkingSignature), &item) == nil && item.Type == itemReasoning && item.Encrypted != "" {
			summary := []json.RawMessage{}
			for _, e := range item.Summary {
				summary = append(summary, textElement(`{"type":"summary_text","text":`, e.Text))
			}
			s.wait(m, summary, wire.AppendText(nil, item.Encrypted))
			return
		}
	}
	if p.Content() != "" || len(p.Extra) > 0 {
		s.lose(m, "reasoning")
	}
}

// wait keeps an item of reasoning until what it led to is written.
func (s *sender) wait(m *session.Message, summary []json.RawMessage, encrypted json.RawMessage) {
	var o wire.Object
	o.SetText("type", itemReasoning)
	o.Set("summary", wire.AppendArray(nil, summary))
	o.Set("encrypted_content", encrypted)
	s.reasoning = append(s.reasoning, waiting{item: o.JSON(), of: m})
}

// otherMaker tells whether a message is known to come from a provider that only speaks this
// form, and not from the model that is asked now.
func (s *sender) otherMaker(m *session.Message) bool {
	if m.Provider == "" || m.Model == s.model && s.model != "" {
		return false
	}
	return !strings.HasPrefix(m.Provider, "openai") && !strings.HasPrefix(m.Provider, "azure")
}

// special writes items that are no talk and no call.
func (s *sender) special(m *session.Message, u *unit) {
	var o wire.Object
	kind := u.kind()
	var fields []string
	switch kind {
	case itemCompaction:
		fields = []string{"encrypted_content"}
	case itemMCPTools:
		fields = []string{"id", "server_label", "tools"}
	case itemMCPRequest:
		id, _ := wire.TextOf(u.item.Get("id"))
		if !s.answered[id] || s.requested[id] {
			s.lose(m, "a request for an approval that has no answer")
			return
		}
		s.requested[id] = true
		fields = []string{"id", "server_label", "name", "arguments"}
	default:
		s.lose(m, "unknown item type "+wire.Clip(kind))
		return
	}
	o.SetText("type", kind)
	for _, f := range fields {
		raw, err := u.field(f)
		if want := byte('"'); err != nil || wire.KindOf(raw) != want && f != "tools" || f == "tools" && wire.KindOf(raw) != '[' {
			s.lose(m, kind+" without "+f)
			return
		}
		o.Set(f, raw)
	}
	if kind == itemMCPTools {
		if e := u.item.Get("error"); wire.KindOf(e) == '"' {
			o.Set("error", e)
		}
	}
	s.write(&o)
}

// field gives a field of the unit's item, also where it was moved to a part of its own.
func (u *unit) field(name string) (json.RawMessage, error) {
	if raw := u.item.Get(name); raw != nil {
		return raw, nil
	}
	for i, p := range u.parts {
		if x := &u.extras[i]; p.Kind == session.PartData && x.Field == name && x.Of == "" {
			return rawOf(p, x)
		}
	}
	return nil, nil
}

// approval writes a person's answer to the request of an MCP server.
func (s *sender) approval(m *session.Message, item *wire.Object) {
	var o wire.Object
	o.SetText("type", itemMCPResponse)
	id, _ := wire.TextOf(item.Get("approval_request_id"))
	approve := item.Get("approve")
	if !s.requested[id] || wire.KindOf(approve) != 't' && wire.KindOf(approve) != 'f' {
		s.lose(m, "an approval of a request that is not here")
		return
	}
	o.SetText("approval_request_id", id)
	o.Set("approve", approve)
	if reason := item.Get("reason"); wire.KindOf(reason) == '"' {
		o.Set("reason", reason)
	}
	s.out = append(s.out, o.JSON())
}
