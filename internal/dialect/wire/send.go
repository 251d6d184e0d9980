package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/callid"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Sender is what the senders of all forms share: the message that is sent, the calls that have no
// result yet, and the losses.
type Sender struct {
	M      Message          // the message that is sent, its extras open; the next Load reuses it
	From   *session.Message // the same message in the context
	Open   []OpenCall
	Out    []jsontext.Value  // entries that are written and not taken yet
	calls  int               // that were sent, to name those that came without an id
	tools  map[string]string // the tools that were called: their own names by those that are sent
	losses []string

	skipped bool // a loss says that calls are sent without a signature
}

// OpenCall is a call that has no result yet.
type OpenCall struct {
	ID, Name string           // as they came
	SentID   string           // "": the call is sent without an id
	SentName string           // of a form whose results name their tool
	Kind     string           // the type of its item, of Responses
	At       int              // its place among all calls, of Gemini
	From     *session.Message // the reply that it stands in
}

// Load opens the next message: the extras of one of the dialect's own, of any other only the
// media. Codes: Internal.
func (s *Sender) Load(dialect string, of *session.Message) error {
	s.From = of
	own := of.Dialect == dialect
	if err := s.M.open(of, own); err != nil {
		return err
	}
	for i := range s.M.Parts {
		if p := &s.M.Parts[i]; p.Kind.HasBytes() {
			p.X.Media = MediaOf(&p.Part)
		}
	}
	return nil
}

// Write adds an entry of the fields that Encode takes.
func (s *Sender) Write(fields ...any) {
	s.Out = append(s.Out, jsontext.Value(jsonx.Encode(fields...)))
}

// NoContent stands in where an API demands a content and there is none.
const NoContent = "(no content)"

// LoseContent notes that NoContent replaces everything that a user said.
func (s *Sender) LoseContent() {
	s.Lose("nothing that can be sent: " + NoContent + " stands in its place")
}

// Taken returns the entries that were written since the last call.
func (s *Sender) Taken() []jsontext.Value {
	out := s.Out
	s.Out = nil
	return out
}

// Role is the role that the message is sent in: what a program put into the conversation is said
// in the user's, unless it says itself that it was the system's. It is "", with a loss, for a message that is not sent.
func (s *Sender) Role() session.Role {
	switch {
	case !IsTalk(s.From):
		s.Lose("a " + string(s.From.Kind) + " is no message")
		return ""
	case s.From.Kind == session.KindCustomMessage && s.From.Role == session.System:
		return session.System
	case slices.Contains([]session.Kind{session.KindBash, session.KindCustomMessage, session.KindBranchSummary},
		s.From.Kind):
		return session.User
	case !slices.Contains([]session.Role{session.System, session.User, session.Assistant, session.Tool}, s.From.Role):
		s.Lose("a message without a role")
		return ""
	}
	return s.From.Role
}

// IsTalk reports whether a message is of a kind that is sent.
func IsTalk(m *session.Message) bool {
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		return false
	}
	return true
}

// Lose notes a loss of the message.
func (s *Sender) Lose(what string) { s.LoseOf(s.From, what) }

// LoseOf notes a loss of another message.
func (s *Sender) LoseOf(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	s.losses = append(s.losses, what)
}

// Losses returns the losses since the last call.
func (s *Sender) Losses() []string {
	losses := s.losses
	s.losses = nil
	return losses
}

// LosePart notes that a part is left out.
func (s *Sender) LosePart(p *Part) {
	what := string(p.Kind) + " in a message of role " + string(s.M.Role)
	switch p.Kind {
	case session.PartReasoning:
		what = "reasoning"
	case session.PartData:
		what = "unknown part"
		var x struct{ Type, Field string }
		if len(p.Extra) == 0 || json.Unmarshal(p.Extra, &x) != nil {
			break
		}
		if x.Type != "" {
			what = "unknown part type " + jsonx.Clip(x.Type)
		} else if x.Field != "" {
			what = "field " + jsonx.Clip(x.Field)
		}
	}
	s.Lose(what)
}

// LoseMedium notes that an image, a sound or a file is left out.
func (s *Sender) LoseMedium(p *Part) {
	s.Lose(strings.TrimSuffix(string(p.Kind)+" "+p.X.MediaType, " ") +
		": its bytes or its type are not what the API takes")
}

// LoseFields notes the fields that are not sent, but for empty ones and those known by name. kind
// is the type of the block that they stand in, if any.
func (s *Sender) LoseFields(o *jsonx.Object, kind string, known ...string) {
	for _, f := range *o {
		if jsonx.IsNull(f.Value) || string(f.Value) == "[]" || f.Key == cacheMark || slices.Contains(known, f.Key) {
			continue
		}
		what := "field " + jsonx.Clip(f.Key)
		if kind != "" {
			what += " of a " + kind
		}
		s.Lose(what)
	}
}

// cacheMark tells a provider's cache where to keep what it has read: Send places new ones.
const cacheMark = "cache_control"

// LoseName notes that a name is sent as another, which it returns.
func (s *Sender) LoseName(of, name, sent string) string {
	if name != sent {
		s.Lose("the " + of + " " + strconv.Quote(jsonx.Clip(name)) + " is sent as " + strconv.Quote(sent))
	}
	return sent
}

