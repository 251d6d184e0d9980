package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// model writes a reply behind the one before it, or as a content of its own.
func (s *sender) model(m *session.Message) error {
	s.open = nil
	t := turn{role: roleModel}
	merged := len(s.out) > 0 && s.out[len(s.out)-1].role == roleModel
	if merged {
		t = s.out[len(s.out)-1]
	}
	before := len(t.parts)
	spoken := ""
	for i := range m.Parts {
		p := &m.Parts[i]
		if err := wire.Loaded(p); err != nil {
			return err
		}
		if p.Kind == session.PartAudio && m.Dialect != Name {
			if spoken += p.Content(); p.Content() == "" {
				s.losePart(m, p)
			}
			continue
		}
		raw, err := s.modelPart(m, p, &t)
		if err != nil {
			return err
		}
		if raw != nil {
			t.parts = append(t.parts, raw)
		}
	}
	if len(t.parts) == before { // what was said aloud stands in for what was not written
		t.parts = appendText(t.parts, spoken)
	}
	switch {
	case len(t.parts) == before:
		s.lose(m, "nothing is left of it that could be sent")
		return nil
	case merged:
		s.out[len(s.out)-1] = t
		return nil
	case len(s.out) == 0 && !s.export:
		s.begin(m.ID.String() + ": a reply comes first, so a short text in the user's role was put before it")
	}
	s.out = append(s.out, t)
	return nil
}

// modelPart writes one part of a reply; nil if it is left out.
func (s *sender) modelPart(m *session.Message, p *session.Part, t *turn) (json.RawMessage, error) {
	x, err := extraOf(m, p)
	if err != nil {
		return nil, err
	}
	own := m.Dialect == Name
	var o wire.Object
	switch p.Kind {
	case session.PartText, session.PartRefusal, session.PartReasoning:
		if p.Kind == session.PartReasoning && !own {
			s.losePart(m, p)
			return nil, nil
		}
		s.loseBeside(m, x, fieldSignature)
		signature := s.signature(m, p, x)
		if text := p.Content(); text != "" || signature != "" {
			o.SetText(fieldText, text)
			if p.Kind == session.PartReasoning {
				o.Set(fieldThought, json.RawMessage("true"))
			}
			setSignature(&o, signature)
			return o.JSON(), nil
		}
		return nil, nil
	case session.PartToolCall, session.PartToolResult:
		if isInline(m, p) {
			return s.inline(m, p, x)
		}
		if p.Kind == session.PartToolCall {
			return s.call(m, p, x, t), nil
		}
	case session.PartImage, session.PartAudio, session.PartFile:
		if own {
			return s.medium(m, p, x), nil
		}
	}
	s.losePart(m, p)
	return nil, nil
}

// isInline tells whether the provider ran a call: its result stands in the same reply.
func isInline(m *session.Message, p *session.Part) bool {
	other := session.PartToolResult
	if p.Kind == session.PartToolResult {
		other = session.PartToolCall
	}
	return slices.ContainsFunc(m.Parts, func(q session.Part) bool { return q.Kind == other && q.CallID == p.CallID })
}

