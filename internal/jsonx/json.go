package jsonx

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// lenient reads text that is no UTF-8, and escapes of half a surrogate pair, as U+FFFD. Fields that stand twice
// stay an error.
var lenient = jsontext.AllowInvalidUTF8(true)

// Unmarshal decodes one JSON value strictly, but for text that is no UTF-8: it is read with U+FFFD.
func Unmarshal(raw []byte, v any) error { return json.Unmarshal(raw, v, lenient) }

// Valid reports whether raw is one JSON value: no field stands twice in an object, and it is nested no deeper than
// 10,000 levels.
func Valid(raw []byte) bool { return jsontext.Value(raw).IsValid(lenient) }

// Check rejects bytes that are not UTF-8 or not JSON, or nested deeper than can be read.
// Codes: Malformed, Invalid, TooLarge.
func Check[T ~[]byte](path string, raw T) error {
	if !utf8.Valid(raw) {
		return Errorf(session.Malformed, path, "holds bytes that are not UTF-8")
	}
	var value jsontext.Value
	if err := Unmarshal(raw, &value); err != nil {
		return explain(path, raw, err)
	}
	return nil
}

// explain says in the words of the API what the JSON library found wrong with the value at a path of the input, and
// names the value at fault. Codes: Malformed, Invalid, TooLarge.
func explain(path string, raw []byte, err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return Errorf(session.Invalid, path+fields(syntax.JSONPointer), "stands twice")
	case Depth(raw) >= maxDepth:
		return Errorf(session.TooLarge, path, "is nested deeper than %d levels", maxDepth)
	}
	return Errorf(session.Malformed, path, "is not JSON")
}

// maxDepth is how deep the JSON library reads.
const maxDepth = 10_000

// Path writes a JSON pointer as a path: content[0].text.
func Path(pointer jsontext.Pointer) string { return strings.TrimPrefix(fields(pointer), ".") }

// fields is Path behind another one: .content[0].text.
func fields(pointer jsontext.Pointer) string {
	var b strings.Builder
	for name := range pointer.Tokens() {
		if isIndex(name) {
			b.WriteString("[" + name + "]")
		} else {
			b.WriteString("." + Clip(name))
		}
	}
	return b.String()
}

func isIndex(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// KindOf returns what a JSON value is by its first byte: one of { [ " t f n, or 0 for a number.
// It returns n for an empty value, which stands for none.
func KindOf[T ~[]byte](raw T) byte {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[', '"', 't', 'f', 'n':
			return c
		default:
			return 0
		}
	}
	return 'n'
}

// IsNull reports whether a value is null or not there.
func IsNull[T ~[]byte](raw T) bool { return KindOf(raw) == 'n' }

// HasElements reports whether a value is an array with something in it.
func HasElements[T ~[]byte](raw T) bool {
	return KindOf(raw) == '[' && len(bytes.TrimSpace(bytes.TrimSpace(raw)[1:])) > 1
}

// Describe names the kind of a value, for an error.
func Describe[T ~[]byte](raw T) string {
	switch kind := KindOf(raw); {
	case len(raw) == 0:
		return "missing"
	case kind == '{':
		return "an object"
	case kind == '[':
		return "an array"
	case kind == '"':
		return "a string"
	case kind == 't', kind == 'f':
		return "a boolean"
	case kind == 'n':
		return "null"
	}
	return "a number"
}

// Depth returns how many arrays and objects stand in one another, as far as the bytes are JSON.
func Depth[T ~[]byte](raw T) int {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) == 0 {
		return 0
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), lenient)
	deepest := 0
	for {
		if _, err := dec.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, dec.StackDepth())
	}
}

// DeeperThan reports whether objects and arrays in valid JSON are nested deeper than depth.
func DeeperThan[T ~[]byte](raw T, depth int) bool {
	return bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) > depth && Depth(raw) > depth
}

// ParseArray returns the elements of an array. Codes: Malformed, Invalid, TooLarge.
func ParseArray[T ~[]byte](path string, raw T) ([]jsontext.Value, error) {
	if KindOf(raw) != '[' {
		return nil, Errorf(session.Invalid, path, "must be an array, not %s", Describe(raw))
	}
	elements, err := parseArray(raw, lenient)
	if err != nil {
		return nil, explain(path, raw, err)
	}
	return elements, nil
}

