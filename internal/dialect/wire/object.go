package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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
type Object struct{ members []Member }

// ParseObject reads the fields of an object. A field that stands twice is rejected, since
// readers differ on which one counts. Codes: Malformed, Invalid, TooLarge.
func ParseObject[T ~[]byte](path string, raw T) (Object, error) {
	var o Object
	if KindOf(raw) != '{' {
		return o, Errorf(session.Invalid, path, "must be an object, not %s", Describe(raw))
	}
	err := Unmarshal(path, raw, &members{raw, &o})
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
	m.into.members = make([]Member, 0, 4)
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
		m.into.members = append(m.into.members, f)
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
		return o.members[i].Value
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
		o.members = slices.Delete(o.members, i, i+1)
	}
}

// Set sets a field, in the place of one of that name or at the end.
func (o *Object) Set(key string, value []byte) {
	if i := o.index(key); i >= 0 {
		o.members[i].Value = value
		return
	}
	o.members = append(o.members, Member{Key: key, Value: value})
}

// Change sets each field of with to what value returns for its present value, nil if it has none, and the new
// one; nil drops the field. It finds all fields in one pass, where Set and Drop search for each name.
func (o *Object) Change(with []Member, value func(was, given jsontext.Value) jsontext.Value) {
	at := make(map[string]int, len(o.members))
	for i := range o.members {
		if !o.members[i].Odd() {
			at[o.members[i].Key] = i
		}
	}
	for _, m := range with {
		i, ok := at[m.Key]
		if m.Odd() || !ok {
			i = len(o.members)
			o.members = append(o.members, Member{Key: m.Key, name: m.name})
			if !m.Odd() {
				at[m.Key] = i
			}
		}
		o.members[i].Value = value(o.members[i].Value, m.Value)
	}
	o.members = slices.DeleteFunc(o.members, func(m Member) bool { return m.Value == nil })
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
	o := Object{members: make([]Member, 0, len(pairs)/2)}
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
		panic("wire: a field is of a type that Encode does not write")
	}
	return b
}

// SetContent sets a content of a shape: elements are those of an array, text that of a string.
func (o *Object) SetContent(field, shape string, elements []jsontext.Value, text string) {
	switch shape {
	case ShapeAbsent:
	case ShapeNull:
		o.Set(field, jsontext.Value("null"))
	case ShapeEmpty:
		o.SetText(field, "")
	case ShapeArray:
		o.Set(field, Array(elements))
	default:
		o.SetText(field, text)
	}
}

// Members returns the fields, in order.
func (o *Object) Members() []Member { return o.members }

// Len is the number of fields.
func (o *Object) Len() int { return len(o.members) }

// Value is JSON as a value of the JSON library.
func (o Object) Value() jsontext.Value { return jsontext.Value(o.JSON()) }

// JSON writes the object.
func (o *Object) JSON() json.RawMessage {
	b := []byte{'{'}
	for i := range o.members {
		m := &o.members[i]
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
	return slices.IndexFunc(o.members, func(m Member) bool { return m.Key == key && m.name == nil })
}

// Rest returns what encoded lacks of original: the object that Merge puts into encoded to make
// it original again. ok is false where there is none.
func Rest(original, encoded *Object) (rest Object, ok bool) {
	for _, m := range original.members {
		i := encoded.index(m.Key)
		switch {
		case m.Odd():
			rest.members = append(rest.members, m)
		case i >= 0 && KindOf(m.Value) == '{' && KindOf(encoded.members[i].Value) == '{':
			inner, err := ParseObject("", m.Value)
			of, errOf := ParseObject("", encoded.members[i].Value)
			if err != nil || errOf != nil {
				return rest, false
			}
			missing, ok := Rest(&inner, &of)
			if !ok {
				return rest, false
			}
			if missing.Len() > 0 {
				rest.members = append(rest.members, Member{Key: m.Key, Value: missing.Value()})
			}
		case i < 0 || !Equal(m.Value, encoded.members[i].Value):
			rest.members = append(rest.members, m)
		}
	}
	for _, m := range encoded.members {
		if !original.Has(m.Key) {
			return rest, false
		}
	}
	return rest, true
}

// Merge puts the fields of another object in, and those of objects in it into those of the
// same name.
func (o *Object) Merge(rest *Object) {
	o.Change(rest.members, func(was, given jsontext.Value) jsontext.Value {
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

// Fits rejects an object with a field, or a field of an object in it, that is nested too deep for
// an extra column. Codes: TooLarge.
func (o *Object) Fits(path string) error {
	for _, m := range o.members {
		if !DeeperThan(m.Value, MaxExtraDepth) {
			continue
		}
		at := Join(path, m.Key)
		if inner, err := ParseObject(at, m.Value); err == nil {
			if err := inner.Fits(at); err != nil {
				return err
			}
		}
		return Errorf(session.TooLarge, at, "is nested deeper than %d levels", MaxExtraDepth)
	}
	return nil
}

// TakeLarge removes the fields that an extra should not hold, being deep or large, and returns each
// as a part that keeps it; of names the object that they stood in. One whose name a part cannot
// keep is rejected. Codes: TooLarge.
func (o *Object) TakeLarge(path, of string) ([]Part, error) {
	var parts []Part
	var fits []Member
	for _, m := range o.members {
		switch {
		case !IsLarge(m.Value):
			fits = append(fits, m)
		case m.Odd() || m.Key == "" || strings.ContainsRune(m.Key, 0):
			return nil, Errorf(session.TooLarge, Join(path, m.Key), "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, MaxExtraDepth)
		default:
			parts = append(parts, Data(m.Value, Extra{Field: m.Key, Of: of}))
		}
	}
	if parts != nil {
		o.members = fits
	}
	return parts, nil
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Object) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(o.JSON()))
}
