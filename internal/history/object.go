package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
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
func ParseObject(raw []byte) (o Object, ok bool) { return parseObject(raw, lenient) }

// Fields is ParseObject for bytes that are known to be valid JSON, as all values in an
// Object are.
func Fields(raw []byte) (o Object, ok bool) {
	return parseObject(raw, lenient, jsontext.AllowDuplicateNames(true))
}

func parseObject(raw []byte, options ...jsontext.Options) (o Object, ok bool) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '{' {
		return nil, false
	}
	_, _ = d.ReadToken()
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		key, _ := Text(name)
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		end := int(d.InputOffset())
		o = append(o, Field{Key: key, Raw: json.RawMessage(raw[end-len(value) : end : end])})
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	_, err := d.ReadToken()
	return o, errors.Is(err, io.EOF)
}

// decoders are used again: a transcript has millions of objects.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

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
	return slices.DeleteFunc(slices.Clone(o), func(f Field) bool { return slices.Contains(keys, f.Key) })
}

// With returns the object with one field more, or with that field's value replaced.
func (o Object) With(key string, raw []byte) Object {
	return append(o.Without(key), Field{Key: key, Raw: raw})
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
	b := []byte{'{'}
	for i := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendText(b, o[i].Key)
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
