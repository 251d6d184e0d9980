package history

import (
	"bytes"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient reads a value that is known to be JSON: text that is no UTF-8 was replaced, or is kept beside.
var lenient = jsontext.AllowInvalidUTF8(true)

// Unmarshal decodes one JSON value strictly, but for text that is no UTF-8: it is replaced.
func Unmarshal(raw []byte, v any) error { return jsonv2.Unmarshal(raw, v, lenient) }

// Valid reports whether raw is one JSON value: no name occurs twice in an object, and it is nested
// no deeper than 10,000 levels.
func Valid(raw []byte) bool { return jsontext.Value(raw).IsValid(lenient) }

// Text reads a JSON string into text that the database can hold. exact is false when the
// text is not all that the value says: it is no string, or it held a NUL or half of a
// surrogate pair, which are replaced by U+FFFD. Then the value itself must be kept too.
func Text(raw []byte) (text string, exact bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	decoded, err := jsontext.AppendUnquote(nil, raw)
	text = string(decoded)
	if strings.IndexByte(text, 0) >= 0 {
		return strings.ReplaceAll(text, "\x00", string(utf8.RuneError)), false
	}
	return text, err == nil
}

// Plain makes text that is no valid UTF-8, or holds NUL, storable; most is storable as it is.
func Plain[T ~string | ~[]byte](text T) string {
	s := string(text)
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}
