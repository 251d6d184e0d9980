package responses

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Limits of the API, which answers 400 beyond them.
const (
	maxName   = 128 // characters of a tool's name
	maxCallID = 64  // bytes of a call's id
)

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
	var request wire.Object
	request.SetTexts("instructions", in.System)
	request.Set("input", wire.Array(s.taken()))
	return wire.Sent{Request: session.JSON(request.JSON()), Losses: s.Losses()}, nil
}

// sender writes items one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, reasoning that waits for what it led to.
type sender struct {
	wire.Lossy
	model     string
	out       []json.RawMessage
	open      []openCall
	used      map[string]bool // ids of calls as they are sent
	again     map[string]int  // how often an id came again
	calls     int             // seen so far, to name those that came without an id
	reasoning []waiting
	answered  map[string]bool // ids of requests for an approval that is given or refused later
	requested map[string]bool // those that were written
}

// openCall is a call that has no result yet, and the type of its item.
type openCall = wire.OpenCall[string]

// waiting is an item of reasoning, and the message that it is of.
type waiting struct {
	item json.RawMessage
	of   *session.Message
}

func newSender(model string) *sender {
	return &sender{model: model, used: map[string]bool{}, again: map[string]int{}, answered: map[string]bool{}, requested: map[string]bool{}}
}

// approvals notes which requests of MCP servers get an answer.
func (s *sender) approvals(of *session.Message) error {
	if of.Dialect != Name || of.Role != session.User {
		return nil
	}
	m, err := wire.Open(of)
	if err != nil {
		return err
	}
	for _, p := range m.Parts {
		if p.Kind == session.PartData && p.X.Type == itemMCPResponse && p.X.Item != nil {
			id, _ := wire.Text(p.X.Item.Get("approval_request_id"))
			s.answered[id] = true
		}
	}
	return nil
}

// taken returns what was written since the last time.
func (s *sender) taken() []json.RawMessage {
	out := s.out
	s.out = nil
	return out
}

// write writes an item that the model made, behind the reasoning that led to it.
func (s *sender) write(o *wire.Object) {
	for _, r := range s.reasoning {
		s.out = append(s.out, r.item)
	}
	s.reasoning = nil
	s.out = append(s.out, o.JSON())
}

// dangling leaves out reasoning that led to nothing which is sent.
func (s *sender) dangling() {
	for _, r := range s.reasoning {
		s.Lose(r.of, "reasoning without what it led to")
	}
	s.reasoning = nil
}

func (s *sender) message(of *session.Message) error {
	m, err := wire.OpenFor(Name, of)
	if err != nil {
		return err
	}
	role := wire.RoleOf(of)
	if role == session.Assistant && m.Kind == session.KindMessage {
		for _, u := range unitsOf(&m) {
			s.unit(&m, &u)
		}
		return nil
	}
	s.dangling()
	switch {
	case m.Kind == session.KindUnknown && m.Dialect == Name && len(m.Parts) > 0:
		if kind := m.Parts[0].X.Type; kind == itemReference {
			s.Lose(of, "an item_reference to what only the provider stores")
		} else {
			s.Lose(of, "unknown item type "+wire.Clip(kind))
		}
	case !wire.IsTalk(of):
		s.Lose(of, "a "+string(m.Kind)+" is no message")
	case role == session.System, role == session.User:
		s.user(&m, string(role))
	case role == session.Tool:
		for parts := range wire.Groups(m.Parts) {
			s.result(&m, parts)
		}
	default:
		s.Lose(of, "a message without a role")
	}
	return nil
}

// user writes a message of the user's or the system's role.
func (s *sender) user(m *wire.Message, role string) {
	var elements []jsontext.Value
	approvals := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.X.Item != nil {
			if p.X.Item.Text("role") == roleDeveloper {
				role = roleDeveloper
			}
			s.loseItem(m, p.X.Item, "role", "content", "name", "approval_request_id", "approve", "reason")
		}
		s.loseElement(m, p)
		switch {
		case p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case p.X.Type == itemMCPResponse && p.X.Item != nil:
			approvals++
			s.approval(m, p.X.Item)
		case role != "user":
			s.LosePart(&m.Message, &p.Part)
		default:
			if e := s.medium(m, p); e != nil {
				elements = append(elements, e)
			}
		}
	}
	if len(elements) == 0 && (role != "user" || approvals > 0) {
		return
	}
	var o wire.Object
	o.SetText("type", itemMessage)
	o.SetText("role", role)
	o.Set("content", wire.ContentOf(elements, textPrefix))
	s.out = append(s.out, o.JSON())
}

