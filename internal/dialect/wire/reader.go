package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"sessiond/internal/session"
)

// Reader reads the entries of one Decode; a form's decoder embeds it. It keeps what a decoder
// gives back, knows where in the input everything stands, and lends memory to what is read:
// Values and Fields are good until the next entry.
type Reader struct {
	Messages []session.Message // what was read so far, of one Read

	warnings []string
	steps    []step
	members  []Member
	values   []Value
}

// step is one step of a path: a field, or an element of an array.
type step struct {
	up    int // the step before; -1 for the first
	field string
	index int // in the array, of an element
	// element tells one from a field, whose name may be empty.
	element bool
}

// Read gives the entries to read, one by one, which appends to Messages what an entry becomes.
// Codes: Malformed, TooLarge, and those of read.
func (r *Reader) Read(entries []json.RawMessage, read func(entry Value) error) (Decoded, error) {
	return r.ReadChecked(entries, func(entry Value) error {
		if f := check(entry.Raw); f != nil {
			return f.at(entry.String())
		}
		return read(entry)
	})
}

// ReadChecked is Read of entries that Check passes. It uses the memory of the Read before again,
// with the messages that this gave. Codes: those of read.
func (r *Reader) ReadChecked(entries []json.RawMessage, read func(entry Value) error) (Decoded, error) {
	clear(r.Messages)
	r.Messages, r.warnings = slices.Grow(r.Messages[:0], len(entries)), nil
	defer r.forget()
	for i, raw := range entries {
		if err := read(r.entry(i, raw)); err != nil {
			return Decoded{}, err
		}
	}
	return Decoded{Messages: r.Messages, Warnings: r.warnings}, nil
}

// forget lets go of the last entry, and of the memory that one of many fields took.
func (r *Reader) forget() {
	const most = 16 * room
	if cap(r.members) > most || cap(r.values) > most || cap(r.steps) > most {
		r.members, r.values, r.steps = nil, nil, nil
	}
	clear(r.members)
	clear(r.values)
}

func (r *Reader) entry(i int, raw json.RawMessage) Value {
	r.steps = append(r.steps[:0], step{up: -1, field: "messages"}, step{element: true, index: i})
	r.members, r.values = r.members[:0], r.values[:0]
	return Value{Raw: raw, Place: Place{reader: r, step: 1}}
}

// Place is where something stands in an entry: messages[3].content[0].text. It is written out
// only for an error or a warning.
type Place struct {
	reader *Reader
	step   int
}

// Field is the place of a field of the object that stands here.
func (p Place) Field(name string) Place { return p.to(step{up: p.step, field: name}) }

// Element is the place of an element of the array that stands here.
func (p Place) Element(i int) Place { return p.to(step{up: p.step, element: true, index: i}) }

func (p Place) to(s step) Place {
	p.reader.steps = append(p.reader.steps, s)
	return Place{p.reader, len(p.reader.steps) - 1}
}

// String is the path.
func (p Place) String() string {
	var way []step
	for at := p.step; at >= 0; at = p.reader.steps[at].up {
		way = append(way, p.reader.steps[at])
	}
	var b []byte
	for i, s := range slices.Backward(way) {
		switch {
		case i == len(way)-1:
			b = append(b, s.field...)
		case s.element:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		default:
			b = append(append(b, '.'), Clip(s.field)...)
		}
	}
	return string(b)
}

// Errorf makes an error about what stands here.
func (p Place) Errorf(code session.Code, format string, args ...any) error {
	return Errorf(code, p.String(), format, args...)
}

// Warn notes that what stands here is stored otherwise than it came.
func (p Place) Warn(format string, args ...any) {
	p.reader.warnings = append(p.reader.warnings, p.String()+" "+fmt.Sprintf(format, args...))
}

// Holds refuses more parts than a message can hold. Codes: Invalid.
func (p Place) Holds(parts int) error {
	if parts > session.MaxParts {
		return p.Errorf(session.Invalid, "has %d parts: a message holds at most %d, split it", parts, session.MaxParts)
	}
	return nil
}
