package openaichat

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Limits of the API, which answers 400 beyond them.
const (
	maxName   = 64 // characters of a tool's or an author's name
	maxCallID = 40 // bytes of a call's id
)

// Send makes {"messages": […]} of a context, with the fields that the API takes in a request
// and no other. A tool's message of several results becomes one message for each; images and
// files of results, which the API takes only from a user, follow the results in a message of
// the user's role. A Gemini, which Google also offers in this form, gets its thought signatures
// back. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := NewSender(in.Model)
	if in.System != "" {
		var o wire.Object
		o.SetText("role", "system")
		o.SetText("content", in.System)
		s.out = append(s.out, o.JSON())
	}
	for i := range in.Messages {
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	var request wire.Object
	request.Set("messages", wire.Array(s.End()))
	return wire.Sent{Request: session.JSON(request.JSON()), Losses: s.Losses()}, nil
}

// Sender is Send of a conversation that comes piece by piece.
type Sender struct{ sender }

// NewSender makes one for a model.
func NewSender(model string) *Sender { return &Sender{sender{generation: wire.Generation(model)}} }

// Messages returns the entries that can be written now. Codes: Internal.
func (s *Sender) Messages(msgs ...session.Message) ([]json.RawMessage, error) {
	for i := range msgs {
		if err := s.message(&msgs[i]); err != nil {
			return nil, err
		}
	}
	return s.taken(), nil
}

// End returns the entries that are left.
func (s *Sender) End() []json.RawMessage { return append(s.taken(), s.flush()...) }

// sender writes messages one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, and media that may follow only after the last result.
type sender struct {
	wire.Lossy
	generation int // of the Gemini that it is sent to, 0 for any other model

	out     []json.RawMessage
	open    []wire.OpenCall[struct{}]
	calls   int // seen so far, to name those that came without an id
	ids     callid.Names
	media   []jsontext.Value // elements of results, for the user's message behind them
	skipped bool             // a loss says that calls are sent without a signature
}

// taken returns what was written since the last time.
func (s *sender) taken() []json.RawMessage {
	out := s.out
	s.out = nil
	return out
}

// flush returns the message that carries the media of results, if there are any.
func (s *sender) flush() []json.RawMessage {
	if len(s.media) == 0 {
		return nil
	}
	var o wire.Object
	o.SetText("role", "user")
	o.Set("content", wire.Array(s.media))
	s.media = nil
	return []json.RawMessage{o.JSON()}
}

func (s *sender) message(of *session.Message) error {
	m, err := wire.OpenFor(Name, of)
	if err != nil {
		return err
	}
	if m.Role != session.Tool {
		s.out = append(s.out, s.flush()...)
	}
	s.LoseFields(of, &m.X.Rest, "", "role", "content", "name", "tool_call_id", fieldToolCalls, fieldFunctionCall, fieldRefusal, fieldAudio, fieldReasoning, fieldReasoningContent)
	if !wire.IsTalk(of) {
		s.Lose(of, "a "+string(m.Kind)+" is no message")
		return nil
	}
	switch wire.RoleOf(of) {
	case session.System:
		role := "system"
		if m.X.Role == roleDeveloper {
			role = roleDeveloper
		}
		s.write(of, role, s.texts(&m))
	case session.User:
		s.write(of, "user", s.elements(&m))
	case session.Assistant:
		s.assistant(&m)
	case session.Tool:
		for parts := range wire.Groups(m.Parts) {
			s.result(&m, parts)
		}
	default:
		s.Lose(of, "a message without a role")
	}
	return nil
}

// write writes a message with elements as its content.
func (s *sender) write(m *session.Message, role string, elements []jsontext.Value) {
	var o wire.Object
	o.SetText("role", role)
	o.Set("content", wire.ContentOf(elements, textPrefix))
	s.name(m, &o)
	s.out = append(s.out, o.JSON())
}

const textPrefix = `{"type":"text","text":`

func appendText(elements []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(elements, textPrefix, text)
}

