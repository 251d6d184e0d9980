package responses

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// maxCallID is the limit of the API for a call's id, in bytes. It answers 400 beyond it.
const maxCallID = 64

// Send makes {"instructions": …, "input": […]} of a context, for a request with store:false:
// no item is named by an id that the provider would look up, none refers to a stored one, and
// reasoning is sent only with its encrypted content and directly before what it led to. Tools
// that the provider ran are sent in their own form where the API takes that without storage,
// and as a function's call and output where it does not. Only the items of MCP servers keep
// their ids, since an approval names its request by it. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := newSender(in.Model)
	for i := range in.Messages {
		if err := s.approvals(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	for i := range in.Messages {
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	s.dangling()
	request := jsonx.Encode("instructions", jsonx.Maybe(in.System), "input", append([]jsontext.Value{}, s.Taken()...))
	return wire.Sent{Request: session.JSON(request), Losses: s.Losses(), ToolNames: s.ToolNames()}, nil
}

// sender writes items one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, reasoning that waits for what it led to.
type sender struct {
	wire.Sender
	model     string
	ids       callid.Names
	reasoning []waiting
	answered  map[string]bool // ids of requests for an approval that is given or refused later
	requested map[string]bool // those that were written
}

// waiting is an item of reasoning, and the message that it is of.
type waiting struct {
	item jsontext.Value
	of   *session.Message
}

func newSender(model string) *sender {
	return &sender{model: model, answered: map[string]bool{}, requested: map[string]bool{}}
}

// approvals notes which requests of MCP servers get an answer.
func (s *sender) approvals(of *session.Message) error {
	if of.Dialect != Name || of.Role != session.User || !slices.ContainsFunc(of.Parts, func(p session.Part) bool {
		return p.Kind == session.PartData
	}) {
		return nil
	}
	m, err := wire.Open(of)
	if err != nil {
		return err
	}
	for _, p := range m.Parts {
		if p.Kind == session.PartData && p.X.Type == itemMCPResponse && p.X.Item != nil {
			s.answered[p.X.Item.String("approval_request_id")] = true
		}
	}
	return nil
}

// writeMade writes an item that the model made, behind the reasoning that led to it.
func (s *sender) writeMade(o *jsonx.Object) {
	for _, r := range s.reasoning {
		s.Out = append(s.Out, r.item)
	}
	s.reasoning = nil
	s.Out = append(s.Out, o.Value())
}

// dangling leaves out reasoning that led to nothing which is sent.
func (s *sender) dangling() {
	for _, r := range s.reasoning {
		s.LoseOf(r.of, "reasoning without what it led to")
	}
	s.reasoning = nil
}

func (s *sender) message(of *session.Message) error {
	if err := s.Load(Name, of); err != nil {
		return err
	}
	m := &s.M
	if m.Kind == session.KindUnknown && m.Dialect == Name && len(m.Parts) > 0 {
		s.dangling()
		if kind := m.Parts[0].X.Type; kind == itemReference {
			s.Lose("an item_reference to what only the provider stores")
		} else {
			s.Lose("unknown item type " + jsonx.Clip(kind))
		}
		return nil
	}
	role := s.Role()
	if role == session.Assistant {
		for _, u := range unitsOf(m) {
			s.unit(&u)
		}
		return nil
	}
	s.dangling()
	switch role {
	case session.System, session.User:
		s.user(string(role))
	case session.Tool:
		for parts := range s.Results() {
			s.result(parts)
		}
	}
	return nil
}

// user writes a message of the user's or the system's role.
func (s *sender) user(role string) {
	var elements []jsontext.Value
	approvals := 0
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		if p.X.Item != nil {
			if p.X.Item.Text("role") == roleDeveloper {
				role = roleDeveloper
			}
			s.loseItem(p.X.Item, "role", "content", "name", "approval_request_id", "approve", "reason")
		}
		s.loseElement(p)
		switch {
		case p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case p.X.Type == itemMCPResponse && p.X.Item != nil:
			approvals++
			s.approval(p.X.Item)
		case role != "user":
			s.LosePart(p)
		default:
			if e := s.medium(p); e != nil {
				elements = append(elements, e)
			}
		}
	}
	if len(elements) == 0 && role == "user" && approvals == 0 {
		s.LoseContent()
		elements = appendText(nil, wire.NoContent)
	}
	if len(elements) > 0 {
		s.Write("type", itemMessage, "role", role, "content", wire.ContentOf(elements, textPrefix))
	}
}

// loseItem names the fields of an item that are not sent, but for those that a request never
// has: the provider's or a program's own bookkeeping.
func (s *sender) loseItem(o *jsonx.Object, sent ...string) {
	if o != nil {
		s.LoseFields(o, "", append(sent, "type", "id", "status", "call_id", "object",
			"internal_chat_message_metadata_passthrough", "metadata", "created_by")...)
	}
}

// loseElement names the fields of an element that are not sent: citations, above all.
func (s *sender) loseElement(p *wire.Part) {
	s.LoseFields(&p.X.Rest, "", "type", "text", "refusal", "image_url", "file_id", "file_url", "file_data", "filename",
		"detail", typeAudio, "audio_url", "logprobs")
}

const textPrefix = `{"type":"input_text","text":`

func appendText(elements []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(elements, textPrefix, text)
}

// medium writes an image or a file as an element of a content or an output. It returns nil, with
// a loss, for what the API does not take. Of a sound, which it does not take, the words stand in.
// Types as in OpenAI's guide to vision.
func (s *sender) medium(p *wire.Part) jsontext.Value {
	x := &p.X
	// an id of another store names nothing there
	uploaded := x.FileID != "" && (s.M.Dialect == Name || s.M.Dialect == "openai.chat")
	switch p.Kind {
	case session.PartImage:
		detail := x.Detail
		if !slices.Contains([]string{"low", "high", "original"}, detail) {
			detail = "auto"
		}
		switch {
		case p.Blob != nil && wire.IsImage(x.MediaType):
			return jsonx.Encode("type", typeImage, "detail", detail, "image_url", wire.BlobURL(p))
		case p.Blob != nil:
		case wire.IsWeb(x.URL):
			return jsonx.Encode("type", typeImage, "detail", detail, "image_url", x.URL)
		case uploaded:
			return jsonx.Encode("type", typeImage, "detail", detail, "file_id", x.FileID)
		}
	case session.PartFile:
		switch {
		case p.Blob != nil && strings.Contains(x.MediaType, "/"):
			return jsonx.Encode("type", typeFile, "filename", cmp.Or(x.Name, "file"), "file_data", wire.BlobURL(p))
		case wire.IsWeb(x.URL):
			return jsonx.Encode("type", typeFile, "file_url", x.URL)
		case uploaded:
			return jsonx.Encode("type", typeFile, "file_id", x.FileID)
		}
	case session.PartAudio:
		if elements := appendText(nil, p.Content()); elements != nil {
			return elements[0]
		}
	default:
		s.LosePart(p)
		return nil
	}
	s.LoseMedium(p)
	return nil
}

// opened returns the id that a call is sent with, and notes that it waits for its result. The id
// is its own, if that is short enough and no call before had it. It depends on nothing but the
// calls so far, so that a context that grows keeps its beginning.
func (s *sender) opened(p *wire.Part, kind string) string {
	sent := clipped(s.ids.Call(shortID(s.CountCall(p, "call_made_"))))
	s.Open = append(s.Open, wire.OpenCall{ID: p.CallID, Name: p.ToolName, SentID: sent, Kind: kind})
	return sent
}

// shortID returns an id that is short enough. Some programs join a call's id and its item's with
// a bar: then the first is what it was.
func shortID(id string) string {
	if call, _, joined := strings.Cut(id, "|"); len(id) > maxCallID && joined && call != "" && len(call) <= maxCallID {
		return call
	}
	return clipped(id)
}

func clipped(id string) string {
	const kept = 40
	return callid.Short(id, kept, maxCallID)
}

// unit writes an item of a reply.
func (s *sender) unit(u *unit) {
	p := u.parts[0]
	switch {
	case p.Kind == session.PartToolCall:
		s.call(u)
	case p.Kind == session.PartReasoning || u.kind == itemReasoning:
		s.thought(u)
	case u.item != nil && p.X.Type != "" && u.kind != itemMessage:
		s.special(u)
	case says(p) || u.kind == itemMessage:
		s.reply(u)
	default:
		s.LosePart(p)
	}
}

// reply writes what the model said.
func (s *sender) reply(u *unit) {
	const textPrefix = `{"type":"output_text","text":`
	var elements []jsontext.Value
	for _, p := range u.parts {
		s.loseElement(p)
		switch p.Kind {
		case session.PartText, session.PartAudio:
			elements = wire.AppendTextElement(elements, textPrefix, p.Content())
		case session.PartRefusal:
			elements = wire.AppendTextElement(elements, `{"type":"refusal","refusal":`, p.Content())
		default:
			s.LosePart(p)
		}
	}
	s.loseItem(u.item, "role", "content", "phase")
	if len(elements) == 0 {
		return
	}
	phase := jsonx.Maybe(u.text("phase"))
	if phase != "commentary" && phase != "final_answer" {
		phase = ""
	}
	o := jsonx.NewObject("type", itemMessage, "role", "assistant", "content", wire.ContentOf(elements, textPrefix),
		"phase", phase)
	s.writeMade(&o)
}

// thought keeps reasoning until what it led to is written. Only its maker can read what it
// encrypted, and without that it is nothing to a provider that stored nothing.
func (s *sender) thought(u *unit) {
	if u.item == nil {
		s.signed(u.parts[0])
		return
	}
	m := &s.M
	encrypted := u.field("encrypted_content")
	if jsonx.KindOf(encrypted) != '"' || string(encrypted) == `""` {
		s.Lose("reasoning without its encrypted content")
		return
	}
	// A provider that only speaks this form encrypts for itself.
	known := m.Provider != "" && (m.Model != s.model || s.model == "")
	if known && !strings.HasPrefix(m.Provider, "openai") && !strings.HasPrefix(m.Provider, "azure") {
		s.Lose("reasoning that " + m.Provider + " encrypted")
		return
	}
	var summary []jsontext.Value
	for _, p := range u.parts {
		if p.X.Of == "summary" && p.Kind == session.PartReasoning {
			summary = append(summary, jsonx.Encode("type", typeSummary, "text", p.Content()))
		}
	}
	s.wait(summary, encrypted)
}

// signed keeps reasoning that came in another form, if that form kept the whole item as its
// signature, as pi does for the model that is asked now. Any other reasoning is left out.
func (s *sender) signed(p *wire.Part) {
	m := &s.M
	var x struct{ ThinkingSignature string }
	if len(p.Extra) > 0 && m.Model == s.model && m.Model != "" && m.Dialect == "pi" && json.Unmarshal(p.Extra, &x) == nil {
		var item struct {
			Type      string
			Encrypted string `json:"encrypted_content"`
			Summary   []struct{ Text string }
		}
		if json.Unmarshal([]byte(x.ThinkingSignature), &item) == nil && item.Type == itemReasoning && item.Encrypted != "" {
			var summary []jsontext.Value
			for _, e := range item.Summary {
				summary = append(summary, jsonx.Encode("type", typeSummary, "text", e.Text))
			}
			s.wait(summary, jsonx.Quote(item.Encrypted))
			return
		}
	}
	if p.Content() != "" || len(p.Extra) > 0 {
		s.Lose("reasoning")
	}
}

// wait keeps an item of reasoning until what it led to is written.
func (s *sender) wait(summary []jsontext.Value, encrypted jsontext.Value) {
	item := jsonx.Encode("type", itemReasoning, "summary", jsonx.Array(summary), "encrypted_content", encrypted)
	s.reasoning = append(s.reasoning, waiting{item: jsontext.Value(item), of: s.From})
}

// special writes items that are no talk and no call.
func (s *sender) special(u *unit) {
	var fields []string
	switch u.kind {
	case itemCompaction:
		fields = []string{"encrypted_content"}
	case itemMCPTools:
		fields = []string{"id", "server_label", "tools"}
	case itemMCPRequest:
		id := u.item.String("id")
		if !s.answered[id] || s.requested[id] {
			s.Lose("a request for an approval that has no answer")
			return
		}
		s.requested[id] = true
		fields = []string{"id", "server_label", "name", "arguments"}
	default:
		s.Lose("unknown item type " + jsonx.Clip(u.kind))
		return
	}
	o := jsonx.NewObject("type", u.kind)
	for _, f := range fields {
		raw := u.field(f)
		if kind := jsonx.KindOf(raw); kind != '"' && f != "tools" || f == "tools" && kind != '[' {
			s.Lose(u.kind + " without " + f)
			return
		}
		o.Set(f, raw)
	}
	if e := u.item.Get("error"); u.kind == itemMCPTools && jsonx.KindOf(e) == '"' {
		o.Set("error", e)
	}
	s.writeMade(&o)
}

// text returns a field of the unit's item that is a string.
func (u *unit) text(field string) string {
	if u.item == nil {
		return ""
	}
	return u.item.Text(field)
}

// field returns a field of the unit's item, also where it is a part of its own; nil for none.
func (u *unit) field(name string) jsontext.Value {
	if u.item == nil {
		return nil
	}
	if raw := u.item.Get(name); raw != nil {
		return raw
	}
	for _, p := range u.parts {
		if isLarge(p) && p.X.Field == name {
			return p.Raw()
		}
	}
	return nil
}

// approval writes a person's answer to the request of an MCP server.
func (s *sender) approval(item *jsonx.Object) {
	id := item.String("approval_request_id")
	approve, reason := item.Get("approve"), item.Get("reason")
	if !s.requested[id] || jsonx.KindOf(approve) != 't' && jsonx.KindOf(approve) != 'f' {
		s.Lose("an approval of a request that is not here")
		return
	}
	if jsonx.KindOf(reason) != '"' {
		reason = nil
	}
	s.Write("type", itemMCPResponse, "approval_request_id", id, "approve", approve, "reason", reason)
}

// call writes a call. One that the provider ran has its result with it.
func (s *sender) call(u *unit) {
	p := u.parts[0]
	if slices.ContainsFunc(u.parts, func(q *wire.Part) bool { return q.Kind == session.PartToolResult }) {
		s.ran(u)
		return
	}
	var o jsonx.Object
	switch {
	case u.kind == itemShellCall && isObject(p.Arguments, "commands"),
		u.kind == itemApplyPatchCall && isObject(p.Arguments, "type", "path"),
		u.kind == itemLocalShellCall && isObject(p.Arguments, "type", "command"),
		u.kind == itemToolSearchCall && isObject(p.Arguments):
		o = s.builtIn(u)
	case p.X.Type == typeCustom || s.M.Dialect != Name && isCustom(&p.Part):
		o = jsonx.NewObject("type", itemCustomCall, "call_id", s.opened(p, itemCustomCall), "name", s.ToolName(p.ToolName),
			"input", p.Arguments)
	default:
		if u.kind != "" && u.kind != itemFunctionCall {
			s.Lose(u.kind + " is sent as a function's call")
		}
		o = s.function(p, p.Arguments)
		if u.item != nil && jsonx.KindOf(u.item.Get("namespace")) == '"' {
			o.Set("namespace", u.item.Get("namespace"))
		}
	}
	s.loseItem(u.item, "name", "namespace", "action", "operation", "arguments", "input", "execution", "environment",
		"pending_safety_checks")
	s.writeMade(&o)
}

// function returns the call of a function and opens it.
func (s *sender) function(p *wire.Part, arguments string) jsonx.Object {
	return jsonx.NewObject("type", itemFunctionCall, "call_id", s.opened(p, itemFunctionCall), "name",
		s.ToolName(p.ToolName), "arguments", cmp.Or(arguments, "{}"))
}

// builtIn returns the call of a tool that the API knows and the caller runs.
func (s *sender) builtIn(u *unit) jsonx.Object {
	p := u.parts[0]
	status := u.text("status")
	if status != "incomplete" && (status != "in_progress" || u.kind == itemApplyPatchCall) {
		status = "completed"
	}
	o := jsonx.NewObject("type", u.kind, "call_id", s.opened(p, u.kind), callSpecs[u.kind].arguments,
		jsontext.Value(p.Arguments), "status", status)
	if u.kind == itemToolSearchCall {
		o.Add("execution", u.execution())
	}
	return o
}

// execution returns who runs a search for tools.
func (u *unit) execution() jsonx.Maybe {
	if execution := u.text("execution"); execution == "server" || execution == "client" {
		return jsonx.Maybe(execution)
	}
	return ""
}

// isCustom reports whether another form marked a call as one of a custom tool.
func isCustom(p *session.Part) bool {
	var x struct {
		Type string `json:"type"`
	}
	return len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil && x.Type == typeCustom
}

// isObject reports whether a text is a JSON object with the given fields.
func isObject(text string, fields ...string) bool {
	o, err := jsonx.ParseObject("", []byte(text))
	return err == nil && !slices.ContainsFunc(fields, func(f string) bool { return jsonx.IsNull(o.Get(f)) })
}

// ran writes a call that the provider ran, with its result: in its own form where the API takes
// that without an id of its storage, else as a function's call and output.
func (s *sender) ran(u *unit) {
	var own jsonx.Object
	if u.kind == itemWebSearchCall && s.webSearch(u, &own) || u.kind == itemMCPCall && s.mcpCall(u, &own) {
		s.writeMade(&own)
		return
	}
	call := u.parts[0]
	elements := s.elements(u.parts[1:])
	what := cmp.Or(u.kind, call.ToolName)
	if len(elements) == 0 {
		s.Lose(jsonx.Clip(what) + ", which the provider ran: it says nothing that can be sent")
		return
	}
	s.Lose(jsonx.Clip(what) + ", which the provider ran, is sent as a function's call and output")
	arguments := call.Arguments
	if spec := callSpecs[u.kind]; u.kind != "" && u.kind != itemMCPCall && arguments != "" {
		arguments = string(jsonx.Encode(spec.arguments, spec.value(arguments)))
	}
	o := s.function(call, arguments)
	s.writeMade(&o)
	open := s.Open[len(s.Open)-1]
	s.Open = s.Open[:len(s.Open)-1]
	s.Write("type", itemFunctionOutput, "call_id", open.SentID, "output", wire.ContentOf(elements, textPrefix))
}

// webSearch writes a search without its id, as Codex does.
func (s *sender) webSearch(u *unit, o *jsonx.Object) bool {
	action, err := jsonx.ParseObject("action", []byte(u.parts[0].Arguments))
	if err != nil || !slices.Contains([]string{"search", "open_page", "find_in_page"}, action.Text("type")) {
		return false
	}
	var sent jsonx.Object
	for _, f := range action {
		switch f.Key {
		case "type", "query", "queries", "url", "pattern", "sources":
			if !jsonx.IsNull(f.Value) {
				sent.Set(f.Key, f.Value)
			}
		default:
			s.Lose("field action." + jsonx.Clip(f.Key))
		}
	}
	status := "completed"
	if u.text("status") == "failed" {
		status = "failed"
	}
	o.Add("type", itemWebSearchCall, "status", status, "action", sent.Value())
	return true
}

// mcpCall writes the call of an MCP server's tool, which its id identifies.
func (s *sender) mcpCall(u *unit, o *jsonx.Object) bool {
	call, result := u.parts[0], u.parts[1]
	id, label := u.item.Get("id"), u.item.Get("server_label")
	if jsonx.KindOf(id) != '"' || jsonx.KindOf(label) != '"' || string(id) == `""` {
		return false
	}
	o.Add("type", itemMCPCall, "id", id, "server_label", label, "name", call.ToolName, "arguments", call.Arguments)
	if result.X.Field == "output" {
		o.SetText("output", result.Content())
	}
	if e := u.item.Get("error"); !jsonx.IsNull(e) {
		o.Set("error", e)
	}
	if request := u.item.String("approval_request_id"); s.requested[request] {
		o.SetText("approval_request_id", request)
	}
	return true
}

// result writes an output, with the parts that belong to it, in the form that its call was
// written in.
func (s *sender) result(parts []wire.Part) {
	u := unit{item: parts[0].X.Item}
	for i := range parts {
		u.parts = append(u.parts, &parts[i])
	}
	p := u.parts[0]
	call := s.answer(p)
	s.loseItem(u.item, "output", "name", "tools", "execution", "max_output_length", "acknowledged_safety_checks",
		"success")
	switch call.Kind {
	case itemShellCall:
		s.shellOutput(&u, call.SentID)
	case itemApplyPatchCall:
		status := "completed"
		if p.Failed() {
			status = "failed"
		}
		s.Write("type", itemApplyPatchOutput, "call_id", call.SentID, "status", status, "output", jsonx.Maybe(p.Content()))
	case itemToolSearchCall:
		tools := u.field("tools")
		if jsonx.KindOf(tools) != '[' {
			tools = jsontext.Value("[]")
		}
		s.Write("type", itemToolSearchOutput, "call_id", call.SentID, "status", "completed", "tools", tools, "execution",
			u.execution())
	default: // a local shell's is a function's too, as Codex sends it
		kind := itemFunctionOutput
		if call.Kind == itemCustomCall {
			kind = itemCustomOutput
		}
		s.Write("type", kind, "call_id", call.SentID, "output", wire.ContentOf(s.elements(u.parts), textPrefix))
	}
}

// elements writes parts as the elements of an output.
func (s *sender) elements(parts []*wire.Part) []jsontext.Value {
	var elements []jsontext.Value
	for _, p := range parts {
		s.loseElement(p)
		switch {
		case p.Kind == session.PartToolResult || p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case p.Kind == session.PartData && p.X.Field != "": // a field of the item that is too large to stand in it
		default:
			if e := s.medium(p); e != nil {
				elements = append(elements, e)
			}
		}
	}
	return elements
}

// shellOutput writes what a shell gave: as it came, unless a context shortened it.
func (s *sender) shellOutput(u *unit, id string) {
	text := u.parts[0].Content()
	if raw := u.field("output"); isShellOutput(raw) && shellText(raw) == text {
		most := u.item.Get("max_output_length")
		if jsonx.KindOf(most) != 0 {
			most = nil
		}
		s.Write("type", itemShellOutput, "call_id", id, "output", raw, "max_output_length", most)
		return
	}
	code := jsontext.Value("0")
	if failed := u.parts[0].IsError; failed != nil && *failed {
		code = jsontext.Value("1")
	}
	one := jsonx.Encode("stdout", text, "stderr", "", "outcome", jsonx.Encode("type", "exit", "exit_code", code))
	s.Write("type", itemShellOutput, "call_id", id, "output", []jsontext.Value{one})
}

// isShellOutput reports whether each command has a stdout, a stderr and an outcome, and nothing else.
func isShellOutput(raw []byte) bool {
	commands, err := jsonx.ParseArray("output", raw)
	return err == nil && len(commands) > 0 && !slices.ContainsFunc(commands, func(c jsontext.Value) bool {
		o, err := jsonx.ParseObject("output", c)
		return err != nil || len(o) != 3 || jsonx.KindOf(o.Get("stdout")) != '"' || jsonx.KindOf(o.Get("stderr")) != '"' ||
			jsonx.KindOf(o.Get("outcome")) != '{'
	})
}

// answer returns the call that a result answers: the newest open one of its id. One that came
// without an id answers the first open call of its name that has none either, else the first open one.
func (s *sender) answer(p *wire.Part) wire.OpenCall {
	at := -1
	for i, c := range s.Open {
		if c.ID == p.CallID && (p.CallID != "" || at < 0 && c.Name == p.ToolName) {
			at = i
		}
	}
	if p.CallID == "" && at < 0 && len(s.Open) > 0 {
		at = 0
	}
	if at < 0 {
		return wire.OpenCall{ID: p.CallID, SentID: shortID(p.CallID), Kind: itemFunctionCall}
	}
	call := s.Open[at]
	s.Open = slices.Delete(s.Open, at, at+1)
	return call
}
