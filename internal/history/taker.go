package history

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Taker removes the fields of an object that columns hold; the rest stays for extra. It does not
// change the object that it was made of.
type Taker struct{ jsonx.Object }

// Take takes a field whatever it is, nil if there is none.
func (t *Taker) Take(key string) []byte {
	raw := t.Get(key)
	if raw != nil {
		t.Object = t.Without(key)
	}
	return raw
}

// Text takes a field that is a string. One that text cannot hold exactly stays as well, and
// so does an empty one, since an empty column says that there was none.
func (t *Taker) Text(key string) string {
	text, exact := jsonx.Text(t.Get(key))
	if exact && text != "" {
		t.Take(key)
	}
	return text
}

// Base64 takes a field that is base64 of some bytes and encodes to the same text again.
func (t *Taker) Base64(key string) (data []byte, ok bool) {
	raw := t.Get(key)
	if len(raw) < 3 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return nil, false
	}
	if data, ok = wire.Base64(string(raw[1 : len(raw)-1])); ok {
		t.Take(key)
	}
	return data, ok
}

// MediaKind returns the kind of part that a media type makes.
func MediaKind(mime string) session.PartKind {
	switch media, _, _ := strings.Cut(mime, "/"); media {
	case "image":
		return session.PartImage
	case "audio":
		return session.PartAudio
	}
	return session.PartFile
}

// RawPart holds a value that no other kind of part can, under a name.
func RawPart(name string, raw []byte) session.Part {
	return session.Part{Kind: session.PartData, Extra: jsonx.Object{{Key: name, Value: raw}}.Column()}
}

// replaced is a message of a Replacement, in the words of the kernel.
type replaced struct {
	Kind     session.Kind   `json:"kind"`
	Role     session.Role   `json:"role"`
	Origin   session.Origin `json:"origin"`
	Dialect  string         `json:"dialect,omitempty"`
	Finish   session.Finish `json:"finish,omitempty"`
	Provider string         `json:"provider,omitempty"`
	Model    string         `json:"model,omitempty"`
	Parts    []session.Part `json:"parts"`
}

// Replacement is a compaction's, of the messages that a program went on with.
func Replacement(messages []session.Message) session.JSON {
	items := []replaced{}
	for _, m := range messages {
		items = append(items, replaced{m.Kind, m.Role, m.Origin, m.Dialect, m.Finish, m.Provider, m.Model, m.Parts})
	}
	return session.JSONOf(items)
}

// ArgumentsOf returns a call's arguments as an object, as the programs keep them; any other text becomes a
// field of one.
func ArgumentsOf(p *session.Part) jsontext.Value {
	if _, ok := jsonx.ReadObject([]byte(p.Arguments)); ok {
		return jsontext.Value(p.Arguments)
	}
	if p.Arguments == "" {
		return jsontext.Value("{}")
	}
	return jsonx.Object{jsonx.MemberOf("arguments", p.Arguments)}.Value()
}

// Number parses a JSON number, or a number in a JSON string.
func Number(raw []byte) (n float64, ok bool) {
	if text, is := jsonx.Text(raw); is {
		raw = []byte(text)
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Count returns a number of tokens, 0 for anything else.
func Count(raw []byte) int64 {
	n, ok := Number(raw)
	if !ok || n < 0 || n > 1e15 {
		return 0
	}
	return int64(n)
}

// NanoUSD reads an amount of US dollars. ok is false for what cannot be one.
func NanoUSD(raw []byte) (nano int64, ok bool) {
	usd, ok := Number(raw)
	if !ok || usd < 0 || usd > 1e9 {
		return 0, false
	}
	return int64(math.Round(usd * 1e9)), true
}

// UnixMilli reads a number of milliseconds since 1970, up to the year 9999.
func UnixMilli(raw []byte) (at session.Time, ok bool) {
	ms, ok := Number(raw)
	if !ok || ms <= 0 || ms > 253402300799999 {
		return session.Time{}, false
	}
	return session.At(time.UnixMilli(int64(math.Round(ms)))), true
}

// KnownTime is TimeOf for what may have no time: nil then.
func KnownTime(raw []byte) *session.Time {
	if at := TimeOf(raw); !at.IsZero() {
		return &at
	}
	return nil
}

// TimeOf reads a time in any of the forms in which programs write one: RFC 3339, with a space or without a zone, or a
// number of seconds or milliseconds since 1970. It is zero for anything else.
func TimeOf(raw []byte) session.Time {
	text, isText := jsonx.Text(raw)
	if isText {
		if at, ok := ParseTime(text); ok {
			return at
		}
		for _, layout := range [...]string{"2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", time.DateTime} {
			if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 {
				return session.At(at)
			}
		}
	}
	n, ok := Number(raw)
	if !ok || n <= 0 {
		return session.Time{}
	}
	const newestSeconds = 1e11 // the year 5138; as milliseconds it is 1973
	if n < newestSeconds {
		n *= 1000
	}
	if n > 253402300799999 {
		return session.Time{}
	}
	return session.At(time.UnixMilli(int64(math.Round(n))))
}
