package wire

import (
	"encoding/json"

	"sessiond/internal/session"
)

// Value is a JSON value of an entry, and where it stands. A field that is not there has no Raw.
type Value struct {
	Raw json.RawMessage
	Place
}

// Kind is KindOf the value.
func (v Value) Kind() byte { return KindOf(v.Raw) }

// Not makes the error that the value is no what: "a string". Codes: Invalid.
func (v Value) Not(what string) error {
	return v.Errorf(session.Invalid, "must be %s, not %s", what, Describe(v.Raw))
}

// Text reads a string. Where it is not exact, the value must be kept as it came: a warning
// says that.
func (v Value) Text() (text string, exact bool) {
	text, exact = Text(v.Raw)
	if !exact {
		v.Warn("holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export")
	}
	return text, exact
}

// Fields reads an object. Codes: Invalid.
func (v Value) Fields() (Fields, error) {
	r := v.reader
	o, f := parseObject(v.Raw, r.members[len(r.members):])
	if f != nil {
		if f.field != nil {
			return Fields{}, f.at(v.Field(*f.field).String())
		}
		return Fields{}, f.at(v.String())
	}
	if n := len(r.members) + len(o.members); n <= cap(r.members) {
		r.members = r.members[:n]
	} else { // it found no room, and has its own
		r.members = make([]Member, 0, max(room, 2*cap(r.members)))
	}
	o.members = o.members[:len(o.members):len(o.members)]
	return Fields{Object: o, Place: v.Place}, nil
}

// room is how many fields and elements a Reader has place for at first.
const room = 64

// Elements reads an array of no more elements than a message holds parts. Codes: Invalid.
func (v Value) Elements() ([]Value, error) {
	elements, err := v.All()
	if len(elements) > session.MaxParts {
		return nil, v.Errorf(session.Invalid, "has %d elements: a message holds at most %d, split it", len(elements), session.MaxParts)
	}
	return elements, err
}

// All reads an array of any length. Codes: Invalid.
func (v Value) All() ([]Value, error) {
	if v.Kind() != '[' {
		return nil, v.Not("an array")
	}
	r := v.reader
	if len(r.values) == cap(r.values) {
		r.values = make([]Value, 0, max(room, 2*cap(r.values)))
	}
	elements := r.values[len(r.values):]
	for raw := range each(v.Raw) {
		elements = append(elements, Value{Raw: raw, Place: v.Element(len(elements))})
	}
	if n := len(r.values) + len(elements); n <= cap(r.values) {
		r.values = r.values[:n]
	}
	return elements[:len(elements):len(elements)], nil
}