// ReadArray returns the elements of an array in bytes that are known to be valid JSON.
func ReadArray(raw []byte) (elements []jsontext.Value, ok bool) {
	elements, err := parseArray(raw, lenient, jsontext.AllowDuplicateNames(true))
	return elements, err == nil
}

// ReadObjects returns the objects in an array in bytes that are known to be valid JSON, without its other elements.
func ReadObjects(raw []byte) (objects []Object) {
	elements, _ := ReadArray(raw)
	for _, element := range elements {
		if o, ok := ReadFields(element); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

func parseArray(raw []byte, options ...jsontext.Options) (elements []jsontext.Value, err error) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '[' {
		return nil, errKind
	}
	_, _ = d.ReadToken()
	for d.PeekKind() != ']' {
		value, err := readValue(d, raw)
		if err != nil {
			return nil, err
		}
		elements = append(elements, value)
	}
	return elements, readEnd(d)
}

// Equal reports whether two texts are the same JSON value, numbers as they are written. Escapes
// of half a surrogate pair are equal only byte for byte.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind := KindOf(a)
	if kind != KindOf(b) {
		return false
	}
	switch kind {
	case '"':
		x, errX := jsontext.AppendUnquote(nil, bytes.TrimSpace(a))
		y, errY := jsontext.AppendUnquote(nil, bytes.TrimSpace(b))
		return errX == nil && errY == nil && bytes.Equal(x, y)
	case '[':
		x, errX := ParseArray("", a)
		y, errY := ParseArray("", b)
		if errX != nil || errY != nil || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case '{':
		x, errX := ParseObject("", a)
		y, errY := ParseObject("", b)
		rest, ok := Rest(&x, &y)
		return errX == nil && errY == nil && ok && len(rest) == 0
	}
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

// Text reads a JSON string. exact is false where UTF-8 or SQLite cannot hold what it says: a
// surrogate that stands alone or a NUL, each of which is U+FFFD in the text. A value that is no
// string is "" and not exact.
func Text[T ~[]byte](raw T) (text string, exact bool) {
	if KindOf(raw) != '"' {
		return "", false
	}
	quoted := bytes.TrimSpace(raw)
	if n := len(quoted) - 1; n > 0 && bytes.IndexByte(quoted[1:], '"') == n-1 && bytes.IndexByte(quoted, '\\') < 0 &&
		utf8.Valid(quoted) {
		return string(quoted[1:n]), true // most strings
	}
	b, err := jsontext.AppendUnquote(nil, quoted)
	if bytes.IndexByte(b, 0) < 0 {
		return string(b), err == nil
	}
	return strings.ReplaceAll(string(b), "\x00", "\uFFFD"), false
}

// ExactText returns a string that a column can hold as it is, "" for any other value.
func ExactText[T ~[]byte](raw T) string {
	if text, exact := Text(raw); exact {
		return text
	}
	return ""
}

// AppendText writes a string as JSON at the end of b. Bytes that are not UTF-8 become U+FFFD.
func AppendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// Quote writes a string as JSON.
func Quote(s string) jsontext.Value { return AppendText(nil, s) }

// Array writes an array.
func Array[T ~[]byte](elements []T) T { return appendArray(nil, elements) }

func appendArray[T ~[]byte](b []byte, elements []T) []byte {
	size := len(elements) + 2
	for _, e := range elements {
		size += len(e)
	}
	b = append(slices.Grow(b, size), '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// Clean writes halves of surrogate pairs as U+FFFD: providers take a request that holds one for
// no JSON.
func Clean(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return raw
	}
	clean, err := jsontext.AppendFormat(nil, raw, lenient, jsontext.AllowDuplicateNames(true))
	if err != nil {
		return raw
	}
	return clean
}

// IsObject reports whether a text is one JSON object, in which fields may stand twice.
func IsObject(text []byte) bool {
	return KindOf(text) == '{' && jsontext.Value(text).IsValid(lenient, jsontext.AllowDuplicateNames(true))
}

// Errorf makes an error about the value at a path of the input.
func Errorf(code session.Code, path, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return session.Errorf(code, "%s %s", path, what).At(path, "%s", what)
}

// Join returns the path of a field.
func Join(path, field string) string { return path + "." + Clip(field) }

// Index returns the path of an element.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Clip keeps a name from the input short enough for an error.
func Clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i > most {
			return s[:i] + "…"
		}
	}
	return s
}