// loseItem names the fields of an item that are not sent, but for those that a request never
// has: the provider's or a program's own bookkeeping.
func (s *sender) loseItem(m *wire.Message, o *wire.Object, sent ...string) {
	if o != nil {
		s.LoseFields(&m.Message, o, "", append(sent, "type", "id", "status", "call_id", "object", "internal_chat_message_metadata_passthrough", "metadata", "created_by")...)
	}
}

// loseElement names the fields of an element that are not sent: citations, above all.
func (s *sender) loseElement(m *wire.Message, p *wire.Part) {
	s.LoseFields(&m.Message, &p.X.Rest, "", "type", "text", "refusal", "image_url", "file_id", "file_url", "file_data", "filename", "detail", typeAudio, "audio_url", "logprobs")
}

const textPrefix = `{"type":"input_text","text":`

func appendText(elements []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(elements, textPrefix, text)
}

// medium writes an image or a file as an element of a content or an output. It returns nil, with
// a loss, for what the API does not take. Of a sound, which it does not take, the words stand in.
// Types as in OpenAI's guide to vision.
func (s *sender) medium(m *wire.Message, p *wire.Part) jsontext.Value {
	var o wire.Object
	x := &p.X
	uploaded := x.FileID != "" && (m.Dialect == Name || m.Dialect == "openai.chat") // an id of another store names nothing there
	switch p.Kind {
	case session.PartImage:
		o.SetText("type", typeImage)
		if !slices.Contains([]string{"low", "high", "original"}, x.Detail) {
			x.Detail = "auto"
		}
		o.SetText("detail", x.Detail)
		switch {
		case p.Blob != nil && wire.IsImage(x.MediaType):
			o.SetText("image_url", wire.BlobURL(p))
			return o.Value()
		case p.Blob != nil:
		case wire.IsWeb(x.URL):
			o.SetText("image_url", x.URL)
			return o.Value()
		case uploaded:
			o.SetText("file_id", x.FileID)
			return o.Value()
		}
	case session.PartFile:
		o.SetText("type", typeFile)
		switch {
		case p.Blob != nil && strings.Contains(x.MediaType, "/"):
			if x.Name == "" {
				x.Name = "file"
			}
			o.SetTexts("filename", x.Name, "file_data", wire.BlobURL(p))
			return o.Value()
		case wire.IsWeb(x.URL):
			o.SetText("file_url", x.URL)
			return o.Value()
		case uploaded:
			o.SetText("file_id", x.FileID)
			return o.Value()
		}
	default:
		if elements := appendText(nil, p.Content()); p.Kind == session.PartAudio && elements != nil {
			return elements[0]
		}
		if p.Kind != session.PartAudio {
			s.LosePart(&m.Message, &p.Part)
			return nil
		}
	}
	s.Lose(&m.Message, strings.TrimSuffix(string(p.Kind)+" "+x.MediaType, " ")+": its bytes or its type are not what the API takes")
	return nil
}

// name returns a tool's name as the API takes it.
func (s *sender) name(m *wire.Message, name string) string {
	legal := callid.LegalName(name, maxName)
	s.LoseName(&m.Message, "tool's name", name, legal)
	return legal
}

