package wire

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// MaxExtraDepth is how deep a JSON value may be nested to stand in an extra column: SQLite
// refuses a text of more than 1,000 levels, and an extra wraps it in a few of its own.
const MaxExtraDepth = 900

// Extra is the extra column of a message or a part that came in a provider's form: what the
// wire said and no column does. docs/schema.md describes the keys.
type Extra struct {
	Media

	// What the provider said, in its words and as it came.
	ID               jsontext.Value `json:"id,omitzero"`
	StopReason       jsontext.Value `json:"stop_reason,omitzero"`
	Usage            jsontext.Value `json:"usage,omitzero"`
	Signature        jsontext.Value `json:"signature,omitzero"`        // of thinking
	Data             jsontext.Value `json:"data,omitzero"`             // of redacted thinking: encrypted
	ThoughtSignature jsontext.Value `json:"thoughtSignature,omitzero"` // Gemini's
	// Responses: fields of the item that the part begins
	Item *jsonx.Object `json:"item,omitzero"`
	// Chat Completions: what stood around a reply's message
	Choice    *jsonx.Object `json:"choice,omitzero"`
	Candidate *jsonx.Object `json:"candidate,omitzero"` // Gemini: what stood around a reply's content
	Response  *jsonx.Object `json:"response,omitzero"`  // what stood around all of it

	// How it was said, where that is not as usual.
	// of a content, a text, arguments or a result: absent, null, empty, string, array
	Shape string `json:"shape,omitzero"`
	Role  string `json:"role,omitzero"` // in the wire's word, where the column has another
	// of a block, an item or a call, where the part's kind does not tell
	Type  string `json:"type,omitzero"`
	Field string `json:"field,omitzero"` // of the wire, which the part was
	Of    string `json:"of,omitzero"`    // in which object or list that stood
	Key   string `json:"key,omitzero"`   // Gemini: the one field of a response that is a text
	// of a result: which element of its content is its text, -1: none; the first, if not said
	At        *int           `json:"at,omitzero"`
	Prefix    string         `json:"prefix,omitzero"`   // of a data URL, before its bytes
	Encoding  string         `json:"encoding,omitzero"` // "url": bytes that came in that alphabet of base64
	Made      bool           `json:"made,omitzero"`     // the call's id, or all of the part, is not the wire's
	Nested    bool           `json:"nested,omitzero"`   // Gemini: the part stood within the response before it
	NoContent bool           `json:"no_content,omitzero"`
	Continues bool           `json:"continues,omitzero"` // Responses, ui: it belongs to the entry of the message before it
	Messages  int            `json:"messages,omitzero"`  // ui: how many messages the entry is, if not one
	Step      bool           `json:"step,omitzero"`      // ui: a step-start stood before the part
	Wire      *Entry         `json:"wire,omitzero"`
	Text      jsonx.Object   `json:"text,omitempty"`   // Anthropic: rest of the element that a result's text was
	Rest      jsonx.Object   `json:"rest,omitempty"`   // what this version does not know, as it came
	Fields    jsonx.Object   `json:"fields,omitempty"` // the name of rest in exports of older versions
	Raw       jsontext.Value `json:"raw,omitzero"`     // all of it, where the other keys do not give it back
}

// Entry says which entry of the wire a message is a part of, and where in it its parts stood.
type Entry struct {
	Entry jsontext.Value `json:"entry"` // the same in all messages of the entry
	At    []int          `json:"at,omitempty"`
}

// Weave puts the results of an entry back to their places among its other blocks.
func (e *Entry) Weave(results, others []jsontext.Value) []jsontext.Value {
	for i, r := range results {
		place := len(others)
		if i < len(e.At) {
			place = min(e.At[i], place)
		}
		others = slices.Insert(others, place, r)
	}
	return others
}

// Is reports whether two messages are of one entry.
func (e *Entry) Is(other *Entry) bool {
	return e != nil && other != nil && bytes.Equal(e.Entry, other.Entry)
}

// JSON writes the extra, nil if it says nothing. Strings in raw values stay as they came.
func (x *Extra) JSON() session.JSON {
	if reflect.ValueOf(x).Elem().IsZero() {
		return nil
	}
	b, err := json.Marshal(x, jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		panic("wire: an extra cannot be written: " + err.Error()) // its values were checked when they were read
	}
	if len(b) == len(`{}`) {
		return nil
	}
	return b
}

