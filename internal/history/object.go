package history

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Object is a JSON object as it stands in a source: its fields in their order, each value
// with its own bytes. Values are slices of the input, not copies.
type Object []Field

// Field is one member of an Object.
type Field struct {
	Key string
	Raw json.RawMessage
}

// ParseObject reads one JSON object, in UTF-8, that fills raw but for white space. ok is
// false for anything else. Names count exactly, unlike in encoding/json.
func ParseObject(raw []byte) (o Object, ok bool) {
	if !Valid(raw) {
		return nil, false
	}
	return Fields(raw)
}

// Fields is ParseObject for bytes that are known to be valid JSON, as all values in an
// Object are.
func Fields(raw []byte) (o Object, ok bool) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	at := skipSpace(raw, 1)
	if raw[at] == '}' {
		return nil, true
	}
	o = make(Object, 0, usualFields)
	for raw[at] != '}' {
		end := skipValue(raw, at)
		key, _ := Text(raw[at:end])
		at = skipSpace(raw, skipSpace(raw, end)+1) // over the colon
		end = skipValue(raw, at)
		o = append(o, Field{Key: key, Raw: json.RawMessage(raw[at:end:end])})
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return o, true
}

// usualFields is how many fields an object of a transcript mostly has at most.
const usualFields = 10

// Elements gives the values of an array in bytes that are known to be valid JSON.
func Elements(raw []byte) (elements []json.RawMessage, ok bool) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	at := skipSpace(raw, 1)
	for raw[at] != ']' {
		end := skipValue(raw, at)
		elements = append(elements, json.RawMessage(raw[at:end:end]))
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return elements, true
}

// Get gives the value of a field, nil if there is none. Of equal names the last one counts.
func (o Object) Get(key string) json.RawMessage {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].Key == key {
			return o[i].Raw
		}
	}
	return nil
}

// String gives the text of a field, "" if it is absent or no string.
func (o Object) String(key string) string {
	s, _ := Text(o.Get(key))
	return s
}

// Without gives the fields whose names are not among keys.
func (o Object) Without(keys ...string) Object {
	if !o.hasOneOf(keys) {
		return o
	}
	rest := make(Object, 0, len(o)-1)
next:
	for _, f := range o {
		for _, key := range keys {
			if f.Key == key {
				continue next
			}
		}
		rest = append(rest, f)
	}
	return rest
}

func (o Object) hasOneOf(keys []string) bool {
	for i := range o {
		for _, key := range keys {
			if o[i].Key == key {
				return true
			}
		}
	}
	return false
}

// With gives the object with one field more, or with that field's value replaced.
func (o Object) With(key string, raw []byte) Object {
	return append(slices.Clip(o.Without(key)), Field{Key: key, Raw: raw})
}

// JSON writes the object; an empty one is no value.
func (o Object) JSON() session.JSON {
	if len(o) == 0 {
		return nil
	}
	size := 2
	for i := range o {
		size += len(o[i].Key) + len(o[i].Raw) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, o[i].Key)
		b = append(append(b, ':'), o[i].Raw...)
	}
	return append(b, '}')
}

// appendName writes a name as JSON. Most are words, which need no encoder.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return append(b, session.JSONOf(name)...)
		}
	}
	return append(append(append(b, '"'), name...), '"')
}

// Text reads a JSON string into text that the database can hold. exact is false when the
// text is not all that the value says: it is no string, or it held a NUL or half of a
// surrogate pair, which are replaced by U+FFFD. Then the value itself must be kept too.
func Text(raw []byte) (text string, exact bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	escape := bytes.IndexByte(inner, '\\')
	if escape < 0 {
		return string(inner), true
	}
	var b strings.Builder
	b.Grow(len(inner))
	exact = true
	for ; escape >= 0; escape = bytes.IndexByte(inner, '\\') {
		b.Write(inner[:escape])
		inner = inner[escape+1:]
		if inner[0] != 'u' {
			b.WriteByte(escaped(inner[0]))
			inner = inner[1:]
			continue
		}
		r := hex4(inner[1:])
		inner = inner[5:]
		if utf16.IsSurrogate(r) {
			var low rune
			if len(inner) >= 6 && inner[0] == '\\' && inner[1] == 'u' {
				low = hex4(inner[2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				inner = inner[6:]
			} else {
				exact = false
			}
		}
		if r == 0 {
			r, exact = utf8.RuneError, false
		}
		b.WriteRune(r)
	}
	b.Write(inner)
	return b.String(), exact
}

// escaped gives what a letter after a backslash stands for.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// hex4 reads the four digits of a \u escape.
func hex4(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Plain makes bytes that are no valid UTF-8, or hold NUL, storable as text.
func Plain(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}

// DeeperThan tells whether objects and arrays in valid JSON are nested deeper than depth.
func DeeperThan(raw []byte, depth int) bool {
	return bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) > depth && Depth(raw) > depth
}

// Depth tells how deep the objects and arrays in valid JSON are nested.
func Depth(raw []byte) int {
	depth, deepest := 0, 0
	for at := 0; at < len(raw); {
		switch raw[at] {
		case '"':
			at = skipString(raw, at)
			continue
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
		at++
	}
	return deepest
}

func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

func skipSpace(raw []byte, at int) int {
	for raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r' {
		at++
	}
	return at
}

// skipValue gives the end of the value that begins at at. The input is valid JSON.
func skipValue(raw []byte, at int) int {
	switch raw[at] {
	case '"':
		return skipString(raw, at)
	case '{', '[':
		depth := 0
		for {
			switch raw[at] {
			case '"':
				at = skipString(raw, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			at++
			if depth == 0 {
				return at
			}
		}
	}
	for at < len(raw) && !endsScalar(raw[at]) {
		at++
	}
	return at
}

func endsScalar(b byte) bool {
	return b == ',' || b == ']' || b == '}' || b == ' ' || b == '\t' || b == '\r' || b == '\n'
}

// skipString gives the end of the string whose quote is at at. It looks for each quote once,
// however many escapes stand before it.
func skipString(raw []byte, at int) int {
	at++
	quote := at + bytes.IndexByte(raw[at:], '"')
	for {
		escape := bytes.IndexByte(raw[at:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		if at += escape + 2; at > quote { // the quote was escaped
			quote = at + bytes.IndexByte(raw[at:], '"')
		}
	}
}
