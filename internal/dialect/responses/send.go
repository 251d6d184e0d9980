package responses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
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
	items := s.taken()
	request := make([]byte, 0, wire.TextSize(in.System)+wire.ArraySize(items)+len(`{"instructions":,"input":}`))
	request = append(request, '{')
	if in.System != "" {
		request = append(wire.AppendText(append(request, `"instructions":`...), in.System), ',')
	}
	request = append(wire.AppendArray(append(request, `"input":`...), items), '}')
	return wire.Sent{Request: request, Losses: s.losses}, nil
}

// sender writes items one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, reasoning that waits for what it led to.
type sender struct {
	model     string
	out       []json.RawMessage
	losses    []string
	open      []openCall
	used      map[string]bool // ids of calls as they are sent
	again     map[string]int  // how often an id came again
	calls     int             // seen so far, to name those that came without an id
	reasoning []waiting
	answered  map[string]bool // ids of requests for an approval that is given or refused later
	requested map[string]bool // those that were written
}

// openCall is a call that has no result yet.
type openCall struct{ id, name, sent, kind string }

// waiting is an item of reasoning, and the message that it is of.
type waiting struct {
	item json.RawMessage
	of   *session.Message
}

func newSender(model string) *sender {
	return &sender{model: model, used: map[string]bool{}, again: map[string]int{}, answered: map[string]bool{}, requested: map[string]bool{}}
}

// approvals notes which requests of MCP servers get an answer.
func (s *sender) approvals(m *session.Message) error {
	if m.Dialect != Name || m.Role != session.User {
		return nil
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartData {
			continue
		}
		x, err := partExtraOf(p)
		if err != nil {
			return err
		}
		if x.Type == itemMCPResponse && x.Item != nil {
			id, _ := wire.TextOf(x.Item.Get("approval_request_id"))
			s.answered[id] = true
		}
	}
	return nil
}

// taken gives what was written since the last time.
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
		s.lose(r.of, "reasoning without what it led to")
	}
	s.reasoning = nil
}

func (s *sender) lose(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	s.losses = append(s.losses, what)
}

func (s *sender) message(m *session.Message) error {
	for i := range m.Parts {
		if err := wire.Loaded(&m.Parts[i]); err != nil {
			return err
		}
	}
	if m.Role == session.Assistant && m.Kind == session.KindMessage {
		return s.assistant(m)
	}
	s.dangling()
	switch m.Kind {
	case session.KindCustom, session.KindMarker:
		s.lose(m, "a "+string(m.Kind)+" is no message")
		return nil
	case session.KindUnknown:
		return s.unknown(m)
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		return s.user(m, "user")
	}
	switch m.Role {
	case session.System:
		return s.user(m, "system")
	case session.User:
		return s.user(m, "user")
	case session.Tool:
		return s.tool(m)
	}
	s.lose(m, "a message without a role")
	return nil
}

func (s *sender) unknown(m *session.Message) error {
	if len(m.Parts) == 0 || m.Dialect != Name {
		s.lose(m, "a unknown is no message")
		return nil
	}
	x, err := partExtraOf(&m.Parts[0])
	if x.Type == itemReference {
		s.lose(m, "an item_reference to what only the provider stores")
		return err
	}
	s.lose(m, "unknown item type "+wire.Clip(x.Type))
	return err
}

// extraOf reads the extra of a part if it is in this form's words.
func extraOf(m *session.Message, p *session.Part) (partExtra, error) {
	if m.Dialect != Name {
		return partExtra{}, nil
	}
	return partExtraOf(p)
}

