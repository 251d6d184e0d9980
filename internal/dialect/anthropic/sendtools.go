package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// call writes a call that waits for its result. x is nil for one of another form.
func (s *sender) call(p *session.Part, x *partExtra) error {
	name := legalTool(p.ToolName)
	if name != p.ToolName {
		s.lose("the tool's name " + strconv.Quote(wire.Clip(p.ToolName)) + " is sent as " + strconv.Quote(name))
	}
	input, ok := inputOf(p.Arguments)
	if !ok {
		s.lose("arguments of " + strconv.Quote(wire.Clip(p.ToolName)) + " are no JSON object, sent inside one")
	}
	b := sent{kind: typeToolUse, id: s.newID(p)}
	var o wire.Object
	o.SetText("type", typeToolUse)
	o.SetText("id", b.id)
	o.SetText("name", name)
	o.Set("input", input)
	if x != nil {
		s.loseBlockFields(typeToolUse, x.Fields, "input", "caller", "id", "name")
		b.caller = setCaller(&o, x.Fields)
	}
	b.raw = o.JSON()
	s.put(roleAssistant, b)
	if !s.maker {
		s.entries[len(s.entries)-1].foreign = true
	}
	s.open = append(s.open, openCall{p.CallID, p.ToolName, b.id, s.m})
	return nil
}

// inputOf gives arguments as the object that the API wants: as they came, if they are one.
// Others stand in an object, which is not ok; none is the empty object.
func inputOf(arguments string) (raw json.RawMessage, ok bool) {
	text := strings.TrimSpace(arguments)
	if text == "" || text == "null" {
		return json.RawMessage("{}"), true
	}
	if raw = json.RawMessage(text); text[0] == '{' && json.Valid(raw) {
		return cleanJSON(raw), true
	}
	var o wire.Object
	o.SetText("input", arguments)
	return o.JSON(), false
}

// tool writes the results of a tool's message. Other parts belong to the result before them.
func (s *sender) tool() error {
	for at := 0; at < len(s.m.Parts); {
		next := at + 1
		for next < len(s.m.Parts) && s.m.Parts[next].Kind != session.PartToolResult {
			next++
		}
		if s.m.Parts[at].Kind == session.PartToolResult {
			if err := s.result(s.m.Parts[at:next]); err != nil {
				return err
			}
		} else {
			for i := at; i < next; i++ {
				s.losePart(&s.m.Parts[i])
			}
		}
		at = next
	}
	return nil
}

// result writes a result with what belongs to it.
func (s *sender) result(parts []session.Part) error {
	p := &parts[0]
	id, ok := s.answer(p)
	if !ok {
		s.lose("a result of " + strconv.Quote(wire.Clip(p.CallID)) + " answers no call of the reply before it")
		return nil
	}
	var x partExtra
	if s.own {
		var err error
		if x, err = partExtraOf(p); err != nil {
			return err
		}
		s.loseBlockFields(typeToolResult, x.Fields, "content", "is_error", "tool_use_id")
	}
	content, err := s.resultContent(parts, x.At)
	if err != nil {
		return err
	}
	failed := p.IsError != nil && *p.IsError
	if len(content) == 0 && failed { // which the API wants to be told about
		content = append(content, textBlock(noContent))
	}
	var o wire.Object
	o.SetText("type", typeToolResult)
	o.SetText("tool_use_id", id)
	switch {
	case len(content) == 0:
	case len(content) == 1 && content[0].kind == typeText:
		o.SetText("content", content[0].text)
	default:
		blocks := make([]json.RawMessage, len(content))
		for i := range content {
			blocks[i] = content[i].raw
		}
		o.Set("content", wire.AppendArray(nil, blocks))
	}
	if p.IsError != nil {
		o.Set("is_error", json.RawMessage(strconv.FormatBool(failed)))
	}
	s.put(roleUser, sent{kind: typeToolResult, id: id, raw: o.JSON()})
	return nil
}

// resultContent gives the blocks of a result: its text, which stands before the part at at,
// and the parts that belong to it.
func (s *sender) resultContent(parts []session.Part, at int) ([]sent, error) {
	var content []sent
	text := parts[0].Content()
	for i := 1; i <= len(parts); i++ {
		if i-1 == max(at, 0) || i == len(parts) {
			if strings.TrimSpace(text) != "" {
				content = append(content, textBlock(text))
			}
			text = ""
		}
		if i == len(parts) {
			break
		}
		b, err := s.content(&parts[i])
		if err != nil {
			return nil, err
		}
		if b.raw != nil {
			content = append(content, b)
		}
	}
	return content, nil
}

// answer gives the id of the call that a result answers. One that came without an id answers
// the first open call of its name, else the first open one.
func (s *sender) answer(p *session.Part) (id string, ok bool) {
	at := slices.IndexFunc(s.open, func(c openCall) bool { return c.id == p.CallID })
	if p.CallID == "" {
		at = slices.IndexFunc(s.open, func(c openCall) bool { return c.name == p.ToolName })
		if at < 0 && len(s.open) > 0 {
			at = 0
		}
	}
	if at < 0 {
		id = s.ids.Result(p.CallID)
		return id, s.export && id != ""
	}
	id = s.open[at].sent
	s.open = slices.Delete(s.open, at, at+1)
	return id, true
}

// close takes calls back that never got a result, for which the API would refuse all.
func (s *sender) close() {
	if s.export {
		s.open = nil
	}
	for _, c := range s.open {
		for i := range slices.Backward(s.entries) {
			e := &s.entries[i]
			if at := slices.IndexFunc(e.blocks, func(b sent) bool { return b.kind == typeToolUse && b.id == c.sent }); at >= 0 {
				e.blocks = slices.Delete(e.blocks, at, at+1)
				break
			}
		}
		s.loseOf(c.from, "call "+strconv.Quote(wire.Clip(c.id))+" has no result behind it")
	}
	s.open = nil
}

// cleanJSON writes halves of surrogate pairs as U+FFFD: the API takes the whole request for
// no JSON otherwise.
func cleanJSON(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw
	}
	const escape = len(`\u0000`)
	unit := func(at int) uint64 {
		if at+escape > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(raw[at+2:at+escape]), 16, 32)
		return n
	}
	out := make(json.RawMessage, 0, len(raw))
	for at := 0; at < len(raw); {
		n, size := unit(at), 1
		switch {
		case raw[at] != '\\':
		case n == 0:
			size = 2
		case n >= 0xd800 && n < 0xdc00 && unit(at+escape) >= 0xdc00 && unit(at+escape) <= 0xdfff:
			size = 2 * escape
		case n >= 0xd800 && n <= 0xdfff:
			out = append(out, `\ufffd`...)
			at += escape
			continue
		default:
			size = escape
		}
		size = min(size, len(raw)-at)
		out = append(out, raw[at:at+size]...)
		at += size
	}
	return out
}