// inline writes what the provider ran, which no other provider's form can say.
func (s *sender) inline(m *session.Message, p *session.Part, x *partExtra) (json.RawMessage, error) {
	if m.Dialect != Name || !isAccepted(m, p.CallID) {
		if p.Kind == session.PartToolCall {
			s.lose(m, "the call of "+wire.Clip(p.ToolName)+" that a provider ran, with its result: not in the form that the API takes")
		}
		return nil, nil
	}
	inner, err := exportInline(p, x)
	if err != nil {
		return nil, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	known := keepOnly(inner, inlineFields(x.Type), func(field string) { s.lose(m, "field "+field) })
	var o wire.Object
	o.Set(x.Type, known.JSON())
	s.loseBeside(m, x, fieldSignature)
	setSignature(&o, s.signature(m, p, x))
	return o.JSON(), nil
}

// keepOnly gives the fields of those names, in our spelling; lost is told of the others.
func keepOnly(o wire.Object, fields []string, lost func(field string)) wire.Object {
	var known wire.Object
	for _, name := range fields {
		if spelled, v := lookup(&o, name); !wire.IsNull(v) {
			known.Set(name, whole(v))
			o.Drop(spelled)
		}
	}
	for _, f := range o.Members() {
		if !wire.IsNull(f.Value) {
			lost(wire.Clip(f.Key))
		}
	}
	return known
}

// isAccepted tells whether a call that the provider ran, and its result, hold what the API
// takes. Either goes only with the other.
func isAccepted(m *session.Message, callID string) bool {
	code, output := 0, 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.CallID != callID || p.Kind != session.PartToolCall && p.Kind != session.PartToolResult {
			continue
		}
		x, err := partExtraOf(p)
		if err != nil {
			return false
		}
		inner, err := exportInline(p, &x)
		if err != nil {
			return false
		}
		if id := inner.Get("id"); !wire.IsNull(id) && !isText(id) {
			return false
		}
		ok := false
		switch x.Type {
		case fieldCode:
			ok, code = isOne(inner.Get("language"), "PYTHON", "LANGUAGE_UNSPECIFIED") && wire.KindOf(inner.Get("code")) == '"', code+1
		case fieldCodeResult:
			out := inner.Get("output")
			ok = isOne(inner.Get("outcome"), outcomeOK, "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "OUTCOME_UNSPECIFIED") && (wire.IsNull(out) || wire.KindOf(out) == '"')
			output++
		case fieldToolCall:
			args := inner.Get("args")
			_, tool := lookup(&inner, "toolType")
			ok, code = isText(tool) && (wire.IsNull(args) || wire.KindOf(args) == '{'), code+1
		case fieldToolResponse:
			response := inner.Get("response")
			_, tool := lookup(&inner, "toolType")
			ok, output = isText(tool) && (wire.IsNull(response) || wire.KindOf(response) == '{'), output+1
		}
		if !ok {
			return false
		}
	}
	return code == output
}

func isText(raw json.RawMessage) bool {
	text, _ := wire.TextOf(raw)
	return text != ""
}

func isOne(raw json.RawMessage, words ...string) bool {
	text, exact := wire.TextOf(raw)
	return exact && slices.Contains(words, text)
}

func inlineFields(field string) []string {
	switch field {
	case fieldCode:
		return []string{"id", "language", "code"}
	case fieldCodeResult:
		return []string{"id", "outcome", "output"}
	case fieldToolCall:
		return []string{"id", "toolType", "args"}
	}
	return []string{"id", "toolType", "response"}
}

// call writes one call and opens it.
func (s *sender) call(m *session.Message, p *session.Part, x *partExtra, t *turn) json.RawMessage {
	s.calls++
	c := sentCall{id: p.CallID, name: p.ToolName, sent: legalName(p.ToolName), at: s.calls}
	if c.sent != p.ToolName {
		s.lose(m, "the tool's name "+strconv.Quote(wire.Clip(p.ToolName))+" is sent as "+strconv.Quote(c.sent))
	}
	switch {
	case x.Made:
	case m.Dialect == Name:
		c.sentID = s.ids.Own(p.CallID)
	default:
		c.sentID = s.ids.Call(p.CallID)
	}
	s.open = append(s.open, c)
	for _, f := range x.Inner.Members() {
		if !wire.IsNull(f.Value) && f.Key != "name" && f.Key != "id" && f.Key != "args" {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
	s.loseBeside(m, x, fieldSignature)
	var inner, o wire.Object
	if c.sentID != "" {
		inner.SetText("id", c.sentID)
	}
	inner.SetText("name", c.sent)
	inner.Set("args", s.arguments(m, p))
	o.Set(fieldCall, inner.JSON())
	signature := s.signature(m, p, x)
	if signature == "" && !t.called && s.generation >= wire.Signed {
		signature = `"` + wire.NoSignature + `"`
		if !s.skipped {
			s.lose(m, "calls without a thought signature are sent with the one that skips its check")
		}
		s.skipped = true
	}
	t.called = true
	setSignature(&o, signature)
	return o.JSON()
}

// arguments gives a call's arguments as an object, which the API wants.
func (s *sender) arguments(m *session.Message, p *session.Part) json.RawMessage {
	raw := json.RawMessage(p.Arguments)
	switch {
	case strings.TrimSpace(p.Arguments) == "":
		return json.RawMessage("{}")
	case wire.KindOf(raw) == '{' && json.Valid(raw):
		return whole(raw)
	}
	s.lose(m, "the arguments of a call of "+wire.Clip(p.ToolName)+" are no object: sent as a text within one")
	var o wire.Object
	o.SetText("arguments", p.Arguments)
	return o.JSON()
}

// signature gives the thought signature of a part, as JSON; "" if there is none. Such a
// signature also stands in calls that came by way of OpenAI's form, or of programs that keep it.
// What is no base64 is none.
func (s *sender) signature(m *session.Message, p *session.Part, x *partExtra) string {
	var raw json.RawMessage
	if m.Dialect == Name {
		_, raw = lookup(&x.Fields, fieldSignature)
	} else if p.Kind == session.PartToolCall {
		raw = wire.CallSignature(p)
	}
	if wire.IsNull(raw) || string(raw) == `""` {
		return ""
	}
	text, exact := wire.TextOf(raw)
	if !exact || !wire.IsSignature(text) {
		s.lose(m, "a thought signature that is no base64")
		return ""
	}
	return string(raw)
}

func setSignature(o *wire.Object, signature string) {
	if signature != "" {
		o.Set(fieldSignature, json.RawMessage(signature))
	}
}
