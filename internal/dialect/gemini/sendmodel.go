package gemini

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// signed is the first generation of models that asks for a signature on the first call of each
// reply, and whose responses of functions hold media.
const signed = 3

// noSignature is what the API documents for calls that another model made: it skips the check.
const noSignature = "skip_thought_signature_validator"

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
	if m.Dialect != Name || x.Type == "" {
		if p.Kind == session.PartToolCall {
			s.lose(m, "the call of "+wire.Clip(p.ToolName)+" that another provider ran, with its result")
		}
		return nil, nil
	}
	inner, err := exportInline(p, x)
	if err != nil {
		return nil, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	var known wire.Object
	for _, f := range inlineFields(x.Type) {
		if v := inner.Get(f); !wire.IsNull(v) {
			known.Set(f, whole(v))
			inner.Drop(f)
		}
	}
	for _, f := range inner.Members() {
		if !wire.IsNull(f.Value) {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
	var o wire.Object
	o.Set(x.Type, known.JSON())
	s.loseBeside(m, x, fieldSignature)
	setSignature(&o, s.signature(m, p, x))
	return o.JSON(), nil
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
	c := sentCall{id: p.CallID, name: p.ToolName, sent: legalName(p.ToolName)}
	if c.sent != p.ToolName {
		s.lose(m, "the tool's name "+strconv.Quote(wire.Clip(p.ToolName))+" is sent as "+strconv.Quote(c.sent))
	}
	switch {
	case x.Made:
	case m.Dialect == Name:
		c.sentID = s.ids.own(p.CallID)
	default:
		c.sentID = s.ids.legal(p.CallID)
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
	if signature == "" && !t.called && s.generation >= signed {
		signature = `"` + noSignature + `"`
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
	} else if p.Kind == session.PartToolCall && strings.Contains(string(p.Extra), "ignature") {
		raw = carriedSignature(p)
	}
	if wire.IsNull(raw) || string(raw) == `""` {
		return ""
	}
	text, exact := wire.TextOf(raw)
	if !exact || !isBase64(text) {
		s.lose(m, "a thought signature that is no base64")
		return ""
	}
	return string(raw)
}

// carriedSignature looks where OpenAI's form of Gemini, and pi, put a signature.
func carriedSignature(p *session.Part) json.RawMessage {
	type google struct {
		Google struct {
			Signature json.RawMessage `json:"thought_signature"`
		} `json:"google"`
	}
	var x struct {
		Signature json.RawMessage `json:"thoughtSignature"`
		Fields    struct {
			Extra google `json:"extra_content"`
		} `json:"fields"`
	}
	if json.Unmarshal(p.Extra, &x) != nil {
		return nil
	}
	if x.Signature != nil {
		return x.Signature
	}
	return x.Fields.Extra.Google.Signature
}

// isBase64 takes either alphabet, with or without padding.
func isBase64(text string) bool {
	text = strings.TrimRight(text, "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	_, err := encoding.DecodeString(text)
	return err == nil && text != "" && !strings.ContainsAny(text, "\r\n")
}

func setSignature(o *wire.Object, signature string) {
	if signature != "" {
		o.Set(fieldSignature, json.RawMessage(signature))
	}
}