// user writes a message of the user's or the system's role.
func (s *sender) user(m *session.Message, role string) error {
	var elements []json.RawMessage
	approvals := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		x, err := extraOf(m, p)
		if err != nil {
			return err
		}
		if x.Item != nil {
			if r, _ := wire.TextOf(x.Item.Get("role")); r == roleDeveloper {
				role = r
			}
			s.loseFields(m, x.Item, "role", "content", "name", "approval_request_id", "approve", "reason")
		}
		s.loseElement(m, &x)
		switch {
		case p.Kind == session.PartText || p.Kind == session.PartRefusal:
			elements = appendText(elements, p.Content())
		case x.Type == itemMCPResponse && x.Item != nil:
			approvals++
			s.approval(m, x.Item)
		case role != "user":
			s.losePart(m, p, &x)
		default:
			if e := s.medium(m, p, &x); e != nil {
				elements = append(elements, e)
			}
		}
	}
	if len(elements) == 0 && (role != "user" || approvals > 0) {
		return nil
	}
	var o wire.Object
	o.SetText("type", itemMessage)
	o.SetText("role", role)
	o.Set("content", contentOf(elements))
	s.out = append(s.out, o.JSON())
	return nil
}

// loseFields names the fields of an item that are not sent, but for those that a request never has.
func (s *sender) loseFields(m *session.Message, o *wire.Object, sent ...string) {
	for _, f := range o.Members() {
		switch f.Key {
		case "type", "id", "status", "call_id", "object", "internal_chat_message_metadata_passthrough", "metadata", "created_by":
			continue // the provider's or a program's own bookkeeping
		}
		if wire.IsNull(f.Value) || slices.Contains(sent, f.Key) || string(f.Value) == "[]" {
			continue
		}
		s.lose(m, "field "+wire.Clip(f.Key))
	}
}

// loseElement names the fields of an element that are not sent: citations, above all.
func (s *sender) loseElement(m *session.Message, x *partExtra) {
	for _, f := range x.Fields.Members() {
		switch f.Key {
		case "type", "text", "refusal", "image_url", "file_id", "file_url", "file_data", "filename", "detail", typeAudio, "audio_url", "logprobs", "cache_control":
			continue // the columns hold what is readable of them; cache marks are placed anew
		}
		if !wire.IsNull(f.Value) && string(f.Value) != "[]" {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
}

func (s *sender) losePart(m *session.Message, p *session.Part, x *partExtra) {
	what := string(p.Kind) + " in a message of role " + string(m.Role)
	switch p.Kind {
	case session.PartReasoning:
		what = "reasoning"
	case session.PartData:
		what = "unknown part"
		var named struct{ Type, Field string }
		if x.Type != "" || x.Field != "" {
			named.Type, named.Field = x.Type, x.Field
		} else if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &named) != nil {
			named.Type, named.Field = "", ""
		}
		if named.Type != "" {
			what = "unknown part type " + wire.Clip(named.Type)
		} else if named.Field != "" {
			what = "field " + wire.Clip(named.Field)
		}
	}
	s.lose(m, what)
}

const textPrefix = `{"type":"input_text","text":`

func appendText(elements []json.RawMessage, text string) []json.RawMessage {
	if text == "" {
		return elements
	}
	return append(elements, textElement(textPrefix, text))
}

// textElement writes an element of one text behind its beginning.
func textElement(prefix, text string) json.RawMessage {
	b := append(make([]byte, 0, len(prefix)+wire.TextSize(text)+len(`}`)), prefix...)
	return append(wire.AppendText(b, text), '}')
}

// contentOf writes elements as a content: one text as a string, else an array.
func contentOf(elements []json.RawMessage) json.RawMessage {
	switch len(elements) {
	case 0:
		return json.RawMessage(`""`)
	case 1:
		if text, ok := bytes.CutPrefix(elements[0], []byte(textPrefix)); ok {
			return text[:len(text)-len("}")]
		}
	}
	return wire.AppendArray(nil, elements)
}

// name gives a tool's name as the API takes it.
func (s *sender) name(m *session.Message, name string) string {
	legal := legalTool(name)
	if legal != name {
		s.lose(m, "the tool's name "+strconv.Quote(wire.Clip(name))+" is sent as "+strconv.Quote(legal))
	}
	return legal
}
