package anthropic

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

// Send makes {"system": …, "messages": […]} of a context, with the fields that the API takes in
// a request and no other. System text before the first turn is the request's system; later it
// is quoted in the user's role, so that what was sent before stays a prefix. Neighbours of one
// role are one entry, results stand first in the entry behind their calls. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := newSender(in.Model, false)
	if in.System != "" {
		s.system = append(s.system, in.System)
	}
	for i := range in.Messages {
		s.at = i
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	s.finish()
	marked := s.mark(in.Borders)
	var request wire.Object
	if text := strings.Join(s.system, "\n\n"); marked && strings.TrimSpace(text) != "" {
		b := textBlock(text)
		request.Set("system", wire.Array([]jsontext.Value{withMark(b.raw)}))
	} else {
		request.SetTexts("system", text)
	}
	request.Set("messages", wire.Array(s.written()))
	return wire.Sent{Request: session.JSON(request.JSON()), Losses: s.Losses(), ThinkingOff: s.thinkingOff()}, nil
}

// Roles of the wire.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// noContent stands in where the API demands a content and there is none.
const noContent = "(no content)"

// maxName is the length of a tool's name, which is ^[a-zA-Z0-9_-]{1,64}$ on the models that are
// strictest, 128 on others.
const maxName = 64

// sent is a block as it is sent, and what decides where it may stand.
type sent struct {
	kind   string
	id     string // of a call, or of the call that a result answers
	caller string // of a call that the provider's own program made: that program's id
	from   *session.Message
	at     int    // the place of from in the context
	text   string // of a text
	marked bool   // it carries a cache mark
	raw    jsontext.Value
}

func (b *sent) thinks() bool { return b.kind == typeThinking || b.kind == typeRedacted }

// entry is an entry of messages.
type entry struct {
	role    string
	blocks  []sent
	foreign bool // a call in it was not made by the maker of the model, or lost its reasoning
}

func (e *entry) json() json.RawMessage {
	raw := make([]jsontext.Value, len(e.blocks))
	for i := range e.blocks {
		raw[i] = e.blocks[i].raw
	}
	var o wire.Object
	o.SetText("role", e.role)
	o.Set("content", wire.Array(raw))
	return o.JSON()
}

// sender writes messages one after the other.
type sender struct {
	wire.Lossy
	model   string
	export  bool // for an export: nothing is left out because its other half is not there
	system  []string
	entries []entry
	open    []openCall // calls of the last reply that wait for their results
	ids     *callid.Names
	calls   int  // seen so far, to name those that came without an id
	server  bool // some tool of the provider's own was used

	m     *wire.Message // that is being written
	at    int           // its place in the context
	maker bool          // it is of this form, and from the maker of the model that it is sent to
}

// openCall remembers the message that an open call stands in.
type openCall = wire.OpenCall[*session.Message]

func newSender(model string, export bool) *sender {
	return &sender{model: model, export: export, ids: callid.New(callid.FixInvalid)}
}

// written returns the entries.
func (s *sender) written() []json.RawMessage {
	out := make([]json.RawMessage, len(s.entries))
	for i := range s.entries {
		out[i] = s.entries[i].json()
	}
	return out
}

// taken returns what was written since the last time, as entries of an export.
func (s *sender) taken() []json.RawMessage {
	var out []json.RawMessage
	for _, text := range s.system {
		var o wire.Object
		o.SetText("role", "system")
		o.SetText("content", text)
		out = append(out, o.JSON())
	}
	out = append(out, s.written()...)
	s.system, s.entries, s.open = nil, nil, nil
	return out
}

func (s *sender) lose(what string)      { s.Lose(&s.m.Message, what) }
func (s *sender) losePart(p *wire.Part) { s.LosePart(&s.m.Message, &p.Part) }

// loseRest names the unknown fields of a block.
func (s *sender) loseRest(kind string, p *wire.Part, known ...string) {
	for _, f := range p.X.Rest.Members() {
		if f.Key != "cache_control" && !wire.IsNull(f.Value) && !slices.Contains(known, f.Key) {
			s.lose("field " + wire.Clip(f.Key) + " of a " + kind)
		}
	}
}

