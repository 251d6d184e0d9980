package responses

import (
	"encoding/json"
	"slices"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// call writes a call. One that the provider ran has its result with it.
func (s *sender) call(m *session.Message, u *unit) {
	kind := u.kind()
	p := u.parts[0]
	if slices.ContainsFunc(u.parts, func(q *session.Part) bool { return q.Kind == session.PartToolResult }) {
		s.ran(m, u, kind)
		return
	}
	var o wire.Object
	switch {
	case kind == itemShellCall && isObject(p.Arguments, "commands"),
		kind == itemApplyPatchCall && isObject(p.Arguments, "type", "path"),
		kind == itemLocalShellCall && isObject(p.Arguments, "type", "command"),
		kind == itemToolSearchCall && isObject(p.Arguments):
		s.builtIn(m, u, kind, &o)
	case u.extras[0].Type == typeCustom || m.Dialect != Name && isCustom(p):
		kind = itemCustomCall
		o.SetText("type", kind)
		o.SetText("call_id", s.opened(p, kind))
		o.SetText("name", s.name(m, p.ToolName))
		o.SetText("input", p.Arguments)
	default:
		if kind != "" && kind != itemFunctionCall {
			s.lose(m, kind+" is sent as a function's call")
		}
		kind = itemFunctionCall
		s.function(m, p, p.Arguments, &o)
		if u.item != nil && wire.KindOf(u.item.Get("namespace")) == '"' {
			o.Set("namespace", u.item.Get("namespace"))
		}
	}
	if u.item != nil {
		s.loseFields(m, u.item, "name", "namespace", "action", "operation", "arguments", "input", "execution", "environment", "pending_safety_checks")
	}
	s.write(&o)
}

// function writes the call of a function and opens it.
func (s *sender) function(m *session.Message, p *session.Part, arguments string, o *wire.Object) {
	o.SetText("type", itemFunctionCall)
	o.SetText("call_id", s.opened(p, itemFunctionCall))
	o.SetText("name", s.name(m, p.ToolName))
	o.SetText("arguments", arguments)
}

// opened gives the id that a call is sent with, and notes that it waits for its result.
func (s *sender) opened(p *session.Part, kind string) string {
	sent := s.callID(p.CallID)
	s.open = append(s.open, openCall{id: p.CallID, name: p.ToolName, sent: sent, kind: kind})
	return sent
}

// builtIn writes the call of a tool that the API knows and the caller runs.
func (s *sender) builtIn(m *session.Message, u *unit, kind string, o *wire.Object) {
	p := u.parts[0]
	spec, _ := specOf(kind)
	o.SetText("type", kind)
	o.SetText("call_id", s.opened(p, kind))
	o.Set(spec.arguments, json.RawMessage(p.Arguments))
	o.SetText("status", "completed")
	if status, _ := wire.TextOf(u.item.Get("status")); status == "incomplete" || status == "in_progress" && kind != itemApplyPatchCall {
		o.SetText("status", status)
	}
	if kind == itemToolSearchCall {
		if execution, _ := wire.TextOf(u.item.Get("execution")); execution == "server" || execution == "client" {
			o.SetText("execution", execution)
		}
	}
}

// isCustom tells whether another form marked a call as one of a custom tool.
func isCustom(p *session.Part) bool {
	var x struct {
		Type string `json:"type"`
	}
	return len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil && x.Type == typeCustom
}

// isObject tells whether a text is a JSON object with the given fields.
func isObject(text string, fields ...string) bool {
	raw := json.RawMessage(text)
	if wire.KindOf(raw) != '{' || !json.Valid(raw) {
		return false
	}
	o, err := wire.ParseObject("", raw)
	return err == nil && !slices.ContainsFunc(fields, func(f string) bool { return wire.IsNull(o.Get(f)) })
}

// ran writes a call that the provider ran, with its result: in its own form where the API takes
// that without an id of its storage, else as a function's call and output.
func (s *sender) ran(m *session.Message, u *unit, kind string) {
	var o wire.Object
	switch {
	case kind == itemWebSearchCall && s.webSearch(m, u, &o), kind == itemMCPCall && s.mcpCall(u, &o):
		s.write(&o)
		return
	}
	call := u.parts[0]
	elements := s.elements(m, u.parts[1:], u.extras[1:])
	what := call.ToolName
	if kind != "" {
		what = kind
	}
	if len(elements) == 0 {
		s.lose(m, wire.Clip(what)+", which the provider ran: it says nothing that can be sent")
		return
	}
	s.lose(m, wire.Clip(what)+", which the provider ran, is sent as a function's call and output")
	arguments := call.Arguments
	if spec, _ := specOf(kind); kind != "" && kind != itemMCPCall && arguments != "" {
		var wrapped wire.Object
		if spec.text {
			wrapped.SetText(spec.arguments, arguments)
		} else {
			wrapped.Set(spec.arguments, json.RawMessage(arguments))
		}
		arguments = string(wrapped.JSON())
	}
	s.function(m, call, arguments, &o)
	s.write(&o)
	open := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.functionOutput(itemFunctionOutput, open.sent, elements)
}

// webSearch writes a search without its id, as Codex does.
func (s *sender) webSearch(m *session.Message, u *unit, o *wire.Object) bool {
	if !isObject(u.parts[0].Arguments, "type") {
		return false
	}
	action, err := wire.ParseObject("action", json.RawMessage(u.parts[0].Arguments))
	if kind, _ := wire.TextOf(action.Get("type")); err != nil || !slices.Contains([]string{"search", "open_page", "find_in_page"}, kind) {
		return false
	}
	var sent wire.Object
	for _, f := range action.Members() {
		switch f.Key {
		case "type", "query", "queries", "url", "pattern", "sources":
			if !wire.IsNull(f.Value) {
				sent.Set(f.Key, f.Value)
			}
		default:
			s.lose(m, "field action."+wire.Clip(f.Key))
		}
	}
	o.SetText("type", itemWebSearchCall)
	o.SetText("status", "completed")
	if status, _ := wire.TextOf(u.item.Get("status")); status == "failed" {
		o.SetText("status", status)
	}
	o.Set("action", sent.JSON())
	return true
}

// mcpCall writes the call of an MCP server's tool, which is told by its id.
func (s *sender) mcpCall(u *unit, o *wire.Object) bool {
	call, result := u.parts[0], u.parts[1]
	id, label := u.item.Get("id"), u.item.Get("server_label")
	if wire.KindOf(id) != '"' || wire.KindOf(label) != '"' || string(id) == `""` {
		return false
	}
	o.SetText("type", itemMCPCall)
	o.Set("id", id)
	o.Set("server_label", label)
	o.SetText("name", call.ToolName)
	o.SetText("arguments", call.Arguments)
	if u.extras[1].Field == "output" {
		o.SetText("output", result.Content())
	}
	if e := u.item.Get("error"); !wire.IsNull(e) {
		o.Set("error", e)
	}
	if request, _ := wire.TextOf(u.item.Get("approval_request_id")); s.requested[request] {
		o.SetText("approval_request_id", request)
	}
	return true
}

// tool writes the results of a message. Other parts belong to the result before them.
func (s *sender) tool(m *session.Message) error {
	extras := make([]partExtra, len(m.Parts))
	for i := range m.Parts {
		x, err := extraOf(m, &m.Parts[i])
		if err != nil {
			return err
		}
		extras[i] = x
	}
	for at := 0; at < len(m.Parts); {
		next := at + 1
		for next < len(m.Parts) && m.Parts[next].Kind != session.PartToolResult {
			next++
		}
		if m.Parts[at].Kind == session.PartToolResult {
			u := unit{item: extras[at].Item, extras: extras[at:next]}
			for i := at; i < next; i++ {
				u.parts = append(u.parts, &m.Parts[i])
			}
			s.result(m, &u)
		} else {
			for i := at; i < next; i++ {
				s.losePart(m, &m.Parts[i], &extras[i])
			}
		}
		at = next
	}
	return nil
}

// result writes an output in the form that its call was written in.
func (s *sender) result(m *session.Message, u *unit) {
	call := s.close(u.parts[0])
	if u.item != nil {
		s.loseFields(m, u.item, "output", "name", "tools", "execution", "max_output_length", "acknowledged_safety_checks", "success")
	}
	var o wire.Object
	switch call.kind {
	case itemShellCall:
		s.shellOutput(u, call.sent, &o)
	case itemApplyPatchCall:
		o.SetText("type", itemApplyPatchOutput)
		o.SetText("call_id", call.sent)
		status := "completed"
		if failed := u.parts[0].IsError; failed != nil && *failed {
			status = "failed"
		}
		o.SetText("status", status)
		if text := u.parts[0].Content(); text != "" {
			o.SetText("output", text)
		}
	case itemToolSearchCall:
		tools := json.RawMessage("[]")
		if u.item != nil {
			if raw, err := u.field("tools"); err == nil && wire.KindOf(raw) == '[' {
				tools = raw
			}
		}
		o.SetText("type", itemToolSearchOutput)
		o.SetText("call_id", call.sent)
		o.SetText("status", "completed")
		o.Set("tools", tools)
		if u.item != nil {
			if execution, _ := wire.TextOf(u.item.Get("execution")); execution == "server" || execution == "client" {
				o.SetText("execution", execution)
			}
		}
	case itemCustomCall:
		s.functionOutput(itemCustomOutput, call.sent, s.elements(m, u.parts, u.extras))
		return
	default: // a local shell's too, as Codex sends it
		s.functionOutput(itemFunctionOutput, call.sent, s.elements(m, u.parts, u.extras))
		return
	}
	s.out = append(s.out, o.JSON())
}

// elements writes parts as the elements of an output.
func (s *sender) elements(m *session.Message, parts []*session.Part, extras []partExtra) []json.RawMessage {
	var elements []json.RawMessage
	for i, p := range parts {
		x := &extras[i]
		s.loseElement(m, x)
		switch {
		case p.Kind == session.PartToolResult || p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case p.Kind == session.PartData && x.Field != "":
			continue // a field of the item that is too large to stand in it
		default:
			if e := s.medium(m, p, x); e != nil {
				elements = append(elements, e)
			}
		}
	}
	return elements
}

func (s *sender) functionOutput(kind, id string, elements []json.RawMessage) {
	var o wire.Object
	o.SetText("type", kind)
	o.SetText("call_id", id)
	o.Set("output", contentOf(elements))
	s.out = append(s.out, o.JSON())
}

// shellOutput writes what a shell gave: as it came, unless a context shortened it.
func (s *sender) shellOutput(u *unit, id string, o *wire.Object) {
	o.SetText("type", itemShellOutput)
	o.SetText("call_id", id)
	text := u.parts[0].Content()
	if u.item != nil {
		if raw, err := u.field("output"); err == nil && isShellOutput(raw) && shellText(raw) == text {
			o.Set("output", raw)
			if most := u.item.Get("max_output_length"); wire.KindOf(most) == 0 {
				o.Set("max_output_length", most)
			}
			return
		}
	}
	var one, outcome wire.Object
	one.SetText("stdout", text)
	one.SetText("stderr", "")
	outcome.SetText("type", "exit")
	outcome.Set("exit_code", json.RawMessage("0"))
	if failed := u.parts[0].IsError; failed != nil && *failed {
		outcome.Set("exit_code", json.RawMessage("1"))
	}
	one.Set("outcome", outcome.JSON())
	o.Set("output", wire.AppendArray(nil, []json.RawMessage{one.JSON()}))
}

// isShellOutput tells whether each command has a stdout, a stderr and an outcome, and nothing else.
func isShellOutput(raw json.RawMessage) bool {
	if !wire.HasElements(raw) {
		return false
	}
	commands, _ := wire.ParseArray("output", raw)
	return !slices.ContainsFunc(commands, func(c json.RawMessage) bool {
		o, err := wire.ParseObject("output", c)
		return err != nil || o.Len() != 3 || wire.KindOf(o.Get("stdout")) != '"' || wire.KindOf(o.Get("stderr")) != '"' || wire.KindOf(o.Get("outcome")) != '{'
	})
}

// close gives the call that a result answers: the newest open one of its id. One that came
// without an id answers the first open call of its name that has none either, else the first open one.
func (s *sender) close(p *session.Part) openCall {
	at := -1
	if p.CallID != "" {
		for i := range slices.Backward(s.open) {
			if s.open[i].id == p.CallID {
				at = i
				break
			}
		}
	} else {
		at = slices.IndexFunc(s.open, func(c openCall) bool { return c.id == "" && c.name == p.ToolName })
		if at < 0 && len(s.open) > 0 {
			at = 0
		}
	}
	if at < 0 {
		return openCall{id: p.CallID, sent: shortID(p.CallID), kind: itemFunctionCall}
	}
	call := s.open[at]
	s.open = slices.Delete(s.open, at, at+1)
	return call
}
