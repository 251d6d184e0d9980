package openaichat

import (
	"encoding/base64"
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export gives messages in this form: one that was decoded by it as the same JSON value, any
// other as Send says it, which may be several messages for one or none. Codes: Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	s := sender{}
	for i := range msgs {
		if msgs[i].Dialect == Name {
			raw, err := export(&msgs[i])
			if err != nil {
				return nil, err
			}
			out = append(append(out, s.flush()...), raw)
			continue
		}
		if err := s.message(&msgs[i]); err != nil {
			return nil, err
		}
		out = append(out, s.taken()...)
	}
	return append(out, s.flush()...), nil
}

func export(m *session.Message) (json.RawMessage, error) {
	x, err := messageExtraOf(m)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetText("role", exportRole(m, &x))
	content, fields, calls, err := exportParts(m)
	if err != nil {
		return nil, err
	}
	if err := exportContent(&o, m, &x, content); err != nil {
		return nil, err
	}
	if m.Author != "" {
		o.SetText("name", m.Author)
	}
	if r := m.Results(); m.Role == session.Tool && x.Role != roleFunction && len(r) > 0 {
		o.SetText("tool_call_id", r[0].CallID)
	}
	if len(calls) > 0 {
		o.Set(fieldToolCalls, wire.AppendArray(nil, calls))
	}
	o.Overlay(fields)
	o.Overlay(x.Fields) // last: what is raw wins over what was made readable
	if x.Choice == nil {
		return o.JSON(), nil
	}
	x.Choice.Set("message", o.JSON())
	return x.Choice.JSON(), nil
}

func exportRole(m *session.Message, x *messageExtra) string {
	if x.Role != "" {
		return x.Role
	}
	return string(m.Role)
}

// exportParts sorts the parts into elements of content, fields of their own, and calls.
func exportParts(m *session.Message) (content []json.RawMessage, fields wire.Object, calls []json.RawMessage, err error) {
	var result json.RawMessage // the text of a tool's message, which goes back to its place
	at := -1
	for i := range m.Parts {
		p := &m.Parts[i]
		x, err := partExtraOf(p)
		if err != nil {
			return nil, fields, nil, err
		}
		var raw json.RawMessage
		switch {
		case p.Kind == session.PartToolCall || x.Field == fieldToolCalls:
			raw, err = exportCall(p, &x)
		case x.Field != "":
			raw, err = exportField(p, &x)
		default:
			raw, err = exportElement(p, &x)
		}
		if err != nil {
			return nil, fields, nil, err
		}
		switch {
		case x.Field == "" && p.Kind == session.PartToolCall || x.Field == fieldToolCalls:
			calls = append(calls, raw)
		case x.Field != "":
			fields.Set(x.Field, raw)
		case p.Kind == session.PartToolResult:
			result = raw
			if at = 0; x.At != nil {
				at = *x.At
			}
		default:
			content = append(content, raw)
		}
	}
	if at >= 0 && at <= len(content) {
		content = append(content[:at], append([]json.RawMessage{result}, content[at:]...)...)
	}
	return content, fields, calls, nil
}

// exportField gives back a part that was a field of its message.
func exportField(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if err := wire.Loaded(p); err != nil {
		return nil, err
	}
	switch p.Kind {
	case session.PartReasoning, session.PartRefusal:
		return wire.AppendText(nil, p.Content()), nil
	case session.PartAudio:
		var o wire.Object
		if text := p.Content(); text != "" {
			o.SetText("transcript", text)
		}
		if p.Blob != nil {
			o.SetText("data", encode(p.Blob.Data))
		}
		o.Overlay(x.Inner)
		return o.JSON(), nil
	}
	return rawOf(p, x)
}

func exportContent(o *wire.Object, m *session.Message, x *messageExtra, elements []json.RawMessage) error {
	switch x.Shape {
	case shapeAbsent:
	case shapeNull:
		o.Set("content", json.RawMessage("null"))
	case shapeEmpty:
		o.SetText("content", "")
	case shapeArray:
		o.Set("content", wire.AppendArray(nil, elements))
	default:
		for i := range m.Parts {
			if k := m.Parts[i].Kind; k == session.PartText || k == session.PartToolResult {
				o.SetText("content", m.Parts[i].Content())
				return wire.Loaded(&m.Parts[i])
			}
		}
	}
	return nil
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
