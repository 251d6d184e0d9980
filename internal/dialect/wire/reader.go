package wire

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Reader gathers what the entries of one Decode become; a form's decoder embeds it.
type Reader struct {
	Messages []Message
	warnings []string
}

// Read passes the entries on, one by one, with their paths. Codes: Malformed, and those of entry.
func (r *Reader) Read(entries []jsontext.Value, entry func(path string, raw jsontext.Value) error) (Decoded, error) {
	r.Messages = make([]Message, 0, len(entries))
	for i, raw := range entries {
		path := jsonx.Index("messages", i)
		if !utf8.Valid(raw) {
			return Decoded{}, jsonx.Errorf(session.Malformed, path, "holds bytes that are not UTF-8")
		}
		if err := entry(path, jsontext.Value(raw)); err != nil {
			return Decoded{}, err
		}
	}
	decoded := Decoded{Messages: make([]session.Message, len(r.Messages)), Warnings: r.warnings}
	for i := range r.Messages {
		decoded.Messages[i] = r.Messages[i].Close()
	}
	return decoded, nil
}

// Warn notes that a value is stored otherwise than it came.
func (r *Reader) Warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, path+" "+fmt.Sprintf(format, args...))
}

// WarnUnknown notes that a value of an unknown type is kept and not sent.
func (r *Reader) WarnUnknown(path, kind string) {
	r.Warn(path, "has the unknown type %q: kept for export, not sent", jsonx.Clip(kind))
}

// StringOf returns the string of a field for a column. Codes: Invalid.
func (r *Reader) StringOf(path, field string, raw jsontext.Value) (string, error) {
	if jsonx.KindOf(raw) != '"' {
		return "", jsonx.Errorf(session.Invalid, jsonx.Join(path, field), "must be a string, not %s", jsonx.Describe(raw))
	}
	text, exact := jsonx.Text(raw)
	if !exact {
		r.Warn(jsonx.Join(path, field),
			"holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export")
	}
	return text, nil
}

// Block is an object of the input, with its type and its place.
type Block struct {
	jsonx.Object
	Kind, Path string
	Raw        jsontext.Value
}

// ParseBlock reads an object that must have a type. Codes: Malformed, Invalid, TooLarge.
func ParseBlock(path string, raw jsontext.Value) (Block, error) {
	o, err := jsonx.ParseObject(path, raw)
	b := Block{o, o.String("type"), path, raw}
	if err == nil && b.Kind == "" {
		err = jsonx.Errorf(session.Invalid, jsonx.Join(path, "type"), "must say what it is, not be %s",
			jsonx.Describe(b.Get("type")))
	}
	return b, err
}

// TextOf reads a field of a block that must be a string. Codes: Invalid.
func (r *Reader) TextOf(b *Block, field string) (string, error) {
	return r.StringOf(b.Path, field, b.Get(field))
}

// Each decodes the elements of an array, no more than a message holds parts. Codes: Malformed,
// Invalid, TooLarge, and those of decode.
func Each[T any](path string, raw jsontext.Value,
	decode func(path string, raw jsontext.Value) (T, error),
) ([]T, error) {
	elements, err := Elements(path, raw)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(elements))
	for i, e := range elements {
		if out[i], err = decode(jsonx.Index(path, i), e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Elements is ParseArray for no more elements than a message holds parts. Codes: Malformed,
// Invalid, TooLarge.
func Elements(path string, raw jsontext.Value) ([]jsontext.Value, error) {
	elements, err := jsonx.ParseArray(path, raw)
	if len(elements) > session.MaxParts {
		return nil, jsonx.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d, split it",
			len(elements), session.MaxParts)
	}
	return elements, err
}

// Holds rejects more parts than a message can hold. Codes: Invalid.
func Holds(path string, parts int) error {
	if parts > session.MaxParts {
		return jsonx.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", parts,
			session.MaxParts)
	}
	return nil
}

// Shapes of a content.
const (
	ShapeAbsent = "absent"
	ShapeNull   = "null"
	ShapeEmpty  = "empty" // ""
	ShapeArray  = "array"
	ShapeString = "string"
)

// Content returns the shape of a content, and the text of one that is a string. Codes: Invalid.
func (r *Reader) Content(path, field string, raw jsontext.Value) (shape, text string, err error) {
	switch jsonx.KindOf(raw) {
	case 'n':
		if raw == nil {
			return ShapeAbsent, "", nil
		}
		return ShapeNull, "", nil
	case '"':
		if text, err = r.StringOf(path, field, raw); text == "" {
			return ShapeEmpty, "", err
		}
		return ShapeString, text, err
	case '[':
		return ShapeArray, "", nil
	}
	return "", "", jsonx.Errorf(session.Invalid, jsonx.Join(path, field), "must be a string, an array or null, not %s",
		jsonx.Describe(raw))
}

// SetContent sets a field to a content of a shape: elements are those of an array, text that of a string.
func SetContent(o *jsonx.Object, field, shape string, elements []jsontext.Value, text string) {
	switch shape {
	case ShapeAbsent:
	case ShapeNull:
		o.Set(field, jsontext.Value("null"))
	case ShapeEmpty:
		o.SetText(field, "")
	case ShapeArray:
		o.Set(field, jsonx.Array(elements))
	default:
		o.SetText(field, text)
	}
}

// ResultFirst puts a tool's result before the elements that it came in: the one at at, a text,
// becomes its text. listed says that they stood in an array.
func ResultFirst(result Part, elements []Part, at int, listed bool) []Part {
	for i := range elements {
		elements[i].CallID = result.CallID
	}
	if at >= 0 {
		text := elements[at]
		result.Text = text.Text
		result.X.Rest, result.X.Raw = text.X.Rest, text.X.Raw
		elements = slices.Delete(elements, at, at+1)
	}
	if at != 0 && listed {
		result.X.At = &at
	}
	return append([]Part{result}, elements...)
}

// FirstText returns the place of the first text among parts, -1 for none.
func FirstText(parts []Part) int {
	return slices.IndexFunc(parts, func(p Part) bool { return p.Kind == session.PartText })
}

// TextPlace reports which element of its content a result's text is, -1 for none.
func TextPlace(p *Part) int {
	if p.X.At == nil {
		return 0
	}
	return *p.X.At
}
