package wire

import (
	"encoding/json"
	"fmt"
	"iter"
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
	if f := check(raw); f != nil {
		return f.at(path)
	}
	return nil
}

func check(raw json.RawMessage) *flaw {
	if !utf8.Valid(raw) {
		return &flaw{code: session.Malformed, what: "holds bytes that are not UTF-8"}
	}
	switch depth, ok := measure(raw); {
	case depth > maxDepth:
		return &flaw{code: session.TooLarge, what: fmt.Sprintf("is nested deeper than %d levels", maxDepth)}
	case !ok:
		return &flaw{code: session.Malformed, what: "is not JSON"}
	}
	return nil
}

// ParseObject reads the fields of an object in checked JSON. A field that stands twice is
// refused, since readers differ on which one counts. Codes: Invalid.
func ParseObject(path string, raw json.RawMessage) (Object, error) {
	o, f := parseObject(raw, nil)
	switch {
	case f == nil:
		return o, nil
	case f.field != nil:
		path = Join(path, *f.field)
	}
	return Object{}, f.at(path)
}

// parseObject is ParseObject into members, while they have room.
func parseObject(raw json.RawMessage, members []Member) (Object, *flaw) {
	if KindOf(raw) != '{' {
		return Object{}, &flaw{code: session.Invalid, what: "must be an object, not " + Describe(raw)}
	}
	if cap(members) == 0 {
		members = make([]Member, 0, 4)
	}
	o := Object{members}
	var seen map[string]bool // only for objects of many fields
	for at := skipSpace(raw, skipSpace(raw, 0)+1); raw[at] != '}'; {
		end := valueEnd(raw, at)
		m := Member{}
		var exact bool
		if m.Key, exact = unquote(raw[at:end]); !exact {
			m.rawKey = raw[at:end]
		}
		if o.holds(&m, &seen) {
			twice := m.Key
			return Object{}, &flaw{code: session.Invalid, field: &twice, what: "stands twice"}
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
func (o *Object) holds(m *Member, seen *map[string]bool) bool {
	const many = 16
	if len(o.members) < many {
		for i := range o.members {
			if n := &o.members[i]; n.Key == m.Key && string(n.rawKey) == string(m.rawKey) {
				return true
			}
		}
		return false
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
	return slices.Collect(each(raw)), nil
}

// each gives the elements of an array in checked JSON.
func each(raw json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for at := skipSpace(raw, skipSpace(raw, 0)+1); raw[at] != ']'; {
			end := valueEnd(raw, at)
			if !yield(raw[at:end:end]) {
				return
			}
			if at = skipSpace(raw, end); raw[at] == ',' {
				at = skipSpace(raw, at+1)
			}
		}
	}
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
		o.drop(i)
	}
}

func (o *Object) drop(i int) { o.members = slices.Delete(o.members, i, i+1) }

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
	o.Set(key, AppendText(make([]byte, 0, TextSize(text)), text))
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
func (o *Object) JSON() json.RawMessage { return o.Append(make([]byte, 0, o.size())) }

// size is about how many bytes Append writes.
func (o *Object) size() int {
	size := len(`{}`)
	for i := range o.members {
		m := &o.members[i]
		size += max(len(m.Key), len(m.rawKey)) + len(m.Value) + len(`"":,`)
	}
	return size
}

// Append writes the object at the end of b.
func (o *Object) Append(b []byte) []byte {
	b = append(b, '{')
	for i := range o.members {
		m := &o.members[i]
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
	for i := range o.members {
		if m := &o.members[i]; m.Key == key && m.rawKey == nil {
			return i
		}
	}
	return -1
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

// IsLarge tells whether a value belongs in a blob: over session.BlobThreshold or nested
// deeper than MaxExtraDepth.
func IsLarge(raw json.RawMessage) bool {
	return len(raw) > session.BlobThreshold || isDeep(raw)
}

// isDeep tells whether a value is nested too deep for an extra column.
func isDeep(raw json.RawMessage) bool { return len(raw) > MaxExtraDepth && Depth(raw) > MaxExtraDepth }
