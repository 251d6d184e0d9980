package openaichat

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Limits of the API, which answers 400 beyond them.
const (
	maxAuthor = 64 // characters of an author's name
	maxCallID = 40 // bytes of a call's id
)

// Send makes {"messages": […]} of a context, with the fields that the API takes in a request
// and no other. A tool's message of several results becomes one message for each; images and
// files of results, which the API takes only from a user, follow the results in a message of
// the user's role. A Gemini, which Google also offers in this form, gets its thought signatures
// back, and a model of a server that returns reasoning its reasoning. Codes: Internal.
func Send(in wire.Request) (wire.Sent, error) {
	s := NewSender(in.Model)
	s.request, s.provider = true, in.Provider
	if in.System != "" {
		s.Write("role", "system", "content", in.System)
	}
	for i := range in.Messages {
		if err := s.message(&in.Messages[i]); err != nil {
			return wire.Sent{}, err
		}
	}
	messages := s.End()
	if len(messages) == 0 && len(in.Messages) > 0 { // of which nothing can be sent
		s.Write("role", "user", "content", wire.NoContent)
		messages = s.Taken()
	}
	request := jsonx.Encode("messages", append([]jsontext.Value{}, messages...))
	return wire.Sent{Request: session.JSON(request), Losses: s.Losses(), ToolNames: s.ToolNames()}, nil
}

// Sender is Send of a conversation that comes piece by piece.
type Sender struct{ sender }

// NewSender makes one for a model.
func NewSender(model string) *Sender {
	return &Sender{sender{model: model, generation: wire.Generation(model)}}
}

// Messages returns the entries that can be written now. Codes: Internal.
func (s *Sender) Messages(msgs ...session.Message) ([]jsontext.Value, error) {
	for i := range msgs {
		if err := s.message(&msgs[i]); err != nil {
			return nil, err
		}
	}
	return s.Taken(), nil
}

// End returns the entries that are left.
func (s *Sender) End() []jsontext.Value {
	s.flush()
	return s.Taken()
}

// sender writes messages one after the other. It remembers what one message leaves to a later
// one: calls that wait for their results, and media that may follow only after the last result.
type sender struct {
	wire.Sender
	request    bool // to a model, not an export
	model      string
	provider   string
	generation int // of the Gemini that it is sent to, 0 for any other model

	ids   callid.Names
	media []jsontext.Value // elements of results, for the user's message behind them
}

// flush writes the message that carries the media of results, if there are any.
func (s *sender) flush() {
	if len(s.media) > 0 {
		s.Write("role", "user", "content", s.media)
	}
	s.media = nil
}

func (s *sender) message(of *session.Message) error {
	if err := s.Load(Name, of); err != nil {
		return err
	}
	m := &s.M
	if m.Role != session.Tool {
		s.flush()
	}
	known := []string{
		"role", "content", "name", "tool_call_id", fieldToolCalls, fieldFunctionCall, fieldRefusal, fieldAudio,
		fieldReasoning, fieldReasoningContent,
	}
	if s.returnsReasoning() {
		known = append(known, fieldReasoningDetails)
	}
	s.LoseFields(&m.X.Rest, "", known...)
	switch s.Role() {
	case session.System:
		role := "system"
		if m.X.Role == roleDeveloper {
			role = roleDeveloper
		}
		var elements []jsontext.Value
		for _, text := range s.Texts() {
			elements = appendText(elements, text)
		}
		if elements == nil {
			s.Lose("a system message without text")
			return nil
		}
		s.Write("role", role, "content", wire.ContentOf(elements, textPrefix), "name", s.name())
	case session.User:
		s.user()
	case session.Assistant:
		s.assistant()
	case session.Tool:
		for parts := range s.Results() {
			s.result(parts)
		}
	}
	return nil
}

const textPrefix = `{"type":"text","text":`

func appendText(elements []jsontext.Value, text string) []jsontext.Value {
	return wire.AppendTextElement(elements, textPrefix, text)
}

// name returns who speaks, in the characters that the API allows: [^\s<|\\/>]+.
func (s *sender) name() jsonx.Maybe {
	name := []rune(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) {
			return '_'
		}
		return r
	}, s.M.Author))
	return jsonx.Maybe(s.LoseName("author's name", s.M.Author, string(name[:min(len(name), maxAuthor)])))
}

// user writes what a person or a program said. One of whom nothing can be sent still has their
// turn: strict servers reject a message without content.
func (s *sender) user() {
	elements := s.elements(&s.M)
	if elements == nil {
		s.LoseContent()
		elements = appendText(nil, wire.NoContent)
	}
	s.Write("role", "user", "content", wire.ContentOf(elements, textPrefix), "name", s.name())
}

// elements writes what a person said.
func (s *sender) elements(m *wire.Message) []jsontext.Value {
	var elements []jsontext.Value
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartText || p.Kind == session.PartRefusal {
			elements = appendText(elements, p.Content())
		} else if e := s.medium(p); e != nil {
			elements = append(elements, e)
		}
	}
	return elements
}

