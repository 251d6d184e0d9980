package wire

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"sessiond/internal/session"
)

// MaxExtraDepth is how deep a JSON value may be nested to stand in an extra column: SQLite
// refuses a text of more than 1,000 levels, and an extra wraps it in a few of its own.
const MaxExtraDepth = 900

// maxDepth is how deep encoding/json goes.
const maxDepth = 9_900

// Member is one field of an object. Key is its name as text; rawKey is kept only for a name
// that is no Unicode text.
type Member struct {
	Key    string
	Value  json.RawMessage
	rawKey json.RawMessage
}

// Object is a JSON object that is read field by field. Fields that a form understands are
// taken out of it; what remains is kept as it came.
type Object struct{ members []Member }

// Check refuses bytes that are not UTF-8 or not JSON, or nested deeper than can be read.
// Codes: Malformed, TooLarge.
func Check(path string, raw json.RawMessage) error {
	if !utf8.Valid(raw) {
		return Errorf(session.Malformed, path, "holds bytes that are not UTF-8")
	}
	switch depth, ok := measure(raw); {
	case depth > maxDepth:
		return Errorf(session.TooLarge, path, "is nested deeper than %d levels", maxDepth)
	case !ok:
		return Errorf(session.Malformed, path, "is not JSON")
	}
	return nil
}

// ParseObject reads the fields of an object in checked JSON. A field that stands twice is
// refused, since readers differ on which one counts. Codes: Invalid.
func ParseObject(path string, raw json.RawMessage) (Object, error) {
	if KindOf(raw) != '{' {
		return Object{}, Errorf(session.Invalid, path, "must be an object, not %s", Describe(raw))
	}
	o := Object{members: make([]Member, 0, 4)}
	var seen map[string]bool // only for objects of many fields
	for at := skipSpace(raw, skipSpace(raw, 0)+1); raw[at] != '}'; {
		end := valueEnd(raw, at)
		m := Member{}
		var exact bool
		if m.Key, exact = unquote(raw[at:end]); !exact {
			m.rawKey = raw[at:end]
		}
		if o.holds(m, &seen) {
			return Object{}, Errorf(session.Invalid, Join(path, m.Key), "stands twice")
		}
		at = skipSpace(raw, skipSpace(raw, end)+1) // over the colon
		end = valueEnd(raw, at)
		m.Value = raw[at:end:end]
		o.members = append(o.members, m)
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return o, nil
}

// holds tells whether a field of that name is there already. seen makes it quick where there
// are many.
func (o *Object) holds(m Member, seen *map[string]bool) bool {
	const many = 16
	if len(o.members) < many {
		return slices.ContainsFunc(o.members, func(n Member) bool { return n.Key == m.Key && string(n.rawKey) == string(m.rawKey) })
	}
	if *seen == nil {
		*seen = make(map[string]bool, 2*many)
		for _, n := range o.members {
			(*seen)[n.Key+string(n.rawKey)] = true
		}
	}
	name := m.Key + string(m.rawKey)
	twice := (*seen)[name]
	(*seen)[name] = true
	return twice
}

// ParseArray gives the elements of an array in checked JSON. Codes: Invalid.
func ParseArray(path string, raw json.RawMessage) ([]json.RawMessage, error) {
	if KindOf(raw) != '[' {
		return nil, Errorf(session.Invalid, path, "must be an array, not %s", Describe(raw))
	}
	var elements []json.RawMessage
	for at := skipSpace(raw, skipSpace(raw, 0)+1); raw[at] != ']'; {
		end := valueEnd(raw, at)
		elements = append(elements, raw[at:end:end])
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return elements, nil
}

// Get gives a field's value, nil if there is none.
func (o *Object) Get(key string) json.RawMessage {
	if i := o.index(key); i >= 0 {
		return o.members[i].Value
	}
	return nil
}

// Has tells whether there is such a field.
func (o *Object) Has(key string) bool { return o.index(key) >= 0 }

// Drop takes a field out.
func (o *Object) Drop(key string) {
	if i := o.index(key); i >= 0 {
		o.members = slices.Delete(o.members, i, i+1)
	}
}

// Set puts a field in, in the place of one of that name or at the end.
func (o *Object) Set(key string, value json.RawMessage) {
	if i := o.index(key); i >= 0 {
		o.members[i].Value = value
		return
	}
	if o.members == nil {
		o.members = make([]Member, 0, 4)
	}
	o.members = append(o.members, Member{Key: key, Value: value})
}

// SetText puts a string in.
func (o *Object) SetText(key, text string) {
	o.Set(key, AppendText(make([]byte, 0, len(text)+len(text)/16+len(`""`)), text))
}

// Overlay puts all fields of another object in. It is linear in their number: they are
// looked for only among the fields that were there before.
func (o *Object) Overlay(other Object) {
	before := Object{o.members[:len(o.members):len(o.members)]}
	for _, m := range other.members {
		if i := before.index(m.Key); i >= 0 && m.rawKey == nil {
			o.members[i] = m
			continue
		}
		o.members = append(o.members, m)
	}
}

// Members gives the fields, in order.
func (o *Object) Members() []Member { return o.members }

// Len is the number of fields.
func (o *Object) Len() int { return len(o.members) }

// JSON writes the object.
func (o *Object) JSON() json.RawMessage {
	size := len(`{}`)
	for _, m := range o.members {
		size += max(len(m.Key), len(m.rawKey)) + len(m.Value) + len(`"":,`)
	}
	return o.Append(make([]byte, 0, size))
}

// Append writes the object at the end of b.
func (o *Object) Append(b []byte) []byte {
	b = append(b, '{')
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		if m.rawKey != nil {
			b = append(b, m.rawKey...)
		} else {
			b = AppendText(b, m.Key)
		}
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// ArraySize is how many bytes AppendArray writes.
func ArraySize(elements []json.RawMessage) int {
	size := len(`[]`)
	for _, e := range elements {
		size += len(e) + len(`,`)
	}
	return size
}

// AppendArray writes an array at the end of b.
func AppendArray(b []byte, elements []json.RawMessage) []byte {
	b = append(slices.Grow(b, ArraySize(elements)), '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

func (o *Object) index(key string) int {
	return slices.IndexFunc(o.members, func(m Member) bool { return m.Key == key && m.rawKey == nil })
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(b []byte) error {
	parsed, err := ParseObject("extra", slices.Clone(b))
	*o = parsed
	return err
}

// IsZero lets an empty object be left out of what holds it.
func (o Object) IsZero() bool { return len(o.members) == 0 }

// Odd tells whether the field's name is no Unicode text, so that Key does not find it.
func (m *Member) Odd() bool { return m.rawKey != nil }

// Large gives the fields that IsLarge.
func (o *Object) Large() []Member {
	var large []Member
	for _, m := range o.members {
		if IsLarge(m.Value) {
			large = append(large, m)
		}
	}
	return large
}

// IsLarge tells whether a value belongs in a blob: over session.BlobThreshold or nested
// deeper than MaxExtraDepth.
func IsLarge(raw json.RawMessage) bool {
	return len(raw) > session.BlobThreshold || len(raw) > MaxExtraDepth && Depth(raw) > MaxExtraDepth
}