func (s *sender) message(of *session.Message) error {
	m, err := wire.OpenFor(Name, of)
	if err != nil {
		return err
	}
	s.m, s.maker = &m, of.Dialect == Name && madeBy(of, s.model)
	for _, f := range m.X.Rest.Members() {
		known := []string{"role", "content", "type", "model", "stop_sequence", "stop_details", "container", "context_management", "diagnostics", "input_transformations"}
		if !wire.IsNull(f.Value) && !slices.Contains(known, f.Key) {
			s.lose("field " + wire.Clip(f.Key))
		}
	}
	if m.Author != "" {
		s.lose("the author's name")
	}
	if !wire.IsTalk(of) {
		s.lose("a " + string(m.Kind) + " is no message")
		return nil
	}
	switch wire.RoleOf(of) {
	case session.System:
		s.instructions()
	case session.User:
		s.user()
	case session.Assistant:
		s.assistant()
	case session.Tool:
		for parts := range wire.Groups(m.Parts) {
			s.result(parts)
		}
	default:
		s.lose("a message without a role")
	}
	return nil
}

// madeBy reports whether what is signed in a message can be sent to a model: its maker reads its
// own signatures on every platform, and other makers speak this form with their own.
func madeBy(m *session.Message, model string) bool {
	if m.Model != "" && m.Model == model {
		return true
	}
	claude := func(name string) bool { return strings.Contains(strings.ToLower(name), "claude") }
	if model != "" && m.Model != "" && claude(model) != claude(m.Model) {
		return false
	}
	provider := strings.ToLower(m.Provider)
	for _, platform := range []string{Name, "bedrock", "vertex", "foundry"} {
		if strings.Contains(provider, platform) {
			return true
		}
	}
	return provider == "" || claude(provider)
}

// put writes a block into the open entry of that role, or begins the next one.
func (s *sender) put(role string, b sent) {
	b.from, b.at = &s.m.Message, s.at
	s.server = s.server || b.caller != "" || isServerCall(b.kind) || isServerResult(b.kind)
	last := len(s.entries) - 1
	if last < 0 || s.entries[last].role != role {
		if role == roleAssistant {
			s.close()
		}
		s.entries = append(s.entries, entry{role: role})
		last++
	}
	e := &s.entries[last]
	at := len(e.blocks)
	if b.kind == typeToolResult { // in front of whatever else the user said
		for at = 0; at < len(e.blocks) && e.blocks[at].kind == typeToolResult; at++ {
			continue
		}
	}
	e.blocks = slices.Insert(e.blocks, at, b)
}

// putText writes a text, if there is one: the API rejects an empty one and one of spaces.
func (s *sender) putText(role, text string) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	s.put(role, textBlock(text))
	return true
}

func textBlock(text string) sent {
	var o wire.Object
	o.SetText("type", typeText)
	o.SetText("text", text)
	return sent{kind: typeText, text: text, raw: o.Value()}
}