// MaxName is the longest name of a tool that every provider accepts: ^[a-zA-Z0-9_-]{1,64}$ for OpenAI, on Bedrock and
// for Anthropic's older models. Gemini has the same length.
const MaxName = 64

// ToolName returns the name that a tool is sent under, in the alphabet that most providers share.
func (s *Sender) ToolName(name string) string {
	return s.SendToolName(name, callid.LegalName(name, MaxName))
}

// SendToolName returns the name that a tool is sent under: legal, which the provider accepts. Two
// tools never share one.
func (s *Sender) SendToolName(name, legal string) string {
	if own, taken := s.tools[legal]; taken && own != name && legal != name {
		legal = callid.TagName(legal, name, MaxName)
	}
	if _, known := s.tools[legal]; known {
		return legal
	}
	if s.tools == nil {
		s.tools = map[string]string{}
	}
	s.tools[legal] = name
	return s.LoseName("tool's name", name, legal)
}

// ToolNames returns the tools that are sent under another name: their own by that name.
func (s *Sender) ToolNames() map[string]string {
	var changed map[string]string
	for sent, own := range s.tools {
		if sent == own {
			continue
		}
		if changed == nil {
			changed = map[string]string{}
		}
		changed[sent] = own
	}
	return changed
}

// Results yields the results of a tool's message, each with the parts that belong to it. Parts
// before the first result are lost.
func (s *Sender) Results() iter.Seq[[]Part] {
	return func(yield func([]Part) bool) {
		parts := s.M.Parts
		for at := 0; at < len(parts); {
			next := at + 1
			for next < len(parts) && parts[next].Kind != session.PartToolResult {
				next++
			}
			if parts[at].Kind != session.PartToolResult {
				for i := range parts[at:next] {
					s.LosePart(&parts[at+i])
				}
			} else if !yield(parts[at:next]) {
				return
			}
			at = next
		}
	}
}

// Texts returns the texts of a message in which nothing else is allowed.
func (s *Sender) Texts() []string {
	var texts []string
	for i := range s.M.Parts {
		p := &s.M.Parts[i]
		if p.Kind != session.PartText && p.Kind != session.PartRefusal {
			s.LosePart(p)
		} else if text := p.Content(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// AnsweredInside reports whether the reply itself holds the result of a call: then the provider
// ran the tool.
func AnsweredInside(m *Message, callID string) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool {
		return p.Kind == session.PartToolResult && p.CallID == callID
	})
}

// CountCall counts a call and returns its id, one that begins with made if it came without.
func (s *Sender) CountCall(p *Part, made string) string {
	s.calls++
	if p.CallID == "" {
		return made + strconv.Itoa(s.calls)
	}
	return p.CallID
}

// Calls is the number of calls so far.
func (s *Sender) Calls() int { return s.calls }

// CloseCall removes the call that a result answers: the first of its id; for a result without
// an id the first of its name, else the first.
func (s *Sender) CloseCall(p *Part) (call OpenCall, ok bool) {
	at := slices.IndexFunc(s.Open, func(c OpenCall) bool { return c.ID == p.CallID })
	if p.CallID == "" {
		at = slices.IndexFunc(s.Open, func(c OpenCall) bool { return c.Name == p.ToolName })
		if at < 0 && len(s.Open) > 0 {
			at = 0
		}
	}
	if at < 0 {
		return call, false
	}
	call = s.Open[at]
	s.Open = slices.Delete(s.Open, at, at+1)
	return call, true
}

// ArgumentsObject returns arguments as an object: as they came if they are one, {} if there are
// none. Any other value becomes the field of an object, which is not ok.
func ArgumentsObject(arguments, field string) (raw jsontext.Value, ok bool) {
	text := strings.TrimSpace(arguments)
	switch {
	case text == "" || text == "null":
		return jsontext.Value("{}"), true
	case jsonx.IsObject([]byte(text)):
		return jsonx.Clean([]byte(text)), true
	}
	return jsonx.Encode(field, arguments), false
}

// AppendTextElement writes an element of one text behind its beginning: {"type":"text","text":
func AppendTextElement(elements []jsontext.Value, prefix, text string) []jsontext.Value {
	if text == "" {
		return elements
	}
	return append(elements, append(jsonx.AppendText([]byte(prefix), text), '}'))
}

// ContentOf writes elements as a content: none as "", one text as a string, else an array.
func ContentOf(elements []jsontext.Value, prefix string) jsontext.Value {
	switch len(elements) {
	case 0:
		return jsontext.Value(`""`)
	case 1:
		if text, ok := bytes.CutPrefix(elements[0], []byte(prefix)); ok {
			return text[:len(text)-len("}")]
		}
	}
	return jsonx.Array(elements)
}

// IsImage reports whether OpenAI and Anthropic take images of a media type.
func IsImage(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

// IsWeb reports whether a provider can load an address.
func IsWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// BlobURL is the data URL of a part's bytes.
func BlobURL(p *Part) string {
	return "data:" + p.X.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Blob.Data)
}
