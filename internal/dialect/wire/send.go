package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// OpenFor reads a message that a dialect sends: the extras of one of its own, of any other
// only the media. Codes: Internal.
func OpenFor(dialect string, m *session.Message) (Message, error) {
	var out Message
	var err error
	if m.Dialect == dialect {
		out, err = Open(m)
	} else {
		out = Message{Message: *m, Parts: make([]Part, len(m.Parts))}
		for i := range m.Parts {
			out.Parts[i].Part = m.Parts[i]
			err = errors.Join(err, Loaded(&m.Parts[i]))
		}
	}
	for i := range out.Parts {
		if p := &out.Parts[i]; p.Kind.HasBytes() {
			p.X.Media = MediaOf(&p.Part)
		}
	}
	return out, err
}

// Lossy gathers what a sender leaves out or changes; senders embed it.
type Lossy struct{ losses []string }

// Lose notes a loss of a message.
func (l *Lossy) Lose(m *session.Message, what string) {
	if ref := m.ID.String(); ref != "" {
		what = ref + ": " + what
	}
	l.losses = append(l.losses, what)
}

// Losses returns what was lost since it was asked last.
func (l *Lossy) Losses() []string {
	losses := l.losses
	l.losses = nil
	return losses
}

// LosePart notes that a part is left out.
func (l *Lossy) LosePart(m *session.Message, p *session.Part) {
	what := string(p.Kind) + " in a message of role " + string(m.Role)
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
			what = "unknown part type " + Clip(x.Type)
		} else if x.Field != "" {
			what = "field " + Clip(x.Field)
		}
	}
	l.Lose(m, what)
}

// LoseFields notes the fields that are not sent, but for those that say nothing and those known
// by name. of says what they are of: " of a text".
func (l *Lossy) LoseFields(m *session.Message, o *Object, of string, known ...string) {
	for _, f := range o.Members() {
		if !IsNull(f.Value) && string(f.Value) != "[]" && f.Key != cacheMark && !slices.Contains(known, f.Key) {
			l.Lose(m, "field "+Clip(f.Key)+of)
		}
	}
}

// cacheMark tells a provider's cache where to keep what it has read: whoever sends places new ones.
const cacheMark = "cache_control"

// LoseName notes that a name is sent as another.
func (l *Lossy) LoseName(m *session.Message, of, name, sent string) {
	if name != sent {
		l.Lose(m, "the "+of+" "+strconv.Quote(Clip(name))+" is sent as "+strconv.Quote(sent))
	}
}

// IsTalk reports whether a message is of a kind that is sent.
func IsTalk(m *session.Message) bool {
	switch m.Kind {
	case session.KindCustom, session.KindMarker, session.KindUnknown:
		return false
	}
	return true
}

// RoleOf is the role that a message is sent in: what a program put into the conversation is
// said in the user's.
func RoleOf(m *session.Message) session.Role {
	switch m.Kind {
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		return session.User
	}
	return m.Role
}

// Groups yields the results of a tool's message, each with the parts that belong to it. Parts
// before the first result are a group of their own.
func Groups(parts []Part) iter.Seq[[]Part] {
	return func(yield func([]Part) bool) {
		for at := 0; at < len(parts); {
			next := at + 1
			for next < len(parts) && parts[next].Kind != session.PartToolResult {
				next++
			}
			if !yield(parts[at:next]) {
				return
			}
			at = next
		}
	}
}

// AnsweredInside reports whether the reply itself holds the result of a call: then the provider
// ran the tool.
func AnsweredInside(m *Message, callID string) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind == session.PartToolResult && p.CallID == callID })
}

// OpenCall is a call of the last reply that has no result yet: its id and name as they came, the
// id that it is sent with, and whatever else the sender remembers of it.
type OpenCall[T any] struct {
	ID, Name, Sent string
	More           T
}

// CloseCall removes the call that a result answers: the first of its id; for a result without
// an id the first of its name, else the first.
func CloseCall[T any](open *[]OpenCall[T], p *session.Part) (call OpenCall[T], ok bool) {
	at := slices.IndexFunc(*open, func(c OpenCall[T]) bool { return c.ID == p.CallID })
	if p.CallID == "" {
		at = slices.IndexFunc(*open, func(c OpenCall[T]) bool { return c.Name == p.ToolName })
		if at < 0 && len(*open) > 0 {
			at = 0
		}
	}
	if at < 0 {
		return call, false
	}
	call = (*open)[at]
	*open = slices.Delete(*open, at, at+1)
	return call, true
}

// AppendTextElement writes an element of one text behind its beginning: {"type":"text","text":
func AppendTextElement(elements []jsontext.Value, prefix, text string) []jsontext.Value {
	if text == "" {
		return elements
	}
	b := make([]byte, 0, len(prefix)+len(text)+len(text)/8+len(`""}`))
	return append(elements, append(AppendText(append(b, prefix...), text), '}'))
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
	return Array(elements)
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