// instructions writes a system message.
func (s *sender) instructions() {
	var texts []string
	for i := range s.m.Parts {
		p := &s.m.Parts[i]
		switch text := p.Content(); {
		case p.Kind != session.PartText && p.Kind != session.PartRefusal:
			s.losePart(p)
		case text != "":
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n\n")
	switch {
	case strings.TrimSpace(text) == "":
	case len(s.entries) == 0:
		s.system = append(s.system, text)
	default:
		s.lose("a system message in the middle is sent in the user's role")
		s.putText(roleUser, "<system>\n"+text+"\n</system>")
	}
}

// user writes what a person or a program said. One of whom nothing can be sent still has
// their turn.
func (s *sender) user() {
	said := false
	for i := range s.m.Parts {
		p := &s.m.Parts[i]
		switch p.Kind {
		case session.PartRefusal:
			said = s.putText(roleUser, p.Content()) || said
		case session.PartText, session.PartImage, session.PartFile, session.PartAudio:
			if b := s.content(p); b.raw != nil {
				s.put(roleUser, b)
				said = true
			}
		default:
			s.losePart(p)
		}
	}
	if last := len(s.entries) - 1; !said && (last < 0 || s.entries[last].role != roleUser) {
		s.putText(roleUser, noContent)
	}
}

// assistant writes a reply, block by block. In one of this form each block keeps its place. In
// any other the calls go last; and a call that its provider ran itself, whose result stands in
// the reply, becomes a call and a result like any other, in front of those.
func (s *sender) assistant() {
	var waiting []*wire.Part
	parts := s.m.Parts
	for i := 0; i < len(parts); i++ {
		p := &parts[i]
		switch {
		case p.Kind == session.PartToolCall && s.maker && p.X.Type == "":
			s.call(p)
		case p.Kind == session.PartToolCall && s.maker:
			s.loseRest(p.X.Type, p, "input", "caller", "server_name")
			s.serverCall(p.X.Type, p.CallID, p.ToolName, p.Arguments, &p.X.Rest)
		case p.Kind == session.PartToolCall:
			at := slices.IndexFunc(parts, func(r wire.Part) bool { return r.Kind == session.PartToolResult && r.CallID == p.CallID })
			if at < 0 {
				waiting = append(waiting, p)
				continue
			}
			s.call(p)
			s.result(parts[at:groupEnd(parts, at)])
		case p.Kind == session.PartToolResult && s.maker:
			s.serverResult(p)
		case p.Kind == session.PartToolResult:
			if !slices.ContainsFunc(parts, func(c wire.Part) bool { return c.Kind == session.PartToolCall && c.CallID == p.CallID }) {
				s.losePart(p)
			}
			i = groupEnd(parts, i) - 1
		default:
			s.reply(p)
		}
	}
	for _, p := range waiting {
		s.call(p)
	}
}

// reply writes what is neither a call nor a result.
func (s *sender) reply(p *wire.Part) {
	switch p.Kind {
	case session.PartText:
		if b := s.content(p); b.raw != nil {
			s.put(roleAssistant, b)
		}
	case session.PartRefusal:
		s.putText(roleAssistant, p.Content())
	case session.PartAudio:
		if !s.putText(roleAssistant, p.Content()) { // what was said stands in for how
			s.losePart(p)
		}
	case session.PartReasoning:
		s.reasoning(p)
	case session.PartData: // a call that the provider runs and whose result is still to come
		if raw, err := p.JSON(wire.Object{}); err == nil && s.maker && isServerCall(p.X.Type) {
			if o, err := wire.ParseObject("", raw); err == nil {
				id, _ := wire.Text(o.Get("id"))
				name, _ := wire.Text(o.Get("name"))
				s.serverCall(p.X.Type, id, name, string(o.Get("input")), &o)
				return
			}
		}
		s.losePart(p)
	default:
		s.losePart(p)
	}
}

// reasoning writes thinking with its signature, unmodified, for its maker only. Imports from pi
// hold the same signature under a name of their own.
func (s *sender) reasoning(p *wire.Part) {
	kind, signature, data := "", p.X.Signature, p.X.Data
	switch {
	case s.maker && p.X.Type == "":
		kind = typeThinking
	case s.maker:
		kind = p.X.Type
	case s.m.Dialect != Name && s.m.Provider == Name && madeBy(&s.m.Message, s.model):
		if o, err := wire.ParseObject("extra", p.Extra); err == nil {
			kind, signature = typeThinking, o.Get("thinkingSignature")
			if string(o.Get("redacted")) == "true" {
				kind, data = typeRedacted, signature
			}
		}
	}
	var o wire.Object
	o.SetText("type", kind)
	if text, _ := wire.Text(signature); kind == typeThinking && text != "" && !p.X.Rest.Has("thinking") {
		o.SetText("thinking", p.Content())
		o.Set("signature", signature)
	} else if text, _ := wire.Text(data); kind == typeRedacted && text != "" {
		o.Set("data", data)
	} else {
		s.losePart(p)
		return
	}
	s.put(roleAssistant, sent{kind: kind, raw: o.Value()})
}

// call writes a call that waits for its result. Its id is one of its own, since the API rejects
// the same id twice in a request and some providers count anew in each reply.
func (s *sender) call(p *wire.Part) {
	name := p.ToolName
	if !callid.Valid(name) || len(name) > 2*maxName {
		name = callid.LegalName(name, maxName)
	}
	s.LoseName(&s.m.Message, "tool's name", p.ToolName, name)
	input, ok := inputOf(p.Arguments)
	if !ok {
		s.lose("arguments of " + strconv.Quote(wire.Clip(p.ToolName)) + " are no JSON object, sent inside one")
	}
	s.calls++
	id := p.CallID
	if id == "" {
		id = "toolu_made_" + strconv.Itoa(s.calls)
	}
	b := sent{kind: typeToolUse, id: s.ids.Call(id)}
	var o wire.Object
	o.SetText("type", typeToolUse)
	o.SetText("id", b.id)
	o.SetText("name", name)
	o.Set("input", input)
	if s.maker {
		s.loseRest(typeToolUse, p, "input", "caller", "id", "name")
		b.caller = setCaller(&o, &p.X.Rest)
	}
	b.raw = o.Value()
	s.put(roleAssistant, b)
	if !s.maker {
		s.entries[len(s.entries)-1].foreign = true
	}
	s.open = append(s.open, openCall{ID: p.CallID, Name: p.ToolName, Sent: b.id, More: &s.m.Message})
}

// inputOf returns arguments as the object that the API wants: as they came, if they are one.
// Others stand in an object, which is not ok; none is the empty object.
func inputOf(arguments string) (raw jsontext.Value, ok bool) {
	text := strings.TrimSpace(arguments)
	if text == "" || text == "null" {
		return jsontext.Value("{}"), true
	}
	if wire.IsObject(text) {
		return wire.Clean([]byte(text)), true
	}
	var o wire.Object
	o.SetText("input", arguments)
	return o.Value(), false
}

// result writes a result with the parts that belong to it.
func (s *sender) result(parts []wire.Part) {
	p := &parts[0]
	if p.Kind != session.PartToolResult {
		for i := range parts {
			s.losePart(&parts[i])
		}
		return
	}
	id := s.ids.Result(p.CallID)
	if call, ok := wire.CloseCall(&s.open, &p.Part); ok {
		id = call.Sent
	} else if !s.export || id == "" {
		s.lose("a result of " + strconv.Quote(wire.Clip(p.CallID)) + " answers no call of the reply before it")
		return
	}
	if s.m.Dialect == Name {
		s.loseRest(typeToolResult, p, "content", "is_error", "tool_use_id")
	}
	content := s.resultContent(parts)
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
		blocks := make([]jsontext.Value, len(content))
		for i := range content {
			blocks[i] = content[i].raw
		}
		o.Set("content", wire.Array(blocks))
	}
	if p.IsError != nil {
		o.Set("is_error", strconv.AppendBool(nil, failed))
	}
	s.put(roleUser, sent{kind: typeToolResult, id: id, raw: o.Value()})
}

// resultContent returns the blocks of a result: its text in its place among the parts that
// belong to it.
func (s *sender) resultContent(parts []wire.Part) []sent {
	var content []sent
	text := parts[0].Content()
	for i := 1; i <= len(parts); i++ {
		if i-1 == max(wire.TextPlace(&parts[0]), 0) || i == len(parts) {
			if strings.TrimSpace(text) != "" {
				content = append(content, textBlock(text))
			}
			text = ""
		}
		if i < len(parts) {
			if b := s.content(&parts[i]); b.raw != nil {
				content = append(content, b)
			}
		}
	}
	return content
}

// close takes calls back that never got a result, for which the API would reject all.
func (s *sender) close() {
	if s.export {
		s.open = nil
	}
	for _, c := range s.open {
		for i := range slices.Backward(s.entries) {
			e := &s.entries[i]
			if at := slices.IndexFunc(e.blocks, func(b sent) bool { return b.kind == typeToolUse && b.id == c.Sent }); at >= 0 {
				e.blocks = slices.Delete(e.blocks, at, at+1)
				break
			}
		}
		s.Lose(c.More, "call "+strconv.Quote(wire.Clip(c.ID))+" has no result behind it")
	}
	s.open = nil
}
