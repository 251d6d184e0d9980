// Package jsonx reads, compares and writes JSON whose bytes are kept: an object with its fields in order, and each
// value and string as it came. Its errors name the place in the input. The kernel, internal/session, marshals its own
// types with the standard library and does not import it.
package jsonx

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Member is one field of an object. Key is its name as text.
type Member struct {
	Key   string
	Value jsontext.Value
	odd   *string // the name as it is written, of one that is no Unicode text
}

// MemberOf returns the field of a name with a value as JSON.
func MemberOf(key string, value any) Member {
	return Member{Key: key, Value: jsontext.Value(session.JSONOf(value))}
}

// Odd reports whether the field's name is no Unicode text, so that Key does not find it.
func (m *Member) Odd() bool { return m.odd != nil }

// Object is a JSON object, its fields in order and their values as they came: slices of the text
// that they were parsed from, not copies.
type Object []Member

// ParseObject parses the fields of an object. A field that stands twice is rejected, since
// readers differ on which one counts. Codes: Malformed, Invalid, TooLarge.
func ParseObject[T ~[]byte](path string, raw T) (Object, error) {
	if KindOf(raw) != '{' {
		return nil, Errorf(session.Invalid, path, "must be an object, not %s", Describe(raw))
	}
	o, err := parseObject(raw, lenient)
	if err != nil {
		return nil, explain(path, raw, err)
	}
	return o, nil
}

// ReadObject parses one JSON object that fills raw but for white space. ok is false for anything else, also for
// an object in which a field stands twice.
func ReadObject(raw []byte) (o Object, ok bool) {
	o, err := parseObject(raw, lenient)
	return o, err == nil
}

// ReadFields is ReadObject for bytes that are known to be valid JSON, as all values in an Object are: it does not
// look for fields that stand twice.
func ReadFields(raw []byte) (o Object, ok bool) {
	o, err := parseObject(raw, lenient, jsontext.AllowDuplicateNames(true))
	return o, err == nil
}

// decoders are used again: a transcript has millions of objects.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

var (
	errKind   = errors.New("a value of another kind")
	errBehind = errors.New("more text behind the value")
)

func parseObject(raw []byte, options ...jsontext.Options) (o Object, err error) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '{' {
		return nil, errKind
	}
	_, _ = d.ReadToken()
	o = make(Object, 0, 4)
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m := Member{}
		key, err := jsontext.AppendUnquote(nil, name)
		if m.Key = string(key); err != nil {
			written := string(name)
			m.odd = &written
		}
		if m.Value, err = readValue(d, raw); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, readEnd(d)
}

// readValue returns the next value as a slice of the text that the decoder reads.
func readValue(d *jsontext.Decoder, text []byte) (jsontext.Value, error) {
	value, err := d.ReadValue()
	end := int(d.InputOffset())
	if err != nil {
		return nil, err
	}
	return text[end-len(value) : end : end], nil
}

// readEnd reads the end of an object or array, behind which the text ends.
func readEnd(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(err, errBehind)
	}
	return nil
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Object) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err == nil {
		*o, err = ParseObject("it", raw.Clone())
	}
	return err
}

// Get returns a field's value, nil if there is none. Of equal names the last one counts.
func (o Object) Get(key string) jsontext.Value {
	if i := o.index(key); i >= 0 {
		return o[i].Value
	}
	return nil
}

// Text returns a field that is a string which a column can hold as it is, "" for any other.
func (o Object) Text(key string) string { return ExactText(o.Get(key)) }

// String returns a field that is a string as Text reads it, "" for any other.
func (o Object) String(key string) string {
	text, _ := Text(o.Get(key))
	return text
}

// First returns the value of the first of some keys that the object has; nil: it has none of them.
func (o Object) First(keys ...string) jsontext.Value {
	for _, key := range keys {
		if v := o.Get(key); v != nil {
			return v
		}
	}
	return nil
}

// Inner returns the object under a name, nil if there is none.
func (o Object) Inner(key string) Object {
	inner, _ := ReadFields(o.Get(key))
	return inner
}

// Has reports whether there is such a field.
func (o Object) Has(key string) bool { return o.index(key) >= 0 }

