package anthropic

import (
	"encoding/json"
	"slices"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// assistant writes a reply, block by block. In one of this form each block keeps its place. In
// any other the calls go last; and a call that its provider ran itself, whose result stands in
// the reply, becomes a call and a result like any other, in front of those.
func (s *sender) assistant() error {
	var waiting []*session.Part
	for i := 0; i < len(s.m.Parts); i++ {
		p := &s.m.Parts[i]
		var err error
		switch {
		case p.Kind == session.PartToolCall && s.maker:
			err = s.ownCall(p)
		case p.Kind == session.PartToolCall:
			at := s.resultOf(p)
			if at < 0 {
				waiting = append(waiting, p)
				continue
			}
			if err = s.call(p, nil); err == nil {
				err = s.result(s.m.Parts[at:groupEnd(s.m.Parts, at)])
			}
		case p.Kind == session.PartToolResult && s.maker:
			err = s.serverResult(p)
		case p.Kind == session.PartToolResult:
			if !slices.ContainsFunc(s.m.Parts, func(c session.Part) bool { return c.Kind == session.PartToolCall && c.CallID == p.CallID }) {
				s.losePart(p)
			}
			i = groupEnd(s.m.Parts, i) - 1
		default:
			err = s.reply(p)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range waiting {
		if err := s.call(p, nil); err != nil {
			return err
		}
	}
	return nil
}

// resultOf gives the place of a call's result in its own message, -1 for none.
func (s *sender) resultOf(call *session.Part) int {
	return slices.IndexFunc(s.m.Parts, func(p session.Part) bool {
		return p.Kind == session.PartToolResult && p.CallID == call.CallID
	})
}

// reply writes what is neither a call nor a result.
func (s *sender) reply(p *session.Part) error {
	switch p.Kind {
	case session.PartText:
		b, err := s.content(p)
		if err == nil && b.raw != nil {
			s.put(roleAssistant, b)
		}
		return err
	case session.PartRefusal:
		s.putText(roleAssistant, p.Content())
	case session.PartAudio:
		if !s.putText(roleAssistant, p.Content()) { // what was said stands in for how
			s.losePart(p)
		}
	case session.PartReasoning:
		return s.reasoning(p)
	case session.PartData:
		return s.data(p)
	default:
		s.losePart(p)
	}
	return nil
}

// reasoning writes thinking with its signature, unmodified, for its maker only.
func (s *sender) reasoning(p *session.Part) error {
	fields, kind, err := s.signed(p)
	if err != nil {
		return err
	}
	b := sent{kind: kind}
	var o wire.Object
	o.SetText("type", kind)
	switch kind {
	case typeThinking:
		signature := fields.Get("signature")
		if text, _ := wire.TextOf(signature); text != "" && !fields.Has(typeThinking) {
			o.SetText("thinking", p.Content())
			o.Set("signature", signature)
			b.raw = o.JSON()
		}
	case typeRedacted:
		data := fields.Get("data")
		if text, _ := wire.TextOf(data); text != "" {
			o.Set("data", data)
			b.raw = o.JSON()
		}
	}
	if b.raw == nil {
		s.losePart(p)
		return nil
	}
	s.put(roleAssistant, b)
	return nil
}

// signed gives the fields of thinking that the model's maker signed; kind is "" for any other.
// Imports from pi hold the same signature under a name of their own.
func (s *sender) signed(p *session.Part) (fields wire.Object, kind string, err error) {
	switch {
	case s.maker:
		x, err := partExtraOf(p)
		if kind = x.Type; kind == "" {
			kind = typeThinking
		}
		return x.Fields, kind, err
	case s.own, len(p.Extra) == 0, s.m.Provider != Name, !madeBy(s.m, s.model):
		return fields, "", nil
	}
	o, err := wire.Stored("extra", p.Extra)
	signature := o.Get("thinkingSignature")
	if err != nil || signature == nil {
		return fields, "", nil // of a shape that is not ours
	}
	if string(o.Get("redacted")) == "true" {
		fields.Set("data", signature)
		return fields, typeRedacted, nil
	}
	fields.Set("signature", signature)
	return fields, typeThinking, nil
}

// data writes a call that the provider runs and whose result is still to come; any other data
// is unknown.
func (s *sender) data(p *session.Part) error {
	if s.maker {
		x, err := partExtraOf(p)
		if err != nil {
			return err
		}
		raw, err := rawOf(p, &x)
		if err != nil {
			return err
		}
		if o, err := wire.ParseObject("", raw); err == nil && isServerCall(x.Type) {
			id, _ := wire.TextOf(o.Get("id"))
			s.putServerCall(x.Type, id, o.Get("name"), o.Get("input"), o)
			return nil
		}
	}
	s.losePart(p)
	return nil
}

// ownCall writes a call of this form.
func (s *sender) ownCall(p *session.Part) error {
	x, err := partExtraOf(p)
	if err != nil {
		return err
	}
	if x.Type == "" {
		return s.call(p, &x)
	}
	s.loseBlockFields(x.Type, x.Fields, "input", "caller", "server_name")
	s.putServerCall(x.Type, p.CallID, wire.AppendText(nil, p.ToolName), json.RawMessage(p.Arguments), x.Fields)
	return nil
}