// name writes who speaks, in the characters that the API allows: [^\s<|\\/>]+.
func (s *sender) name(m *session.Message, o *wire.Object) {
	if m.Author == "" {
		return
	}
	name := []rune(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) {
			return '_'
		}
		return r
	}, m.Author))
	legal := string(name[:min(len(name), maxName)])
	s.LoseName(m, "author's name", m.Author, legal)
	o.SetText("name", legal)
}

// elements writes what a person said.
func (s *sender) elements(m *wire.Message) []jsontext.Value {
	var elements []jsontext.Value
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartText || p.Kind == session.PartRefusal {
			elements = appendText(elements, p.Content())
		} else if e := s.medium(m, p); e != nil {
			elements = append(elements, e)
		}
	}
	return elements
}

// texts writes the texts of a message in which nothing else is allowed.
func (s *sender) texts(m *wire.Message) []jsontext.Value {
	var elements []jsontext.Value
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartText || p.Kind == session.PartRefusal {
			elements = appendText(elements, p.Content())
		} else {
			s.LosePart(&m.Message, &p.Part)
		}
	}
	return elements
}

// medium writes an image, a sound or a file as an element of a user's content. It returns nil,
// with a loss, for what the API does not take. Types as in OpenAI's guide to vision.
func (s *sender) medium(m *wire.Message, p *wire.Part) jsontext.Value {
	var o, inner wire.Object
	x := &p.X
	kind := ""
	switch p.Kind {
	case session.PartImage:
		kind = typeImage
		if p.Blob != nil && wire.IsImage(x.MediaType) {
			inner.SetText("url", wire.BlobURL(p))
		} else if p.Blob == nil && wire.IsWeb(x.URL) {
			inner.SetText("url", x.URL)
		}
		if inner.Len() > 0 && slices.Contains([]string{"auto", "low", "high"}, x.Detail) {
			inner.SetText("detail", x.Detail)
		}
	case session.PartAudio:
		kind = typeAudio
		if format := soundFormat(x.MediaType); p.Blob != nil && format != "" {
			inner.SetText("data", base64.StdEncoding.EncodeToString(p.Blob.Data))
			inner.SetText("format", format)
		}
	case session.PartFile:
		kind = typeFile
		switch {
		case p.Blob != nil && x.MediaType != "":
			if x.Name == "" {
				x.Name = typeFile
			}
			inner.SetText("filename", x.Name)
			inner.SetText("file_data", wire.BlobURL(p))
		case x.FileID != "" && m.Dialect == Name: // an id of another provider's store names nothing here
			inner.SetText("file_id", x.FileID)
		}
	default:
		s.LosePart(&m.Message, &p.Part)
		return nil
	}
	if inner.Len() == 0 {
		s.Lose(&m.Message, string(p.Kind)+" "+x.MediaType+": its bytes or its type are not what the API takes")
		return nil
	}
	o.SetText("type", kind)
	o.Set(kind, inner.JSON())
	return o.Value()
}

// soundFormat returns the format that the API calls a media type, "" for one that it does not take.
func soundFormat(mediaType string) string {
	switch strings.ToLower(mediaType) {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

// assistant writes a reply: its text, or its refusal, and its calls.
func (s *sender) assistant(m *wire.Message) {
	s.open = nil
	var elements, calls []jsontext.Value
	refusal, spoken := "", ""
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case session.PartText:
			elements = appendText(elements, p.Content())
		case session.PartRefusal:
			refusal += p.Content()
		case session.PartAudio:
			if spoken += p.Content(); p.Content() == "" {
				s.LosePart(&m.Message, &p.Part)
			}
		case session.PartToolCall:
			if wire.AnsweredInside(m, p.CallID) {
				s.Lose(&m.Message, "a tool that the provider ran itself: "+wire.Clip(p.ToolName))
				continue
			}
			calls = append(calls, s.call(&m.Message, &p.Part, len(calls) == 0))
		case session.PartToolResult: // of a call that was left out with it
		default:
			s.LosePart(&m.Message, &p.Part)
		}
	}
	if len(elements) == 0 { // what was said aloud stands in for what was not written
		elements = appendText(elements, spoken)
	}
	var o wire.Object
	o.SetText("role", "assistant")
	switch {
	case len(elements) > 0:
		o.Set("content", wire.ContentOf(elements, textPrefix))
		o.SetTexts("refusal", refusal)
	case refusal != "":
		o.Set("content", wire.Array(wire.AppendTextElement(nil, `{"type":"refusal","refusal":`, refusal)))
	case len(calls) > 0:
		o.Set("content", jsontext.Value("null"))
	default:
		o.SetText("content", "")
	}
	s.name(&m.Message, &o)
	if len(calls) > 0 {
		o.Set(fieldToolCalls, wire.Array(calls))
	}
	s.out = append(s.out, o.JSON())
}

