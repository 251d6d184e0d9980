package openaichat

import (
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export returns messages in this form: one that was decoded by it as the same JSON value, any
// other as Send says it, which may be several messages for one or none. Codes: Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	s := sender{}
	for i := range msgs {
		if msgs[i].Dialect != Name {
			if err := s.message(&msgs[i]); err != nil {
				return nil, err
			}
			out = append(out, s.taken()...)
			continue
		}
		m, err := wire.Open(&msgs[i])
		if err != nil {
			return nil, err
		}
		o, err := encode(&m)
		if err != nil {
			return nil, err
		}
		o = m.JSON(o)
		if m.X.Choice != nil {
			m.X.Choice.Set("message", o.JSON())
			o = *m.X.Choice
		}
		out = append(append(out, s.flush()...), o.JSON())
	}
	return append(out, s.flush()...), nil
}

// encode encodes the columns and the parts of a message, without its remainder.
func encode(m *wire.Message) (wire.Object, error) {
	var o wire.Object
	o.SetText("role", string(m.Role))
	if m.X.Role != "" {
		o.SetText("role", m.X.Role)
	}
	var fields wire.Object // that are parts of their own
	var content, calls []jsontext.Value
	var result jsontext.Value
	at := -1 // the place of a result's text
	for i := range m.Parts {
		p := &m.Parts[i]
		raw, err := encodePart(p)
		switch {
		case err != nil:
			return o, err
		case p.X.Field == fieldToolCalls && p.X.Type != "", p.X.Field == "" && p.Kind == session.PartToolCall:
			calls = append(calls, raw)
		case p.X.Field != "":
			fields.Set(p.X.Field, raw)
		case p.Kind == session.PartToolResult:
			result, at = raw, wire.TextPlace(p)
		default:
			content = append(content, raw)
		}
	}
	if at >= 0 && at <= len(content) {
		content = slices.Insert(content, at, result)
	}
	switch m.X.Shape {
	case wire.ShapeAbsent:
	case wire.ShapeNull:
		o.Set("content", jsontext.Value("null"))
	case wire.ShapeEmpty:
		o.SetText("content", "")
	case wire.ShapeArray:
		o.Set("content", wire.Array(content))
	default:
		isText := func(p wire.Part) bool { return p.Kind == session.PartText || p.Kind == session.PartToolResult }
		if i := slices.IndexFunc(m.Parts, isText); i >= 0 {
			o.SetText("content", m.Parts[i].Content())
		}
	}
	o.SetTexts("name", m.Author)
	if m.Role == session.Tool && m.X.Role != roleFunction && len(m.Parts) > 0 {
		o.SetText("tool_call_id", m.Parts[0].CallID)
	}
	if len(calls) > 0 {
		o.Set(fieldToolCalls, wire.Array(calls))
	}
	for _, f := range fields.Members() {
		o.Set(f.Key, f.Value)
	}
	return o, nil
}

func encodePart(p *wire.Part) (jsontext.Value, error) {
	switch {
	case p.Kind == session.PartData:
		return p.JSON(wire.Object{})
	case p.X.Field == fieldFunctionCall:
		return p.JSON(encodeFunction(p, "arguments"))
	case p.X.Field == fieldAudio:
		return p.JSON(encodeAudio(p))
	case p.X.Field != "":
		return wire.Quote(p.Content()), nil
	case p.Kind == session.PartToolCall:
		return p.JSON(encodeCall(p))
	}
	return p.JSON(encodeElement(p))
}

func encodeElement(p *wire.Part) wire.Object {
	var o, inner wire.Object
	x := &p.X
	switch p.Kind {
	case session.PartRefusal:
		o.SetText("type", typeRefusal)
		o.SetText(typeRefusal, p.Content())
	case session.PartImage:
		o.SetText("type", typeImage)
		inner.SetTexts("url", wire.DataURLOf(p)+x.URL, "detail", x.Detail)
		o.Set(typeImage, inner.JSON())
	case session.PartAudio:
		o.SetText("type", typeAudio)
		inner.SetTexts("data", wire.DataURLOf(p))
		o.Set(typeAudio, inner.JSON())
	case session.PartFile:
		o.SetText("type", typeFile)
		inner.SetTexts("file_data", wire.DataURLOf(p), "filename", x.Name, "file_id", x.FileID)
		o.Set(typeFile, inner.JSON())
	default:
		o.SetText("type", typeText)
		o.SetText(typeText, p.Content())
	}
	return o
}

func encodeAudio(p *wire.Part) (o wire.Object) {
	o.SetTexts("transcript", p.Content(), "data", wire.DataURLOf(p))
	return o
}

func encodeCall(p *wire.Part) (o wire.Object) {
	kind, arguments := typeFunction, "arguments"
	if p.X.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	o.SetText("id", p.CallID)
	if p.X.Shape != wire.ShapeAbsent {
		o.SetText("type", kind)
	}
	inner := encodeFunction(p, arguments)
	o.Set(kind, inner.JSON())
	return o
}

func encodeFunction(p *wire.Part, arguments string) (o wire.Object) {
	o.SetText("name", p.ToolName)
	o.SetTexts(arguments, p.Arguments)
	return o
}
