// Package jsonx reads, compares and writes JSON whose bytes are kept: an object with its fields in order, and each
// value and string as it came. Its errors name the place in the input. The kernel, internal/session, marshals its own
// types with the standard library and does not import it.
package jsonx

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// Member is one field of an object. Key is its name as text.
type Member struct {
	Key   string
	Value jsontext.Value
	name  []byte // as it is written, of a name that is no Unicode text
}

// Odd reports whether the field's name is no Unicode text, so that Key does not find it.
func (m *Member) Odd() bool { return m.name != nil }

// Object is a JSON object, its fields in order and their values as they came.
type Object []Member

// ParseObject reads the fields of an object. A field that stands twice is rejected, since
// readers differ on which one counts. Codes: Malformed, Invalid, TooLarge.
func ParseObject[T ~[]byte](path string, raw T) (Object, error) {
	var o Object
	if KindOf(raw) != '{' {
		return o, Errorf(session.Invalid, path, "must be an object, not %s", Describe(raw))
	}
	err := unmarshal(path, raw, &members{raw, &o})
	return o, err
}

// members reads an object. Values are slices of the text that they are read from.
type members struct {
	from []byte
	into *Object
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *members) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*m.into = make(Object, 0, 4)
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return err
		}
		f := Member{}
		key, err := jsontext.AppendUnquote(nil, name)
		if f.Key = string(key); err != nil {
			f.name = name.Clone()
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		f.Value = m.from[end-int64(len(value)) : end : end]
		*m.into = append(*m.into, f)
	}
	_, err := dec.ReadToken()
	return err
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Object) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err == nil {
		*o, err = ParseObject("it", raw.Clone())
	}
	return err
}

// Get returns a field's value, nil if there is none.
func (o *Object) Get(key string) jsontext.Value {
	if i := o.index(key); i >= 0 {
		return (*o)[i].Value
	}
	return nil
}

// Text returns a field that is a string which a column can hold as it is, "" for any other.
func (o *Object) Text(key string) string { return ExactText(o.Get(key)) }

// String returns a field that is a string as Text reads it, "" for any other.
func (o *Object) String(key string) string {
	text, _ := Text(o.Get(key))
	return text
}

// Has reports whether there is such a field.
func (o *Object) Has(key string) bool { return o.index(key) >= 0 }

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
			all = append(all, Member{Key: m.Key, name: m.name})
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

// Fields makes an object of the fields that Add takes.
func Fields(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	o.Add(pairs...)
	return o
}

// Maybe is a string that is left out if it is empty.
type Maybe string

// Encode writes an object of the fields that Add takes.
func Encode(pairs ...any) jsontext.Value { return Fields(pairs...).Value() }

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
	case json.RawMessage:
		return append(b, v...)
	case []jsontext.Value:
		if v != nil {
			return appendArray(b, v)
		}
	case []json.RawMessage:
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

// Members returns the fields, in order.
func (o *Object) Members() []Member { return *o }

// Len is the number of fields.
func (o *Object) Len() int { return len(*o) }

// Value is JSON as a value of the JSON library.
func (o Object) Value() jsontext.Value { return jsontext.Value(o.JSON()) }

// JSON writes the object.
func (o *Object) JSON() json.RawMessage {
	b := []byte{'{'}
	for i := range *o {
		m := &(*o)[i]
		if i > 0 {
			b = append(b, ',')
		}
		if m.name != nil {
			b = append(b, m.name...)
		} else {
			b = AppendText(b, m.Key)
		}
		b = append(append(b, ':'), m.Value...)
	}
	return append(b, '}')
}

func (o *Object) index(key string) int {
	return slices.IndexFunc(*o, func(m Member) bool { return m.Key == key && m.name == nil })
}

// Rest returns what encoded lacks of original: the object that Merge puts into encoded to make
// it original again. ok is false where there is none.
func Rest(original, encoded *Object) (rest Object, ok bool) {
	for _, m := range *original {
		i := encoded.index(m.Key)
		switch {
		case m.Odd():
			rest = append(rest, m)
		case i >= 0 && KindOf(m.Value) == '{' && KindOf((*encoded)[i].Value) == '{':
			inner, err := ParseObject("", m.Value)
			of, errOf := ParseObject("", (*encoded)[i].Value)
			if err != nil || errOf != nil {
				return rest, false
			}
			missing, ok := Rest(&inner, &of)
			if !ok {
				return rest, false
			}
			if missing.Len() > 0 {
				rest = append(rest, Member{Key: m.Key, Value: missing.Value()})
			}
		case i < 0 || !Equal(m.Value, (*encoded)[i].Value):
			rest = append(rest, m)
		}
	}
	for _, m := range *encoded {
		if !original.Has(m.Key) {
			return rest, false
		}
	}
	return rest, true
}

// Merge puts the fields of another object in, and those of objects in it into those of the
// same name.
func (o *Object) Merge(rest *Object) {
	o.Change(*rest, func(was, given jsontext.Value) jsontext.Value {
		into, err := ParseObject("", was)
		if err != nil || KindOf(given) != '{' {
			return given
		}
		if inner, err := ParseObject("", given); err == nil {
			into.Merge(&inner)
		}
		return into.Value()
	})
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Object) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(o.JSON()))
}