// medium writes an image, a sound or a file as an element of a user's content. It returns nil,
// with a loss, for what the API does not take. Types as in OpenAI's guide to vision.
func (s *sender) medium(p *wire.Part) jsontext.Value {
	x := &p.X
	switch p.Kind {
	case session.PartImage:
		var detail jsonx.Maybe
		if slices.Contains([]string{"auto", "low", "high"}, x.Detail) {
			detail = jsonx.Maybe(x.Detail)
		}
		if p.Blob != nil && wire.IsImage(x.MediaType) {
			return elementOf(typeImage, "url", wire.BlobURL(p), "detail", detail)
		} else if p.Blob == nil && wire.IsWeb(x.URL) {
			return elementOf(typeImage, "url", x.URL, "detail", detail)
		}
	case session.PartAudio:
		if format := soundFormat(x.MediaType); p.Blob != nil && format != "" {
			return elementOf(typeAudio, "data", base64.StdEncoding.EncodeToString(p.Blob.Data), "format", format)
		}
	case session.PartFile:
		switch {
		case p.Blob != nil && x.MediaType != "":
			return elementOf(typeFile, "filename", cmp.Or(x.Name, typeFile), "file_data", wire.BlobURL(p))
		case x.FileID != "" && s.M.Dialect == Name: // an id of another provider's store names nothing here
			return elementOf(typeFile, "file_id", x.FileID)
		}
	default:
		s.LosePart(p)
		return nil
	}
	s.LoseMedium(p)
	return nil
}

// elementOf makes an element whose field is named like its type.
func elementOf(kind string, fields ...any) jsontext.Value {
	return jsonx.Encode("type", kind, kind, jsonx.Encode(fields...))
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

// assistant writes a reply: its text, or its refusal, its calls and its reasoning. One that says
// nothing is left out: "Assistant message must have either content or tool_calls, but not none."
// (Mistral), "the message at position 2 with role 'assistant' must not be empty" (Kimi).
func (s *sender) assistant() {
	s.Open = nil
	thought := s.reasoning()
	var elements, calls []jsontext.Value
	refusal, spoken := "", ""
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		if thought != nil && isReasoning(p) {
			continue
		}
		switch p.Kind {
		case session.PartText:
			elements = appendText(elements, p.Content())
		case session.PartRefusal:
			refusal += p.Content()
		case session.PartAudio:
			if spoken += p.Content(); p.Content() == "" {
				s.LosePart(p)
			}
		case session.PartToolCall:
			if wire.AnsweredInside(&s.M, p.CallID) {
				s.Lose("a tool that the provider ran itself: " + jsonx.Clip(p.ToolName))
				continue
			}
			calls = append(calls, s.call(p, len(calls) == 0))
		case session.PartToolResult: // of a call that was left out with it
		default:
			s.LosePart(p)
		}
	}
	if len(elements) == 0 { // what was said aloud stands in for what was not written
		elements = appendText(elements, spoken)
	}
	content, beside := wire.ContentOf(elements, textPrefix), jsonx.Maybe("")
	switch {
	case len(elements) > 0:
		beside = jsonx.Maybe(refusal)
	case refusal != "":
		content = jsonx.Array(wire.AppendTextElement(nil, `{"type":"refusal","refusal":`, refusal))
	case len(calls) > 0:
		content = jsontext.Value("null")
	default:
		s.Lose("a reply that says nothing")
		return
	}
	fields := append([]any{"role", "assistant", "content", content}, thought...)
	s.Write(append(fields, "refusal", beside, "name", s.name(), fieldToolCalls, calls)...)
}

// call writes one call and opens it; first is one that no other stands before in its reply. A
// function_call of the older API is sent as a tool's.
func (s *sender) call(p *wire.Part, first bool) jsontext.Value {
	var x struct {
		Type string `json:"type"`
	}
	kind, arguments := typeFunction, "arguments"
	if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &x) == nil && x.Type == typeCustom {
		kind, arguments = typeCustom, "input"
	}
	given := p.Arguments
	if kind == typeFunction {
		given = cmp.Or(given, "{}") // servers that parse the arguments refuse an empty string
	}
	id := legalCallID(s.ids.Call(s.CountCall(p, "call_made_")))
	s.Open = append(s.Open, wire.OpenCall{ID: p.CallID, Name: p.ToolName, SentID: id})
	name := s.ToolName(p.ToolName)
	return jsonx.Encode("id", id, "type", kind, kind, jsonx.Encode("name", name, arguments, given), "extra_content",
		s.signature(p, first))
}

// legalCallID shortens an id: some programs join two into one that is too long.
func legalCallID(id string) string { return callid.Short(id, maxCallID/2, maxCallID) }

// signature returns the extra content with the thought signature that a Gemini asks for, nil for
// none. Any other model's API would reject the field.
func (s *sender) signature(p *wire.Part, first bool) jsontext.Value {
	if s.generation == 0 {
		return nil
	}
	raw := s.Signature(wire.CallSignature(&p.Part))
	if raw == nil {
		if !first || s.generation < wire.Signed {
			return nil
		}
		raw = s.SkipSignature()
	}
	return jsonx.Encode("google", jsonx.Encode("thought_signature", raw))
}

// result writes a result with the parts that belong to it.
func (s *sender) result(parts []wire.Part) {
	id := legalCallID(s.ids.Result(parts[0].CallID))
	if call, ok := s.CloseCall(&parts[0]); ok {
		id = call.SentID
	}
	var elements, media []jsontext.Value
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case session.PartToolResult, session.PartText, session.PartRefusal:
			elements = appendText(elements, p.Content())
		default:
			if e := s.medium(p); e != nil {
				media = append(media, e)
			}
		}
	}
	if len(media) > 0 {
		s.media = append(appendText(s.media, "Attached to the result of call "+id+":"), media...)
	}
	s.Write("role", "tool", "tool_call_id", id, "content", wire.ContentOf(elements, textPrefix))
}
