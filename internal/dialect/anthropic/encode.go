package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export returns messages in this form: those that were decoded by it as the same JSON values,
// the two halves of an entry as that entry; any others as Send says them, which may be more
// or fewer entries. Codes: Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	s := newSender("", true)
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Dialect != Name {
			if err := s.message(&msgs[i]); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, s.taken()...)
		m, err := wire.Open(&msgs[i])
		if err != nil {
			return nil, err
		}
		var user *wire.Message
		if m.X.Wire != nil && i+1 < len(msgs) && msgs[i+1].Dialect == Name && msgs[i+1].Role == session.User {
			next, err := wire.Open(&msgs[i+1])
			if err != nil {
				return nil, err
			}
			if m.X.Wire.Is(next.X.Wire) {
				user = &next
				i++
			}
		}
		if m.X.Wire != nil && user == nil {
			m.X.Raw = nil // it holds both halves
		}
		o, err := encode(&m, user)
		if err != nil {
			return nil, err
		}
		o = m.JSON(o)
		out = append(out, o.JSON())
	}
	return append(out, s.taken()...), nil
}

// encode encodes the columns and the parts of an entry, without its remainder. user is its other
// half, or nil.
func encode(m, user *wire.Message) (wire.Object, error) {
	var o wire.Object
	o.SetText("role", string(m.Role))
	if m.Role == session.Tool {
		o.SetText("role", roleUser)
	}
	var fields wire.Object // that are parts of their own
	blocks, err := encodeParts(m, &fields)
	if err != nil {
		return o, err
	}
	if user != nil {
		others, err := encodeParts(user, &fields)
		if err != nil {
			return o, err
		}
		blocks = weave(blocks, others, m.X.Wire.At)
	}
	switch m.X.Shape {
	case wire.ShapeAbsent:
	case wire.ShapeNull:
		o.Set("content", jsontext.Value("null"))
	case wire.ShapeEmpty:
		o.SetText("content", "")
	case wire.ShapeArray:
		o.Set("content", wire.Array(blocks))
	default:
		i := slices.IndexFunc(m.Parts, func(p wire.Part) bool { return p.Kind == session.PartText })
		if i >= 0 {
			o.SetText("content", m.Parts[i].Content())
		}
	}
	o.SetValue("id", m.X.ID)
	o.SetValue("stop_reason", m.X.StopReason)
	o.SetValue("usage", m.X.Usage)
	for _, f := range fields.Members() {
		o.Set(f.Key, f.Value)
	}
	return o, nil
}

// weave puts results back to their places among the other blocks of an entry.
func weave(results, others []jsontext.Value, at []int) []jsontext.Value {
	out := others
	for i, r := range results {
		place := len(out)
		if i < len(at) {
			place = min(at[i], len(out))
		}
		out = slices.Insert(out, place, r)
	}
	return out
}

// encodeParts returns the blocks of a message; parts that were fields of it go into fields.
func encodeParts(m *wire.Message, fields *wire.Object) (blocks []jsontext.Value, err error) {
	for at := 0; at < len(m.Parts); {
		p := &m.Parts[at]
		next := at + 1
		var encoded wire.Object
		if isResult(p) {
			next = groupEnd(m.Parts, at)
			encoded, err = encodeResult(m.Parts[at:next])
		} else {
			encoded = encodeBlock(p)
		}
		if err != nil {
			return nil, err
		}
		raw, err := p.JSON(encoded)
		if err != nil {
			return nil, err
		}
		if p.X.Field != "" {
			fields.Set(p.X.Field, raw)
		} else {
			blocks = append(blocks, raw)
		}
		at = next
	}
	return blocks, nil
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

func encodeBlock(p *wire.Part) (o wire.Object) {
	x := &p.X
	set := func(usual string) {
		if x.Type != "" {
			usual = x.Type
		}
		o.SetText("type", usual)
	}
	switch p.Kind {
	case session.PartText:
		if set(typeText); x.Type == "" {
			o.SetText("text", p.Content())
		}
	case session.PartImage:
		set(typeImage)
		encodeSource(&o, p)
	case session.PartFile:
		if set(typeDocument); x.Type == "" {
			encodeSource(&o, p)
		} else {
			o.SetTexts("file_id", x.FileID)
		}
	case session.PartReasoning:
		if set(typeThinking); x.Type == "" {
			o.SetText("thinking", p.Content())
		}
		o.SetValue("signature", x.Signature)
		o.SetValue("data", x.Data)
	case session.PartToolCall:
		set(typeToolUse)
		o.SetText("id", p.CallID)
		o.SetText("name", p.ToolName)
		if x.Shape == shapeText {
			o.SetText("input", p.Arguments)
		} else {
			o.SetValue("input", []byte(p.Arguments))
		}
	case session.PartToolResult: // of a tool that the provider ran
		set(typeToolResult)
		o.SetText("tool_use_id", p.CallID)
	}
	return o
}

func encodeSource(o *wire.Object, p *wire.Part) {
	var source wire.Object
	switch x := &p.X; {
	case p.Blob != nil && x.Shape == shapeText:
		source.SetTexts("type", sourceText, "media_type", x.MediaType, "data", string(p.Blob.Data))
	case p.Blob != nil:
		source.SetTexts("type", sourceBase64, "media_type", x.MediaType, "data", base64.StdEncoding.EncodeToString(p.Blob.Data))
	case x.URL != "":
		source.SetTexts("type", sourceURL, "url", x.URL)
	case x.FileID != "":
		source.SetTexts("type", sourceFile, "file_id", x.FileID)
	}
	if source.Len() > 0 {
		o.Set("source", source.JSON())
	}
	o.SetTexts("title", p.X.Name)
}

// encodeResult returns a tool_result: parts are the result and the ones that belong to it.
func encodeResult(parts []wire.Part) (wire.Object, error) {
	p := &parts[0]
	var o wire.Object
	o.SetText("type", typeToolResult)
	o.SetText("tool_use_id", p.CallID)
	switch p.X.Shape {
	case wire.ShapeAbsent:
	case wire.ShapeNull:
		o.Set("content", jsontext.Value("null"))
	case wire.ShapeArray:
		var content []jsontext.Value
		for i := 1; i < len(parts); i++ {
			raw, err := parts[i].JSON(encodeBlock(&parts[i]))
			if err != nil {
				return o, err
			}
			content = append(content, raw)
		}
		if at := wire.TextPlace(p); at >= 0 && at <= len(content) {
			var text wire.Object
			text.SetText("type", typeText)
			text.SetText("text", p.Content())
			text.Merge(&p.X.Text)
			content = slices.Insert(content, at, text.Value())
		}
		o.Set("content", wire.Array(content))
	default:
		o.SetText("content", p.Content())
	}
	if p.IsError != nil {
		o.Set("is_error", strconv.AppendBool(nil, *p.IsError))
	}
	return o, nil
}
