package openaichat

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Export returns messages in this form: one that was decoded by it as the same JSON value, any
// other as Send says it, which may be several messages for one or none. Codes: Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	var s sender
	for i := range msgs {
		if msgs[i].Dialect != Name {
			if err := s.message(&msgs[i]); err != nil {
				return nil, err
			}
			continue
		}
		m, err := wire.Open(&msgs[i])
		if err != nil {
			return nil, err
		}
		o := m.JSON(encode(&m))
		if m.X.Choice != nil {
			m.X.Choice.Set("message", o.Value())
			o = *m.X.Choice
		}
		if m.X.Response != nil {
			m.X.Response.Set("choices", jsonx.Array([]jsontext.Value{jsontext.Value(o.Value())}))
			o = *m.X.Response
		}
		s.flush()
		s.Out = append(s.Out, o.Value())
	}
	s.flush()
	return s.Out, nil
}

// encode encodes the columns and the parts of a message, without its remainder.
func encode(m *wire.Message) jsonx.Object {
	o := jsonx.NewObject("role", cmp.Or(m.X.Role, string(m.Role)))
	var fields jsonx.Object // that are parts of their own
	var content, calls []jsontext.Value
	var result jsontext.Value
	at := -1 // the place of a result's text
	for i := range m.Parts {
		p := &m.Parts[i]
		raw := encodePart(p)
		switch {
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
	text := ""
	isText := func(p wire.Part) bool { return p.Kind == session.PartText || p.Kind == session.PartToolResult }
	if i := slices.IndexFunc(m.Parts, isText); i >= 0 {
		text = m.Parts[i].Content()
	}
	wire.SetContent(&o, "content", m.X.Shape, content, text)
	o.Add("name", jsonx.Maybe(m.Author), fieldToolCalls, calls)
	if m.Role == session.Tool && m.X.Role != roleFunction && len(m.Parts) > 0 {
		o.SetText("tool_call_id", m.Parts[0].CallID)
	}
	for _, f := range fields {
		o.Set(f.Key, f.Value)
	}
	return o
}

func encodePart(p *wire.Part) jsontext.Value {
	switch {
	case p.Kind == session.PartData:
		return p.Raw()
	case p.X.Field == fieldFunctionCall:
		return p.JSON(encodeFunction(p, "arguments"))
	case p.X.Field == fieldAudio:
		return p.JSON(encodeAudio(p))
	case p.X.Field == fieldReasoningDetails:
		return p.Raw()
	case p.X.Field != "":
		return jsonx.Quote(p.Content())
	case p.Kind == session.PartToolCall:
		return p.JSON(encodeCall(p))
	}
	return p.JSON(encodeElement(p))
}

func encodeElement(p *wire.Part) jsonx.Object {
	x := &p.X
	of := func(kind string, fields ...any) jsonx.Object {
		return jsonx.NewObject("type", kind, kind, jsonx.Encode(fields...))
	}
	switch p.Kind {
	case session.PartRefusal:
		return jsonx.NewObject("type", typeRefusal, typeRefusal, p.Content())
	case session.PartImage:
		return of(typeImage, "url", jsonx.Maybe(wire.DataURLOf(p)+x.URL), "detail", jsonx.Maybe(x.Detail))
	case session.PartAudio:
		return of(typeAudio, "data", jsonx.Maybe(wire.DataURLOf(p)))
	case session.PartFile:
		return of(typeFile, "file_data", jsonx.Maybe(wire.DataURLOf(p)), "filename", jsonx.Maybe(x.Name), "file_id",
			jsonx.Maybe(x.FileID))
	}
	return jsonx.NewObject("type", typeText, typeText, p.Content())
}

func encodeAudio(p *wire.Part) jsonx.Object {
	return jsonx.NewObject("transcript", jsonx.Maybe(p.Content()), "data", jsonx.Maybe(wire.DataURLOf(p)))
}

func encodeCall(p *wire.Part) jsonx.Object {
	kind, arguments := typeFunction, "arguments"
	if p.X.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	o := jsonx.NewObject("id", p.CallID, "type", kind, kind, encodeFunction(p, arguments).Value())
	if p.X.Shape == wire.ShapeAbsent {
		o.Drop("type")
	}
	return o
}

func encodeFunction(p *wire.Part, arguments string) jsonx.Object {
	return jsonx.NewObject("name", p.ToolName, arguments, jsonx.Maybe(p.Arguments))
}