// ReadExtra reads the extra column of a message or a part. Codes: Internal.
func ReadExtra(raw session.JSON, into *Extra) error {
	if len(raw) == 0 {
		return nil
	}
	if err := jsonx.Unmarshal(raw, into); err != nil {
		return session.Errorf(session.Internal, "stored extra: %w", err)
	}
	into.Rest.Merge(&into.Fields)
	into.Fields = jsonx.Object{}
	return nil
}

// Part is a part with its extra open.
type Part struct {
	session.Part
	X Extra
}

// Message is a message with its extra, and those of its parts, open.
type Message struct {
	session.Message
	X     Extra
	Parts []Part
}

// NewMessage makes a message of talk in a dialect.
func NewMessage(dialect string, role session.Role, origin session.Origin) Message {
	return Message{Message: session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, Dialect: dialect,
		InContext: true, Display: true,
	}}
}

// Open reads the extras of a message to export. Codes: Internal.
func Open(m *session.Message) (Message, error) {
	var out Message
	err := out.open(m, true)
	for i := range out.Parts {
		if p := &out.Parts[i]; err == nil && p.Kind == session.PartData && p.Blob == nil && p.X.Item == nil &&
			len(p.X.Raw) == 0 {
			err = session.Errorf(session.Internal, "part %d of message %s of kind %s holds nothing to export", p.Idx, m.ID,
				p.Kind)
		}
	}
	return out, err
}

// OpenEntry opens the first message and, where it is half of an entry of the wire, the second,
// which holds the other half. Codes: Internal.
func OpenEntry(msgs []session.Message) ([]Message, error) {
	m, err := Open(&msgs[0])
	if err != nil || m.X.Wire == nil {
		return []Message{m}, err
	}
	if len(msgs) > 1 && msgs[1].Dialect == m.Dialect && msgs[1].Role == session.User {
		other, err := Open(&msgs[1])
		if err != nil {
			return nil, err
		}
		if m.X.Wire.Is(other.X.Wire) {
			return []Message{m, other}, nil
		}
	}
	m.X.Raw = nil // it holds both halves
	return []Message{m}, nil
}

// open makes m a message and reads its extras if they are of a dialect. It reuses m.Parts.
func (m *Message) open(of *session.Message, extras bool) error {
	clear(m.Parts)
	*m = Message{Message: *of, Parts: slices.Grow(m.Parts[:0], len(of.Parts))[:len(of.Parts)]}
	if extras {
		if err := ReadExtra(of.Extra, &m.X); err != nil {
			return session.Errorf(session.Internal, "message %s: %w", of.ID, err)
		}
	}
	for i := range of.Parts {
		p := &m.Parts[i]
		p.Part = of.Parts[i]
		if err := Loaded(&p.Part); err != nil {
			return err
		}
		if !extras {
			continue
		}
		if err := ReadExtra(p.Extra, &p.X); err != nil {
			return session.Errorf(session.Internal, "part %d of message %s: %w", p.Idx, of.ID, err)
		}
	}
	return nil
}

// Close writes the extras, but for those that a form wrote itself.
func (m *Message) Close() session.Message {
	m.Extra = m.X.JSON()
	m.Message.Parts = nil
	if len(m.Parts) > 0 {
		m.Message.Parts = make([]session.Part, len(m.Parts))
	}
	for i := range m.Parts {
		if len(m.Parts[i].Extra) == 0 {
			m.Parts[i].Extra = m.Parts[i].X.JSON()
		}
		m.Message.Parts[i] = m.Parts[i].Part
	}
	return m.Message
}

// Data makes a part that keeps a value as it came: in its extra, or as its blob where that is
// deep or large.
func Data(raw jsontext.Value, x Extra) Part {
	p := Part{Part: session.Part{Kind: session.PartData}, X: x}
	if IsLarge(raw) {
		Attach(&p.Part, Blob("application/json", slices.Clone(raw)))
	} else {
		p.X.Raw = raw
	}
	return p
}

// Keep compares the part's own JSON with its encoding and stores the difference in extra.rest,
// or all of it in extra.raw where there is no such difference. Codes: TooLarge.
func (p *Part) Keep(path string, raw jsontext.Value, original *jsonx.Object, encoded jsonx.Object) error {
	rest, ok := jsonx.Rest(original, &encoded)
	if ok {
		p.X.Rest = rest
		return CheckFits(rest, path)
	}
	p.X.Raw = withMarks(raw, []Part{*p})
	return CheckFits(*original, path)
}