// call writes one call and opens it; first is one that no other stands before in its reply. A
// function_call of the older API is sent as a tool's.
func (s *sender) call(m *session.Message, p *session.Part, first bool) jsontext.Value {
	var x struct {
		Type string `json:"type"`
	}
	kind, arguments := typeFunction, "arguments"
	if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil && x.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	s.calls++
	id := p.CallID
	if id == "" {
		id = "call_made_" + strconv.Itoa(s.calls)
	}
	id = legalCallID(s.ids.Call(id))
	s.open = append(s.open, wire.OpenCall[struct{}]{ID: p.CallID, Name: p.ToolName, Sent: id})
	name := callid.LegalName(p.ToolName, maxName)
	s.LoseName(m, "tool's name", p.ToolName, name)
	var inner, o wire.Object
	inner.SetText("name", name)
	inner.SetText(arguments, p.Arguments)
	o.SetText("id", id)
	o.SetText("type", kind)
	o.Set(kind, inner.JSON())
	if signature := s.signature(m, p, first); signature != "" {
		o.Set("extra_content", []byte(`{"google":{"thought_signature":`+signature+`}}`))
	}
	return o.Value()
}

// legalCallID shortens an id: some programs join two into one that is too long.
func legalCallID(id string) string { return callid.Short(id, maxCallID/2, maxCallID) }

// signature returns the thought signature that a Gemini asks for, as JSON; "" for none. Any other
// model's API would reject the field.
func (s *sender) signature(m *session.Message, p *session.Part, first bool) string {
	if s.generation == 0 {
		return ""
	}
	raw := wire.CallSignature(p)
	if text, exact := wire.Text(raw); exact && wire.IsSignature(text) {
		return string(raw)
	} else if text != "" {
		s.Lose(m, "a thought signature that is no base64")
	}
	if !first || s.generation < wire.Signed {
		return ""
	}
	if !s.skipped {
		s.Lose(m, "calls without a thought signature are sent with the one that skips its check")
	}
	s.skipped = true
	return `"` + wire.NoSignature + `"`
}

// result writes a result with the parts that belong to it.
func (s *sender) result(m *wire.Message, parts []wire.Part) {
	if parts[0].Kind != session.PartToolResult {
		for i := range parts {
			s.LosePart(&m.Message, &parts[i].Part)
		}
		return
	}
	id := legalCallID(s.ids.Result(parts[0].CallID))
	if call, ok := wire.CloseCall(&s.open, &parts[0].Part); ok {
		id = call.Sent
	}
	var elements, media []jsontext.Value
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case session.PartToolResult, session.PartText, session.PartRefusal:
			elements = appendText(elements, p.Content())
		default:
			if e := s.medium(m, p); e != nil {
				media = append(media, e)
			}
		}
	}
	if len(media) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of call "+id+":"), media...)
	}
	var o wire.Object
	o.SetText("role", "tool")
	o.SetText("tool_call_id", id)
	o.Set("content", wire.ContentOf(elements, textPrefix))
	s.out = append(s.out, o.JSON())
}
