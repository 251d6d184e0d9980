package anthropic

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export gives messages in this form: those that were decoded by it as the same JSON values,
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
		x, err := messageExtraOf(&msgs[i])
		if err != nil {
			return nil, err
		}
		var half *session.Message
		if len(x.At) > 0 && i+1 < len(msgs) && isHalf(&msgs[i+1], x.Entry) {
			i++
			half = &msgs[i]
		}
		m := &msgs[i]
		if half != nil {
			m = &msgs[i-1]
		}
		raw, err := export(m, half, &x)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return append(out, s.taken()...), nil
}

// isHalf tells whether a message is the user's half of an entry.
func isHalf(m *session.Message, entry string) bool {
	if m.Dialect != Name || m.Role != session.User {
		return false
	}
	x, err := messageExtraOf(m)
	return err == nil && x.Entry == entry
}

// export gives an entry back. half is nil, or the user's half of it.
func export(m, half *session.Message, x *messageExtra) (json.RawMessage, error) {
	var o wire.Object
	o.SetText("role", exportRole(m.Role))
	fields, blocks, err := exportBlocks(m)
	if err != nil {
		return nil, err
	}
	if half != nil {
		_, others, err := exportBlocks(half)
		if err != nil {
			return nil, err
		}
		blocks = weave(blocks, others, x.At)
	}
	switch x.Shape {
	case shapeAbsent:
	case shapeNull:
		o.Set("content", json.RawMessage("null"))
	case shapeEmpty:
		o.SetText("content", "")
	case shapeArray:
		o.Set("content", wire.AppendArray(nil, blocks))
	default:
		for i := range m.Parts {
			if m.Parts[i].Kind == session.PartText {
				o.SetText("content", m.Parts[i].Content())
				break
			}
		}
	}
	o.Overlay(fields)
	o.Overlay(x.Fields) // last: what is raw wins over what was made readable
	return o.JSON(), nil
}

func exportRole(role session.Role) string {
	if role == session.Tool {
		return "user"
	}
	return string(role)
}

// weave puts results back to their places among the other blocks of an entry.
func weave(results, others []json.RawMessage, at []int) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(results)+len(others))
	for len(results)+len(others) > 0 {
		if len(others) == 0 || len(results) > 0 && len(at) > 0 && at[0] == len(out) {
			out, results = append(out, results[0]), results[1:]
			if len(at) > 0 {
				at = at[1:]
			}
			continue
		}
		out, others = append(out, others[0]), others[1:]
	}
	return out
}

// exportBlocks gives the blocks of a message, and fields of it that are parts.
func exportBlocks(m *session.Message) (fields wire.Object, blocks []json.RawMessage, err error) {
	for at := 0; at < len(m.Parts); {
		p := &m.Parts[at]
		if err := wire.Loaded(p); err != nil {
			return fields, nil, err
		}
		x, err := partExtraOf(p)
		if err != nil {
			return fields, nil, err
		}
		next := at + 1
		if p.Kind == session.PartToolResult && x.Type == "" {
			next = groupEnd(m.Parts, at)
		}
		var raw json.RawMessage
		if p.Kind == session.PartToolResult && x.Type == "" {
			raw, err = exportResult(m.Parts[at:next], &x)
		} else {
			raw, err = exportBlock(p, &x)
		}
		if err != nil {
			return fields, nil, err
		}
		if x.Field != "" {
			fields.Set(x.Field, raw)
		} else {
			blocks = append(blocks, raw)
		}
		at = next
	}
	return fields, blocks, nil
}

// groupEnd gives the index behind the result at at and what belongs to it: the parts up to the
// next result, but for those that were fields of the message.
func groupEnd(parts []session.Part, at int) int {
	for at++; at < len(parts); at++ {
		if parts[at].Kind == session.PartToolResult || parts[at].CallID != parts[at-1].CallID {
			break
		}
	}
	return at
}

func exportBlock(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if p.Kind == session.PartData {
		return rawOf(p, x)
	}
	var o wire.Object
	kind := x.Type
	set := func(implied string) {
		if kind == "" {
			kind = implied
		}
		o.SetText("type", kind)
	}
	switch p.Kind {
	case session.PartText:
		if set(typeText); x.Type == "" {
			o.SetText("text", p.Content())
		}
	case session.PartImage:
		set(typeImage)
		o.Set("source", exportSource(p, x))
	case session.PartFile:
		if set(typeDocument); x.Type == "" {
			o.Set("source", exportSource(p, x))
		}
	case session.PartReasoning:
		if set(typeThinking); x.Type == "" {
			o.SetText("thinking", p.Content())
		}
	case session.PartToolCall:
		set(typeToolUse)
		o.SetText("id", p.CallID)
		o.SetText("name", p.ToolName)
		switch {
		case x.Shape == shapeText:
			o.SetText("input", p.Arguments)
		case x.Shape != shapeAbsent && !x.Fields.Has("input"):
			o.Set("input", json.RawMessage(p.Arguments))
		}
	case session.PartToolResult: // of a tool that the provider ran
		set(typeToolResult)
		o.SetText("tool_use_id", p.CallID)
	default:
		return nil, session.Errorf(session.Internal, "part %d of message %d of kind %s is none of this form", p.Idx, p.MessageID, p.Kind)
	}
	o.Overlay(x.Fields)
	return o.JSON(), nil
}

// exportResult gives a tool_result back: parts are the result and what belongs to it.
func exportResult(parts []session.Part, x *partExtra) (json.RawMessage, error) {
	p := &parts[0]
	var o wire.Object
	o.SetText("type", typeToolResult)
	o.SetText("tool_use_id", p.CallID)
	switch x.Shape {
	case shapeAbsent:
	case shapeNull:
		o.Set("content", json.RawMessage("null"))
	case shapeArray:
		var content []json.RawMessage
		for i := 1; i < len(parts); i++ {
			if err := wire.Loaded(&parts[i]); err != nil {
				return nil, err
			}
			px, err := partExtraOf(&parts[i])
			if err != nil {
				return nil, err
			}
			raw, err := exportBlock(&parts[i], &px)
			if err != nil {
				return nil, err
			}
			content = append(content, raw)
		}
		if x.At >= 0 && x.At <= len(content) {
			var text wire.Object
			text.SetText("type", typeText)
			text.SetText("text", p.Content())
			text.Overlay(x.Source)
			content = append(content[:x.At], append([]json.RawMessage{text.JSON()}, content[x.At:]...)...)
		}
		o.Set("content", wire.AppendArray(nil, content))
	default:
		o.SetText("content", p.Content())
	}
	if p.IsError != nil {
		o.Set("is_error", json.RawMessage(session.JSONOf(*p.IsError)))
	}
	o.Overlay(x.Fields)
	return o.JSON(), nil
}

// rawOf gives a data part back.
func rawOf(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if p.Blob != nil {
		return p.Blob.Data, nil
	}
	if len(x.Raw) == 0 {
		return nil, session.Errorf(session.Internal, "part %d of message %d of kind %s holds nothing to export", p.Idx, p.MessageID, p.Kind)
	}
	return x.Raw, nil
}