// withMarks puts marks for the bytes of parts into their JSON, and withBytes the bytes again.
func withMarks(raw []byte, parts []Part) jsontext.Value { return replaceBlobs(raw, parts, true) }
func withBytes(raw []byte, parts []Part) jsontext.Value { return replaceBlobs(raw, parts, false) }

func replaceBlobs(raw []byte, parts []Part, marks bool) jsontext.Value {
	for _, p := range parts {
		if p.Blob == nil {
			continue
		}
		from, to := base64.StdEncoding.AppendEncode(nil, p.Blob.Data), []byte("blob:"+p.Blob.SHA256)
		if !marks {
			from, to = to, from
		}
		raw = bytes.ReplaceAll(raw, from, to)
	}
	return raw
}

// JSON completes the encoding of the part with its remainder.
func (p *Part) JSON(encoded jsonx.Object) jsontext.Value {
	switch {
	case p.Kind == session.PartData && p.Blob != nil:
		return p.Blob.Data
	case len(p.X.Raw) > 0:
		return withBytes(p.X.Raw, []Part{*p})
	}
	encoded.Merge(&p.X.Rest)
	return encoded.Value()
}

// Raw returns the value that a part of data keeps.
func (p *Part) Raw() jsontext.Value { return p.JSON(jsonx.Object{}) }

// Keep compares the message's own JSON with its encoding and stores the difference in extra.rest.
// It returns fields that are too large for that as parts. Codes: TooLarge.
func (m *Message) Keep(path string, original, encoded jsonx.Object) ([]Part, error) {
	rest, ok := jsonx.Rest(&original, &encoded)
	if !ok {
		if err := CheckFits(original, path); err != nil {
			return nil, err
		}
		m.X.Raw = withMarks(original.Value(), m.Parts)
		return nil, nil
	}
	large, err := TakeLarge(&rest, path, "")
	m.X.Rest = rest
	return large, err
}

// JSON completes the encoding of the message with its remainder.
func (m *Message) JSON(encoded jsonx.Object) jsonx.Object {
	if len(m.X.Raw) > 0 {
		if o, err := jsonx.ParseObject("", withBytes(m.X.Raw, m.Parts)); err == nil {
			return o
		}
	}
	encoded.Merge(&m.X.Rest)
	return encoded
}

// IsLarge reports whether a value belongs in a blob: over session.BlobThreshold or nested
// deeper than MaxExtraDepth.
func IsLarge[T ~[]byte](raw T) bool {
	return len(raw) > session.BlobThreshold || jsonx.DeeperThan(raw, MaxExtraDepth)
}

// CheckFits rejects an object with a field, or a field of an object in it, that is nested too deep for
// an extra column. Codes: TooLarge.
func CheckFits(o jsonx.Object, path string) error {
	for _, m := range o {
		if !jsonx.DeeperThan(m.Value, MaxExtraDepth) {
			continue
		}
		at := jsonx.Join(path, m.Key)
		if inner, err := jsonx.ParseObject(at, m.Value); err == nil {
			if err := CheckFits(inner, at); err != nil {
				return err
			}
		}
		return jsonx.Errorf(session.TooLarge, at, "is nested deeper than %d levels", MaxExtraDepth)
	}
	return nil
}

// TakeLarge removes the fields that an extra should not hold, being deep or large, and returns each
// as a part that keeps it; of names the object that they stood in. One whose name a part cannot
// keep is rejected. Codes: TooLarge.
func TakeLarge(o *jsonx.Object, path, of string) ([]Part, error) {
	var parts []Part
	var fits jsonx.Object
	for _, m := range *o {
		switch {
		case !IsLarge(m.Value):
			fits = append(fits, m)
		case m.Odd() || m.Key == "" || strings.ContainsRune(m.Key, 0):
			return nil, jsonx.Errorf(session.TooLarge, jsonx.Join(path, m.Key),
				"is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, MaxExtraDepth)
		default:
			parts = append(parts, Data(m.Value, Extra{Field: m.Key, Of: of}))
		}
	}
	if parts != nil {
		*o = fits
	}
	return parts, nil
}
