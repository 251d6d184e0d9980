package gemini

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Export returns messages in this form: those that were decoded by it as the same JSON values,
// runs of others as Send says them; system text becomes a content of role system. Codes:
// Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, 0, len(msgs))
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Dialect != Name {
			from := i
			for i+1 < len(msgs) && msgs[i+1].Dialect != Name {
				i++
			}
			contents, err := exportOthers(msgs[from : i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, contents...)
			continue
		}
		group, err := wire.OpenEntry(msgs[i:])
		if err != nil {
			return nil, err
		}
		i += len(group) - 1
		out = append(out, export(group))
	}
	return out, nil
}

// export writes a content, of one message or of the two that it became, and the objects around it.
func export(group []wire.Message) jsontext.Value {
	m := &group[0]
	content := m.JSON(encodeContent(group))
	around := map[string]*jsonx.Object{ofContent: &content, ofCandidate: m.X.Candidate, ofResponse: m.X.Response}
	for i := range m.Parts {
		p := &m.Parts[i]
		if o := around[p.X.Of]; o != nil {
			o.Set(p.X.Field, p.Raw())
		}
	}
	raw := content.Value()
	if m.X.Candidate != nil {
		if !m.X.NoContent {
			m.X.Candidate.Set("content", raw)
		}
		raw = m.X.Candidate.Value()
	}
	if m.X.Response != nil {
		if m.X.Candidate != nil {
			m.X.Response.Set("candidates", jsonx.Array([]jsontext.Value{raw}))
		}
		raw = m.X.Response.Value()
	}
	return raw
}

// Objects that a large field stood in, which is a part of its own.
const (
	ofContent   = "content"
	ofCandidate = "candidate"
	ofResponse  = "response"
)

// encodeContent encodes the columns and the parts of a content, without its remainder.
func encodeContent(group []wire.Message) (o jsonx.Object) {
	m := &group[0]
	switch {
	case m.X.Role == wire.ShapeAbsent:
	case m.X.Role != "":
		o.SetText("role", m.X.Role)
	case m.Role == session.Assistant:
		o.SetText("role", roleModel)
	case m.Role == session.System:
		o.SetText("role", roleSystem)
	default:
		o.SetText("role", roleUser)
	}
	parts := encodeParts(m)
	if len(group) == 2 {
		parts = m.X.Wire.Weave(parts, encodeParts(&group[1]))
	}
	wire.SetContent(&o, "parts", cmp.Or(m.X.Shape, wire.ShapeArray), parts, "")
	return o
}

// encodeParts returns a message's parts as the wire has them.
func encodeParts(m *wire.Message) (out []jsontext.Value) {
	for i := 0; i < len(m.Parts); {
		p := &m.Parts[i]
		next := i + 1
		for next < len(m.Parts) && m.Parts[next].X.Nested {
			next++
		}
		if p.X.Of == "" {
			out = append(out, p.JSON(encodePart(p, m.Parts[i+1:next])))
		}
		i = next
	}
	return out
}

// encodePart encodes a part and the parts within it.
func encodePart(p *wire.Part, nested []wire.Part) (o jsonx.Object) {
	x := &p.X
	field := ""
	var inner jsonx.Object
	switch p.Kind {
	case session.PartText, session.PartReasoning:
		if x.Shape != wire.ShapeAbsent {
			o.SetText(fieldText, p.Content())
		}
		if p.Kind == session.PartReasoning {
			o.Set(fieldThought, jsontext.Value("true"))
		}
	case session.PartImage, session.PartAudio, session.PartFile:
		field, inner = fieldInline, encodeMedium(p)
	case session.PartToolCall, session.PartToolResult:
		switch {
		case x.Type != "":
			field = x.Type
			inner = encodeInline(p)
		case p.Kind == session.PartToolCall:
			field = fieldCall
			inner = jsonx.NewObject("name", p.ToolName, "args", argumentsOf(p))
		default:
			field = fieldResponse
			inner = encodeResponse(p, nested)
		}
		if !x.Made {
			inner.SetText("id", p.CallID)
		}
	}
	if field = cmp.Or(x.Field, field); field != "" {
		o.Set(field, inner.Value())
	}
	o.Add(fieldSignature, x.ThoughtSignature)
	return o
}

// spelled returns a field in the spelling of the part that it stands in.
func spelled(x *wire.Extra, field string) string {
	if strings.Contains(x.Field, "_") {
		return snake(field)
	}
	return field
}

func encodeMedium(p *wire.Part) jsonx.Object {
	x := &p.X
	var data jsonx.Maybe
	if p.Blob != nil {
		data = jsonx.Maybe(encode64(p.Blob.Data, x.Encoding))
	}
	return jsonx.NewObject(spelled(x, "mimeType"), jsonx.Maybe(x.MediaType), spelled(x, "fileUri"),
		jsonx.Maybe(x.URL+x.FileID),
		spelled(x, "displayName"), jsonx.Maybe(x.Name), "data", data)
}

func encode64(data []byte, encoding string) string {
	if encoding == "url" {
		return base64.URLEncoding.EncodeToString(data)
	}
	return base64.StdEncoding.EncodeToString(data)
}

// argumentsOf returns a call's arguments as the wire had them: an object, or a string.
func argumentsOf(p *wire.Part) any {
	if p.X.Shape == wire.ShapeString {
		return jsonx.Maybe(p.Arguments)
	}
	return jsontext.Value(p.Arguments)
}

func encodeResponse(p *wire.Part, nested []wire.Part) (o jsonx.Object) {
	o.SetText("name", p.ToolName)
	switch text := p.Content(); {
	case p.X.Key != "":
		inner := jsonx.NewObject(p.X.Key, text)
		o.Set("response", inner.Value())
	case p.X.Shape == wire.ShapeString:
		o.Add("response", jsonx.Maybe(text))
	default:
		o.Add("response", jsontext.Value(text))
	}
	var list []jsontext.Value
	for i := range nested {
		list = append(list, nested[i].JSON(encodePart(&nested[i], nil)))
	}
	o.Add("parts", list)
	return o
}

// encodeInline encodes a part of a call that the provider ran.
func encodeInline(p *wire.Part) (o jsonx.Object) {
	switch p.X.Type {
	case fieldCode:
		o, _ = jsonx.ParseObject("arguments", []byte(p.Arguments)) // it was one when it was decoded
	case fieldToolCall:
		o = jsonx.NewObject(spelled(&p.X, "toolType"), jsonx.Maybe(p.ToolName), "args", argumentsOf(p))
	case fieldCodeResult:
		o = jsonx.NewObject("output", jsonx.Maybe(p.Content()))
	case fieldToolResponse:
		o = jsonx.NewObject(spelled(&p.X, "toolType"), jsonx.Maybe(p.ToolName), "response", jsontext.Value(p.Content()))
	}
	return o
}