// callID returns the id that a call is sent with: its own, if that is short enough and no call
// before had it. It depends on nothing but the calls so far, so that a context that grows keeps
// its beginning.
func (s *sender) callID(id string) string {
	s.calls++
	if id == "" {
		id = "call_made_" + strconv.Itoa(s.calls)
	}
	short := shortID(id)
	sent := short
	for s.used[sent] {
		s.again[short]++
		sent = clipped(short + "_" + strconv.Itoa(s.again[short]+1))
	}
	s.used[sent] = true
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
func (s *sender) unit(m *wire.Message, u *unit) {
	p := u.parts[0]
	switch {
	case p.Kind == session.PartToolCall:
		s.call(m, u)
	case p.Kind == session.PartReasoning || u.kind == itemReasoning:
		s.thought(m, u)
	case u.item != nil && p.X.Type != "" && u.kind != itemMessage:
		s.special(m, u)
	case says(p) || u.kind == itemMessage:
		s.reply(m, u)
	default:
		s.LosePart(&m.Message, &p.Part)
	}
}

// reply writes what the model said.
func (s *sender) reply(m *wire.Message, u *unit) {
	var elements []jsontext.Value
	said := ""
	for _, p := range u.parts {
		if s.loseElement(m, p); p.Content() == "" && says(p) {
			continue
		}
		switch p.Kind {
		case session.PartText, session.PartAudio:
			said = p.Content()
			elements = wire.AppendTextElement(elements, `{"type":"output_text","text":`, said)
		case session.PartRefusal:
			elements = wire.AppendTextElement(elements, `{"type":"refusal","refusal":`, p.Content())
		default:
			s.LosePart(&m.Message, &p.Part)
		}
	}
	s.loseItem(m, u.item, "role", "content", "phase")
	if len(elements) == 0 {
		return
	}
	var o wire.Object
	o.SetText("type", itemMessage)
	o.SetText("role", "assistant")
	if len(elements) == 1 && said != "" {
		o.SetText("content", said)
	} else {
		o.Set("content", wire.Array(elements))
	}
	if phase := u.text("phase"); phase == "commentary" || phase == "final_answer" {
		o.SetText("phase", phase)
	}
	s.write(&o)
}

// thought keeps reasoning until what it led to is written. Only its maker can read what it
// encrypted, and without that it is nothing to a provider that stored nothing.
func (s *sender) thought(m *wire.Message, u *unit) {
	if u.item == nil {
		s.signed(m, u.parts[0])
		return
	}
	encrypted := u.field("encrypted_content")
	if wire.KindOf(encrypted) != '"' || string(encrypted) == `""` {
		s.Lose(&m.Message, "reasoning without its encrypted content")
		return
	}
	// A provider that only speaks this form encrypts for itself.
	known := m.Provider != "" && (m.Model != s.model || s.model == "")
	if known && !strings.HasPrefix(m.Provider, "openai") && !strings.HasPrefix(m.Provider, "azure") {
		s.Lose(&m.Message, "reasoning that "+m.Provider+" encrypted")
		return
	}
	var summary []jsontext.Value
	for _, p := range u.parts {
		if p.X.Of == "summary" && p.Kind == session.PartReasoning {
			summary = append(summary, summaryOf(p.Content()))
		}
	}
	s.wait(m, summary, encrypted)
}

func summaryOf(text string) jsontext.Value {
	var o wire.Object
	o.SetText("type", typeSummary)
	o.SetText("text", text)
	return o.Value()
}

// signed keeps reasoning that came in another form, if that form kept the whole item as its
// signature, as pi does for the model that is asked now. Any other reasoning is left out.
func (s *sender) signed(m *wire.Message, p *wire.Part) {
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
				summary = append(summary, summaryOf(e.Text))
			}
			s.wait(m, summary, wire.Quote(item.Encrypted))
			return
		}
	}
	if p.Content() != "" || len(p.Extra) > 0 {
		s.Lose(&m.Message, "reasoning")
	}
}

// wait keeps an item of reasoning until what it led to is written.
func (s *sender) wait(m *wire.Message, summary []jsontext.Value, encrypted []byte) {
	var o wire.Object
	o.SetText("type", itemReasoning)
	o.Set("summary", wire.Array(summary))
	o.Set("encrypted_content", encrypted)
	s.reasoning = append(s.reasoning, waiting{item: o.JSON(), of: &m.Message})
}

