package history

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
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
	at := space(raw, 0)
	if at >= len(raw) || raw[at] != '{' {
		return nil, false
	}
	var few [usualFields]Field
	fields, end := checkFields(raw, at, 1, few[:0], nil)
	if end < 0 || space(raw, end) != len(raw) {
		return nil, false
	}
	return ownFields(fields), true
}

// Fields is ParseObject for bytes that are known to be valid JSON, as all values in an
// Object are.
func Fields(raw []byte) (o Object, ok bool) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	var few [usualFields]Field
	fields := few[:0]
	at := skipSpace(raw, 1)
	for raw[at] != '}' {
		end := skipString(raw, at)
		key := nameOf(raw[at:end])
		at = skipSpace(raw, skipSpace(raw, end)+1) // over the colon
		end = skipValue(raw, at)
		fields = append(fields, Field{Key: key, Raw: json.RawMessage(raw[at:end:end])})
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return ownFields(fields), true
}

// ownFields copies fields that were gathered on the stack, so that an object takes no more than it has.
func ownFields(fields []Field) Object {
	if len(fields) == 0 {
		return nil
	}
	return append(Object(nil), fields...)
}

// usualFields is how many fields an object of a transcript mostly has at most.
const usualFields = 16

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

// JSONAs gives what JSON writes: raw, of which the object was read, where that is spelled so.
func (o Object) JSONAs(raw []byte) []byte {
	size := len(`{}`) - len(`,`)
	for i := range o {
		if !isPlainName(o[i].Key) {
			return o.JSON()
		}
		size += len(o[i].Key) + len(o[i].Raw) + len(`"":,`)
	}
	if len(o) == 0 || len(raw) != size { // there are escapes, or white space
		return o.JSON()
	}
	return raw
}

// appendName writes a name as JSON. Most are words, which need no encoder.
func appendName(b []byte, name string) []byte {
	if !isPlainName(name) {
		return append(b, session.JSONOf(name)...)
	}
	return append(append(append(b, '"'), name...), '"')
}

// isPlainName tells whether a name is the same in JSON.
func isPlainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Plain makes bytes that are no valid UTF-8, or hold NUL, storable as text.
func Plain(b []byte) string { return PlainText(string(b)) }

// PlainText is Plain of a text; most are storable as they are.
func PlainText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
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
