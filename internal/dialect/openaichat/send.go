package openaichat

import (
	"bytes"
	"encoding/json"
	"strconv"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Send makes {"messages": […]} of a context, with the fields that the API takes in a request
// and no other. A tool's message of several results becomes one message for each; images and
// files of results, which the API takes only from a user, follow the results in a message of
// the user's role. A Gemini, which Google also offers in this form, gets its thought signatures
// back. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := NewSender(in.Model)
	s.out = make([]json.RawMessage, 0, len(in.Messages)+1)
	if in.System != "" {
		s.text("system", in.System, "")
	}
	for i := range in.Messages {
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	entries := s.End()
	const head = `{"messages":`
	request := append(make([]byte, 0, len(head)+wire.ArraySize(entries)+len(`}`)), head...)
	request = append(wire.AppendArray(request, entries), '}')
	return wire.Sent{Request: request, Losses: s.losses}, nil
}

// Sender is Send of a conversation that comes piece by piece.
type Sender struct{ sender }

// NewSender makes one for a model.
func NewSender(model string) *Sender { return &Sender{sender{generation: wire.Generation(model)}} }

// Messages gives the entries that can be written now. Codes: Internal.
func (s *Sender) Messages(msgs ...session.Message) ([]json.RawMessage, error) {
	for i := range msgs {
		if err := s.message(&msgs[i]); err != nil {
			return nil, err
		}
	}
	return s.taken(), nil
}

// End gives the entries that are left.
func (s *Sender) End() []json.RawMessage { return append(s.taken(), s.flush()...) }

// Losses says what was left out or changed since it was asked last, as wire.Sent does.
func (s *Sender) Losses() []string {
	losses := s.losses
	s.losses = nil
	return losses
}

// sender writes messages one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, and media that may follow only after the last result.
type sender struct {
	generation int // of the Gemini that it is sent to, 0 for any other model

	out    []json.RawMessage
	losses []string
	open   []openCall
	calls  int // seen so far, to name those that came without an id
	ids    callid.Names
	media  []json.RawMessage // elements of results, for the user's message behind them

	skipped bool // it was said that calls are sent without a signature
}

// openCall is a call of the last reply that has no result yet: its id and name as they came, and
// the id that it is sent with.
type openCall struct{ id, name, sent string }

// taken gives what was written since the last time.
func (s *sender) taken() []json.RawMessage {
	out := s.out
	s.out = nil
	return out
}

// flush gives the message that carries the media of results, if there are any.
func (s *sender) flush() []json.RawMessage {
	if len(s.media) == 0 {
		return nil
	}
	var o wire.Object
	o.SetText("role", "user")
	o.Set("content", wire.AppendArray(nil, s.media))
	s.media = nil
	return []json.RawMessage{o.JSON()}
}

func (s *sender) lose(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	s.losses = append(s.losses, what)
}

func (s *sender) message(m *session.Message) error {
	var x messageExtra
	if m.Dialect == Name {
		var err error
		if x, err = messageExtraOf(m); err != nil {
			return err
		}
	}
	for i := range m.Parts {
		if err := wire.Loaded(&m.Parts[i]); err != nil {
			return err
		}
	}
	if m.Role != session.Tool {
		s.out = append(s.out, s.flush()...)
	}
	s.loseFields(m, x.Fields)
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		s.lose(m, "a "+string(m.Kind)+" is no message")
		return nil
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		s.user(m)
		return nil
	}
	switch m.Role {
	case session.System:
		role := "system"
		if x.Role == roleDeveloper {
			role = roleDeveloper
		}
		s.write(m, role, s.texts(m))
	case session.User:
		s.user(m)
	case session.Assistant:
		s.assistant(m)
	case session.Tool:
		s.tool(m)
	default:
		s.lose(m, "a message without a role")
	}
	return nil
}

// loseFields names what stood beside the documented fields of a message of this form.
func (s *sender) loseFields(m *session.Message, fields wire.Object) {
	for _, f := range fields.Members() {
		switch f.Key {
		case "role", "content", "name", "tool_call_id", fieldToolCalls, fieldFunctionCall, fieldRefusal, fieldAudio, fieldReasoning, fieldReasoningContent:
			continue // the columns hold what is readable of them
		}
		if !wire.IsNull(f.Value) && string(f.Value) != "[]" {
			s.lose(m, "field "+wire.Clip(f.Key))
		}
	}
}

// text writes a message of one text.
func (s *sender) text(role, text, name string) {
	var o wire.Object
	o.SetText("role", role)
	o.SetText("content", text)
	if name != "" {
		o.SetText("name", name)
	}
	s.out = append(s.out, o.JSON())
}

func (s *sender) user(m *session.Message) {
	var elements []json.RawMessage
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case session.PartText, session.PartRefusal:
			elements = appendText(elements, p.Content())
		default:
			if e := s.medium(m, p); e != nil {
				elements = append(elements, e)
			}
		}
	}
	s.write(m, "user", elements)
}

// texts gives the text elements of a message in which nothing else is allowed.
func (s *sender) texts(m *session.Message) []json.RawMessage {
	var elements []json.RawMessage
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartText && p.Kind != session.PartRefusal {
			s.losePart(m, p)
			continue
		}
		elements = appendText(elements, p.Content())
	}
	return elements
}

func (s *sender) losePart(m *session.Message, p *session.Part) {
	what := string(p.Kind) + " in a message of role " + string(m.Role)
	switch p.Kind {
	case session.PartReasoning:
		what = "reasoning"
	case session.PartData:
		what = "unknown part"
		var x partExtra
		if json.Unmarshal(p.Extra, &x) == nil && x.Type != "" {
			what = "unknown part type " + wire.Clip(x.Type)
		} else if x.Field != "" {
			what = "field " + wire.Clip(x.Field)
		}
	}
	s.lose(m, what)
}

// write writes a message with elements as its content: one text as a string.
func (s *sender) write(m *session.Message, role string, elements []json.RawMessage) {
	var o wire.Object
	o.SetText("role", role)
	o.Set("content", contentOf(elements))
	s.name(m, &o)
	s.out = append(s.out, o.JSON())
}

// contentOf writes elements as a content: none as "", one text as a string, else an array.
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

const textPrefix = `{"type":"text","text":`

func appendText(elements []json.RawMessage, text string) []json.RawMessage {
	if text == "" {
		return elements
	}
	element := make([]byte, 0, len(textPrefix)+wire.TextSize(text)+len(`}`))
	return append(elements, append(wire.AppendText(append(element, textPrefix...), text), '}'))
}

// name writes who speaks, in the characters that the API allows.
func (s *sender) name(m *session.Message, o *wire.Object) {
	if m.Author == "" {
		return
	}
	name := legalAuthor(m.Author)
	if name != m.Author {
		s.lose(m, "the author's name "+strconv.Quote(wire.Clip(m.Author))+" is sent as "+strconv.Quote(name))
	}
	o.SetText("name", name)
}