// special writes items that are no talk and no call.
func (s *sender) special(m *wire.Message, u *unit) {
	var o wire.Object
	var fields []string
	switch u.kind {
	case itemCompaction:
		fields = []string{"encrypted_content"}
	case itemMCPTools:
		fields = []string{"id", "server_label", "tools"}
	case itemMCPRequest:
		id, _ := wire.Text(u.item.Get("id"))
		if !s.answered[id] || s.requested[id] {
			s.Lose(&m.Message, "a request for an approval that has no answer")
			return
		}
		s.requested[id] = true
		fields = []string{"id", "server_label", "name", "arguments"}
	default:
		s.Lose(&m.Message, "unknown item type "+wire.Clip(u.kind))
		return
	}
	o.SetText("type", u.kind)
	for _, f := range fields {
		raw := u.field(f)
		if kind := wire.KindOf(raw); kind != '"' && f != "tools" || f == "tools" && kind != '[' {
			s.Lose(&m.Message, u.kind+" without "+f)
			return
		}
		o.Set(f, raw)
	}
	if e := u.item.Get("error"); u.kind == itemMCPTools && wire.KindOf(e) == '"' {
		o.Set("error", e)
	}
	s.write(&o)
}

// text returns a field of the unit's item that is a string.
func (u *unit) text(field string) string {
	if u.item == nil {
		return ""
	}
	return u.item.Text(field)
}

// field returns a field of the unit's item, also where it is a part of its own; nil for none.
func (u *unit) field(name string) []byte {
	if u.item == nil {
		return nil
	}
	if raw := u.item.Get(name); raw != nil {
		return raw
	}
	for _, p := range u.parts {
		if isLarge(p) && p.X.Field == name {
			raw, _ := p.JSON(wire.Object{})
			return raw
		}
	}
	return nil
}

// approval writes a person's answer to the request of an MCP server.
func (s *sender) approval(m *wire.Message, item *wire.Object) {
	var o wire.Object
	o.SetText("type", itemMCPResponse)
	id, _ := wire.Text(item.Get("approval_request_id"))
	approve := item.Get("approve")
	if !s.requested[id] || wire.KindOf(approve) != 't' && wire.KindOf(approve) != 'f' {
		s.Lose(&m.Message, "an approval of a request that is not here")
		return
	}
	o.SetText("approval_request_id", id)
	o.Set("approve", approve)
	if reason := item.Get("reason"); wire.KindOf(reason) == '"' {
		o.Set("reason", reason)
	}
	s.out = append(s.out, o.JSON())
}

// call writes a call. One that the provider ran has its result with it.
func (s *sender) call(m *wire.Message, u *unit) {
	p := u.parts[0]
	if slices.ContainsFunc(u.parts, func(q *wire.Part) bool { return q.Kind == session.PartToolResult }) {
		s.ran(m, u)
		return
	}
	var o wire.Object
	switch {
	case u.kind == itemShellCall && isObject(p.Arguments, "commands"),
		u.kind == itemApplyPatchCall && isObject(p.Arguments, "type", "path"),
		u.kind == itemLocalShellCall && isObject(p.Arguments, "type", "command"),
		u.kind == itemToolSearchCall && isObject(p.Arguments):
		s.builtIn(u, &o)
	case p.X.Type == typeCustom || m.Dialect != Name && isCustom(&p.Part):
		o.SetText("type", itemCustomCall)
		o.SetText("call_id", s.opened(p, itemCustomCall))
		o.SetText("name", s.name(m, p.ToolName))
		o.SetText("input", p.Arguments)
	default:
		if u.kind != "" && u.kind != itemFunctionCall {
			s.Lose(&m.Message, u.kind+" is sent as a function's call")
		}
		s.function(m, p, p.Arguments, &o)
		if u.item != nil && wire.KindOf(u.item.Get("namespace")) == '"' {
			o.Set("namespace", u.item.Get("namespace"))
		}
	}
	s.loseItem(m, u.item, "name", "namespace", "action", "operation", "arguments", "input", "execution", "environment", "pending_safety_checks")
	s.write(&o)
}

// function writes the call of a function and opens it.
func (s *sender) function(m *wire.Message, p *wire.Part, arguments string, o *wire.Object) {
	o.SetText("type", itemFunctionCall)
	o.SetText("call_id", s.opened(p, itemFunctionCall))
	o.SetText("name", s.name(m, p.ToolName))
	o.SetText("arguments", arguments)
}

