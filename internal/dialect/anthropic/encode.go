package anthropic

import (
	"cmp"
	"encoding/base64"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Export returns messages in this form: those that were decoded by it as the same JSON values,
// the two halves of an entry as that entry; any others as Send says them, which may be more
// or fewer entries. Codes: Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, 0, len(msgs))
	s := newSender("", true)
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Dialect != Name {
			if err := s.message(&msgs[i]); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, s.taken()...)
		group, err := wire.OpenEntry(msgs[i:])
		if err != nil {
			return nil, err
		}
		m := &group[0]
		var user *wire.Message
		if len(group) > 1 {
			user = &group[1]
			i++
		}
		o := m.JSON(encode(m, user))
		out = append(out, o.Value())
	}
	return append(out, s.taken()...), nil
}

// encode encodes the columns and the parts of an entry, without its remainder. user is its other
// half, or nil.
func encode(m, user *wire.Message) jsonx.Object {
	o := jsonx.NewObject("role", string(m.Role))
	if m.Role == session.Tool {
		o.SetText("role", roleUser)
	}
	var fields jsonx.Object // that are parts of their own
	blocks := encodeParts(m, &fields)
	if user != nil {
		blocks = m.X.Wire.Weave(blocks, encodeParts(user, &fields))
	}
	text := ""
	if i := slices.IndexFunc(m.Parts, func(p wire.Part) bool { return p.Kind == session.PartText }); i >= 0 {
		text = m.Parts[i].Content()
	}
	wire.SetContent(&o, "content", m.X.Shape, blocks, text)
	o.Add("id", m.X.ID, "stop_reason", m.X.StopReason, "usage", m.X.Usage)
	for _, f := range fields {
		o.Set(f.Key, f.Value)
	}
	return o
}

// encodeParts returns the blocks of a message; parts that were fields of it go into fields.
func encodeParts(m *wire.Message, fields *jsonx.Object) (blocks []jsontext.Value) {
	for at := 0; at < len(m.Parts); {
		p := &m.Parts[at]
		next := at + 1
		encoded := encodeBlock(p)
		if isResult(p) {
			next = groupEnd(m.Parts, at)
			encoded = encodeResult(m.Parts[at:next])
		}
		if p.X.Field != "" {
			fields.Set(p.X.Field, p.JSON(encoded))
		} else {
			blocks = append(blocks, p.JSON(encoded))
		}
		at = next
	}
	return blocks
}

// isResult tells a result from that of a tool which the provider ran.
func isResult(p *wire.Part) bool { return p.Kind == session.PartToolResult && p.X.Type == "" }

// groupEnd returns the index behind the result at at and the parts that belong to it: those up
// to the next result of the same call.
func groupEnd(parts []wire.Part, at int) int {
	for at++; at < len(parts); at++ {
		if parts[at].Kind == session.PartToolResult || parts[at].CallID != parts[at-1].CallID {
			break
		}
	}
	return at
}

func encodeBlock(p *wire.Part) (o jsonx.Object) {
	x := &p.X
	usual := x.Type == ""
	of := func(kind string) { o.SetText("type", cmp.Or(x.Type, kind)) }
	switch p.Kind {
	case session.PartText:
		if of(typeText); usual {
			o.SetText("text", p.Content())
		}
	case session.PartImage:
		of(typeImage)
		o.Add("source", encodeSource(p), "title", jsonx.Maybe(x.Name))
	case session.PartFile:
		if of(typeDocument); usual {
			o.Add("source", encodeSource(p), "title", jsonx.Maybe(x.Name))
		} else {
			o.Add("file_id", jsonx.Maybe(x.FileID))
		}
	case session.PartReasoning:
		if of(typeThinking); usual {
			o.SetText("thinking", p.Content())
		}
		o.Add("signature", x.Signature, "data", x.Data)
	case session.PartToolCall:
		of(typeToolUse)
		o.Add("id", p.CallID, "name", p.ToolName)
		if x.Shape == shapeText {
			o.SetText("input", p.Arguments)
		} else {
			o.Add("input", jsontext.Value(p.Arguments))
		}
	case session.PartToolResult: // of a tool that the provider ran
		of(typeToolResult)
		o.SetText("tool_use_id", p.CallID)
	}
	return o
}

// encodeSource returns the source of an image or a document, nil where no column says it.
func encodeSource(p *wire.Part) jsontext.Value {
	switch x := &p.X; {
	case p.Blob != nil && x.Shape == shapeText:
		return jsonx.Encode("type", sourceText, "media_type", jsonx.Maybe(x.MediaType), "data", jsonx.Maybe(p.Blob.Data))
	case p.Blob != nil:
		return jsonx.Encode("type", sourceBase64, "media_type", jsonx.Maybe(x.MediaType), "data",
			base64.StdEncoding.EncodeToString(p.Blob.Data))
	case x.URL != "":
		return jsonx.Encode("type", sourceURL, "url", x.URL)
	case x.FileID != "":
		return jsonx.Encode("type", sourceFile, "file_id", x.FileID)
	}
	return nil
}

// encodeResult returns a tool_result: parts are the result and the ones that belong to it.
func encodeResult(parts []wire.Part) jsonx.Object {
	p := &parts[0]
	o := jsonx.NewObject("type", typeToolResult, "tool_use_id", p.CallID)
	var content []jsontext.Value
	if p.X.Shape == wire.ShapeArray {
		for i := 1; i < len(parts); i++ {
			content = append(content, parts[i].JSON(encodeBlock(&parts[i])))
		}
		if at := wire.TextPlace(p); at >= 0 && at <= len(content) {
			text := jsonx.NewObject("type", typeText, "text", p.Content())
			text.Merge(&p.X.Text)
			content = slices.Insert(content, at, text.Value())
		}
	}
	wire.SetContent(&o, "content", p.X.Shape, content, p.Content())
	o.Add("is_error", p.IsError)
	return o
}