// Without returns the fields whose names are not among keys.
func (o Object) Without(keys ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return !m.Odd() && slices.Contains(keys, m.Key) })
}

// Only returns the fields whose names are among keys.
func (o Object) Only(keys ...string) (some Object) {
	for i := range o {
		if !o[i].Odd() && slices.Contains(keys, o[i].Key) {
			some = append(some, o[i])
		}
	}
	return some
}

// With returns the object with a field at its end, in place of one of that name.
func (o Object) With(key string, value []byte) Object {
	return append(o.Without(key), Member{Key: key, Value: value})
}

// WithRest returns the object with a field for the members of another object, unless it has none.
func (o Object) WithRest(key string, rest []byte) Object {
	if members, _ := ReadFields(rest); len(members) > 0 {
		o = append(o, Member{Key: key, Value: rest})
	}
	return o
}

// Drop removes a field.
func (o *Object) Drop(key string) {
	if i := o.index(key); i >= 0 {
		*o = slices.Delete(*o, i, i+1)
	}
}

// Set sets a field, in the place of one of that name or at the end.
func (o *Object) Set(key string, value []byte) {
	if i := o.index(key); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, Member{Key: key, Value: value})
}

// Change sets each field of with to what value returns for its present value, nil if it has none, and the new
// one; nil drops the field. It finds all fields in one pass, where Set and Drop search for each name.
func (o *Object) Change(with []Member, value func(was, given jsontext.Value) jsontext.Value) {
	all := *o
	at := make(map[string]int, len(all))
	for i := range all {
		if !all[i].Odd() {
			at[all[i].Key] = i
		}
	}
	for _, m := range with {
		i, ok := at[m.Key]
		if m.Odd() || !ok {
			i = len(all)
			all = append(all, Member{Key: m.Key, odd: m.odd})
			if !m.Odd() {
				at[m.Key] = i
			}
		}
		all[i].Value = value(all[i].Value, m.Value)
	}
	*o = slices.DeleteFunc(all, func(m Member) bool { return m.Value == nil })
}

// SetText sets a field to a string.
func (o *Object) SetText(key, text string) { o.Set(key, Quote(text)) }

// Add sets fields: name, value, name, value … A string becomes a JSON string, raw JSON stays as it
// is, a list becomes an array. A value that is nil or an empty Maybe is left out.
func (o *Object) Add(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if raw := appendValue(nil, pairs[i+1]); len(raw) > 0 {
			o.Set(pairs[i].(string), raw)
		}
	}
}

// NewObject makes an object of the fields that Add takes.
func NewObject(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	o.Add(pairs...)
	return o
}

// Maybe is a string that is left out if it is empty.
type Maybe string

// Encode writes an object of the fields that Add takes.
func Encode(pairs ...any) jsontext.Value { return NewObject(pairs...).Value() }

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return AppendText(b, v)
	case Maybe:
		if v != "" {
			return AppendText(b, string(v))
		}
	case jsontext.Value:
		return append(b, v...)
	case []jsontext.Value:
		if v != nil {
			return appendArray(b, v)
		}
	case *bool:
		if v != nil {
			return strconv.AppendBool(b, *v)
		}
	default:
		panic("jsonx: a field is of a type that Encode does not write")
	}
	return b
}

// Value writes the object.
func (o Object) Value() jsontext.Value {
	size := 2
	for i := range o {
		size += len(o[i].Key) + len(o[i].Value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for i := range o {
		m := &o[i]
		if i > 0 {
			b = append(b, ',')
		}
		if m.odd != nil {
			b = append(b, *m.odd...)
		} else {
			b = AppendText(b, m.Key)
		}
		b = append(append(b, ':'), m.Value...)
	}
	return append(b, '}')
}

// Column writes the object for a column that may be NULL: an empty one is no value.
func (o Object) Column() session.JSON {
	if len(o) == 0 {
		return nil
	}
	return session.JSON(o.Value())
}

func (o Object) index(key string) int {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].Key == key && o[i].odd == nil {
			return i
		}
	}
	return -1
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Object) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteValue(o.Value()) }