// opened returns the id that a call is sent with, and notes that it waits for its result.
func (s *sender) opened(p *wire.Part, kind string) string {
	sent := s.callID(p.CallID)
	s.open = append(s.open, openCall{ID: p.CallID, Name: p.ToolName, Sent: sent, More: kind})
	return sent
}

// builtIn writes the call of a tool that the API knows and the caller runs.
func (s *sender) builtIn(u *unit, o *wire.Object) {
	p := u.parts[0]
	spec, _ := specOf(u.kind)
	o.SetText("type", u.kind)
	o.SetText("call_id", s.opened(p, u.kind))
	o.Set(spec.arguments, []byte(p.Arguments))
	o.SetText("status", "completed")
	if status := u.text("status"); status == "incomplete" || status == "in_progress" && u.kind != itemApplyPatchCall {
		o.SetText("status", status)
	}
	if u.kind == itemToolSearchCall {
		u.setExecution(o)
	}
}

// setExecution copies who runs a search for tools.
func (u *unit) setExecution(o *wire.Object) {
	if execution := u.text("execution"); execution == "server" || execution == "client" {
		o.SetText("execution", execution)
	}
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
	o, err := wire.ParseObject("", []byte(text))
	return err == nil && !slices.ContainsFunc(fields, func(f string) bool { return wire.IsNull(o.Get(f)) })
}

// ran writes a call that the provider ran, with its result: in its own form where the API takes
// that without an id of its storage, else as a function's call and output.
func (s *sender) ran(m *wire.Message, u *unit) {
	var o wire.Object
	if u.kind == itemWebSearchCall && s.webSearch(m, u, &o) || u.kind == itemMCPCall && s.mcpCall(u, &o) {
		s.write(&o)
		return
	}
	call := u.parts[0]
	elements := s.elements(m, u.parts[1:])
	what := call.ToolName
	if u.kind != "" {
		what = u.kind
	}
	if len(elements) == 0 {
		s.Lose(&m.Message, wire.Clip(what)+", which the provider ran: it says nothing that can be sent")
		return
	}
	s.Lose(&m.Message, wire.Clip(what)+", which the provider ran, is sent as a function's call and output")
	arguments := call.Arguments
	if spec, _ := specOf(u.kind); u.kind != "" && u.kind != itemMCPCall && arguments != "" {
		var wrapped wire.Object
		if spec.text {
			wrapped.SetText(spec.arguments, arguments)
		} else {
			wrapped.Set(spec.arguments, []byte(arguments))
		}
		arguments = string(wrapped.JSON())
	}
	s.function(m, call, arguments, &o)
	s.write(&o)
	open := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.functionOutput(itemFunctionOutput, open.Sent, elements)
}

// webSearch writes a search without its id, as Codex does.
func (s *sender) webSearch(m *wire.Message, u *unit, o *wire.Object) bool {
	action, err := wire.ParseObject("action", []byte(u.parts[0].Arguments))
	if err != nil || !slices.Contains([]string{"search", "open_page", "find_in_page"}, action.Text("type")) {
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
			s.Lose(&m.Message, "field action."+wire.Clip(f.Key))
		}
	}
	o.SetText("type", itemWebSearchCall)
	o.SetText("status", "completed")
	if status := u.text("status"); status == "failed" {
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
	if result.X.Field == "output" {
		o.SetText("output", result.Content())
	}
	if e := u.item.Get("error"); !wire.IsNull(e) {
		o.Set("error", e)
	}
	if request, _ := wire.Text(u.item.Get("approval_request_id")); s.requested[request] {
		o.SetText("approval_request_id", request)
	}
	return true
}

