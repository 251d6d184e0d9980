package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

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

// Member returns the field of a name with a value as JSON.
func Member(key string, value any) Field {
	return Field{Key: key, Raw: json.RawMessage(session.JSONOf(value))}
}

// ParseObject reads one JSON object, in UTF-8, that fills raw but for white space. ok is
// false for anything else, also for one with a name that occurs twice.
func ParseObject(raw []byte) (o Object, ok bool) {
	o, _, ok = parseObject(raw, "", lenient)
	return o, ok
}

// Fields is ParseObject for bytes that are known to be valid JSON, as all values in an
// Object are.
func Fields(raw []byte) (o Object, ok bool) {
	o, _, ok = parseObject(raw, "", lenient, jsontext.AllowDuplicateNames(true))
	return o, ok
}

// parseObject parses an object and, in the same pass, the object under the name inside.
func parseObject(raw []byte, inside string, options ...jsontext.Options) (o, inner Object, ok bool) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '{' {
		return nil, nil, false
	}
	if o, inner, ok = readMembers(d, raw, inside); !ok {
		return nil, nil, false
	}
	_, err := d.ReadToken()
	return o, inner, errors.Is(err, io.EOF)
}

// readMembers parses the object of raw that the decoder is at.
func readMembers(d *jsontext.Decoder, raw []byte, inside string) (o, inner Object, ok bool) {
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, false
	}
	o = make(Object, 0, usualFields)
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		key, _ := Text(name)
		if inside != "" && key == inside && d.PeekKind() == '{' {
			from := int(d.InputOffset())
			from += bytes.IndexByte(raw[from:], '{')
			if inner, _, ok = readMembers(d, raw, ""); !ok {
				return nil, nil, false
			}
			end := int(d.InputOffset())
			o = append(o, Field{Key: key, Raw: json.RawMessage(raw[from:end:end])})
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		end := int(d.InputOffset())
		o = append(o, Field{Key: key, Raw: json.RawMessage(raw[end-len(value) : end : end])})
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, false
	}
	if len(o) == 0 {
		o = nil
	}
	return o, inner, true
}

// decoders are used again: a transcript has millions of objects.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// usualFields is how many fields most objects of a transcript have at most.
const usualFields = 8

// Elements returns the values of an array in bytes that are known to be valid JSON.
func Elements(raw []byte) (elements []json.RawMessage, ok bool) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), lenient, jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '[' {
		return nil, false
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		end := int(d.InputOffset())
		elements = append(elements, json.RawMessage(raw[end-len(value):end:end]))
	}
	return elements, true
}

// Get returns the value of a field, nil if there is none. Of equal names the last one counts.
func (o Object) Get(key string) json.RawMessage {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].Key == key {
			return o[i].Raw
		}
	}
	return nil
}

// String returns the text of a field, "" if it is absent or no string.
func (o Object) String(key string) string {
	s, _ := Text(o.Get(key))
	return s
}

// Inner returns the object under a name, nil if there is none.
func (o Object) Inner(key string) Object {
	inner, _ := Fields(o.Get(key))
	return inner
}

// Without returns the fields whose names are not among keys.
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

// With returns the object with one field more, or with that field's value replaced.
func (o Object) With(key string, raw []byte) Object {
	return append(slices.Clip(o.Without(key)), Field{Key: key, Raw: raw})
}

// WithRest returns the object with a field for the members of another object, unless it has none.
func (o Object) WithRest(key string, rest []byte) Object {
	if members, _ := Fields(rest); len(members) > 0 {
		o = append(o, Field{Key: key, Raw: rest})
	}
	return o
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

// Whole is JSON, and {} for an empty object.
func (o Object) Whole() json.RawMessage {
	if len(o) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(o.JSON())
}

// JSONAs returns what JSON writes: raw, of which the object was read, where that is spelled so.
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

// isPlainName reports whether a name is the same in JSON.
func isPlainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