// result writes an output, with the parts that belong to it, in the form that its call was
// written in.
func (s *sender) result(m *wire.Message, parts []wire.Part) {
	u := unit{item: parts[0].X.Item}
	for i := range parts {
		u.parts = append(u.parts, &parts[i])
		if parts[0].Kind != session.PartToolResult {
			s.LosePart(&m.Message, &parts[i].Part)
		}
	}
	p := u.parts[0]
	if p.Kind != session.PartToolResult {
		return
	}
	call := s.close(&p.Part)
	s.loseItem(m, u.item, "output", "name", "tools", "execution", "max_output_length", "acknowledged_safety_checks", "success")
	var o wire.Object
	switch call.More {
	case itemShellCall:
		s.shellOutput(&u, call.Sent, &o)
	case itemApplyPatchCall:
		status := "completed"
		if p.IsError != nil && *p.IsError {
			status = "failed"
		}
		o.SetTexts("type", itemApplyPatchOutput, "call_id", call.Sent, "status", status, "output", p.Content())
	case itemToolSearchCall:
		o.SetTexts("type", itemToolSearchOutput, "call_id", call.Sent, "status", "completed")
		o.Set("tools", jsontext.Value("[]"))
		if tools := u.field("tools"); wire.KindOf(tools) == '[' {
			o.Set("tools", tools)
		}
		u.setExecution(&o)
	case itemCustomCall:
		s.functionOutput(itemCustomOutput, call.Sent, s.elements(m, u.parts))
		return
	default: // a local shell's too, as Codex sends it
		s.functionOutput(itemFunctionOutput, call.Sent, s.elements(m, u.parts))
		return
	}
	s.out = append(s.out, o.JSON())
}

// elements writes parts as the elements of an output.
func (s *sender) elements(m *wire.Message, parts []*wire.Part) []jsontext.Value {
	var elements []jsontext.Value
	for _, p := range parts {
		s.loseElement(m, p)
		switch {
		case p.Kind == session.PartToolResult || p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case p.Kind == session.PartData && p.X.Field != "": // a field of the item that is too large to stand in it
		default:
			if e := s.medium(m, p); e != nil {
				elements = append(elements, e)
			}
		}
	}
	return elements
}

func (s *sender) functionOutput(kind, id string, elements []jsontext.Value) {
	var o wire.Object
	o.SetText("type", kind)
	o.SetText("call_id", id)
	o.Set("output", wire.ContentOf(elements, textPrefix))
	s.out = append(s.out, o.JSON())
}

// shellOutput writes what a shell gave: as it came, unless a context shortened it.
func (s *sender) shellOutput(u *unit, id string, o *wire.Object) {
	o.SetText("type", itemShellOutput)
	o.SetText("call_id", id)
	text := u.parts[0].Content()
	if raw := u.field("output"); isShellOutput(raw) && shellText(raw) == text {
		o.Set("output", raw)
		if most := u.item.Get("max_output_length"); wire.KindOf(most) == 0 {
			o.Set("max_output_length", most)
		}
		return
	}
	var one, outcome wire.Object
	one.SetText("stdout", text)
	one.SetText("stderr", "")
	outcome.SetText("type", "exit")
	code := "0"
	if failed := u.parts[0].IsError; failed != nil && *failed {
		code = "1"
	}
	outcome.Set("exit_code", []byte(code))
	one.Set("outcome", outcome.JSON())
	o.Set("output", wire.Array([]json.RawMessage{one.JSON()}))
}

// isShellOutput reports whether each command has a stdout, a stderr and an outcome, and nothing else.
func isShellOutput(raw []byte) bool {
	commands, err := wire.ParseArray("output", raw)
	return err == nil && len(commands) > 0 && !slices.ContainsFunc(commands, func(c jsontext.Value) bool {
		o, err := wire.ParseObject("output", c)
		return err != nil || o.Len() != 3 || wire.KindOf(o.Get("stdout")) != '"' || wire.KindOf(o.Get("stderr")) != '"' || wire.KindOf(o.Get("outcome")) != '{'
	})
}

// close returns the call that a result answers: the newest open one of its id. One that came
// without an id answers the first open call of its name that has none either, else the first open one.
func (s *sender) close(p *session.Part) openCall {
	at := -1
	for i, c := range s.open {
		if c.ID == p.CallID && (p.CallID != "" || at < 0 && c.Name == p.ToolName) {
			at = i
		}
	}
	if p.CallID == "" && at < 0 && len(s.open) > 0 {
		at = 0
	}
	if at < 0 {
		return openCall{ID: p.CallID, Sent: shortID(p.CallID), More: itemFunctionCall}
	}
	call := s.open[at]
	s.open = slices.Delete(s.open, at, at+1)
	return call
}
