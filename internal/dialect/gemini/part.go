package gemini

import (
	"encoding/json"
	"slices"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// contentParts is what the parts of one content became.
type contentParts struct {
	parts   []session.Part
	at      []int // of each: its place in the content; -1 for one within the response before it
	results int
}

// onlyResults tells whether all parts are responses, or media that stand behind one.
func (c *contentParts) onlyResults() bool {
	for i := range c.parts {
		switch k := c.parts[i].Kind; {
		case k == session.PartToolResult || c.at[i] < 0:
		case i > 0 && k.HasBytes() && k != session.PartData:
		default:
			return false
		}
	}
	return true
}

// parts reads the parts of a content.
func (d *decoder) parts(path string, o *wire.Object, m *session.Message, x *messageExtra) (contentParts, error) {
	var out contentParts
	raw := o.Get("parts")
	if wire.IsNull(raw) {
		if other := o.Get("content"); !wire.IsNull(other) { // another provider's, whose words would be lost
			return out, wire.Errorf(session.Invalid, wire.Join(path, "content"), "stands where parts should: a content is {role, parts}")
		}
		if x.Shape = shapeNull; raw == nil {
			x.Shape = shapeAbsent
		}
		o.Drop("parts")
		return out, nil
	}
	path = wire.Join(path, "parts")
	elements, err := wire.ParseArray(path, raw)
	if err != nil {
		return out, err
	}
	if len(elements) > session.MaxParts {
		return out, wire.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d, split it", len(elements), session.MaxParts)
	}
	o.Drop("parts")
	inner := make([]wire.Object, len(elements))
	for i, e := range elements {
		if inner[i], err = wire.ParseObject(wire.Index(path, i), e); err != nil {
			return out, err
		}
	}
	var pairs []string // of a reply: the id that a part shares with its call or result
	if m.Role == session.Assistant {
		pairs = pair(inner)
	}
	out.parts = make([]session.Part, 0, len(elements))
	out.at = make([]int, 0, len(elements))
	r := partReader{decoder: d, role: m.Role}
	for i, e := range elements {
		r.path, r.raw, r.parts = wire.Index(path, i), e, r.parts[:0]
		if pairs != nil {
			r.pair = pairs[i]
		}
		if err := r.read(&inner[i]); err != nil {
			return out, err
		}
		for j := range r.parts {
			at := i
			if j > 0 {
				at = -1
			}
			if r.parts[j].Kind == session.PartToolResult {
				out.results++
			}
			out.parts, out.at = append(out.parts, r.parts[j]), append(out.at, at)
		}
	}
	return out, nil
}

// partReader reads one part of a content.
type partReader struct {
	*decoder
	path string
	role session.Role
	raw  json.RawMessage // all of it
	pair string          // the id of a call that the provider ran, or of its result

	parts []session.Part // what it became; media of a response follow it
}

// IsPart tells whether an object has a field by which a part of this form is known.
func IsPart(o *wire.Object) bool {
	for _, f := range o.Members() {
		if kindField(f.Key) != "" {
			return true
		}
	}
	return hasAny(o, fieldThought, fieldSignature)
}

// kindOf gives the field that says what a part is, and its name as it stands there. An empty
// text beside another one says nothing; two that say something are none that can be told.
func kindOf(o *wire.Object) (field, name string) {
	emptyText := false
	for _, m := range o.Members() {
		f := kindField(m.Key)
		switch {
		case f == "" || m.Odd() || wire.IsNull(m.Value) || f != fieldText && wire.KindOf(m.Value) != '{':
		case f == fieldText && string(m.Value) == `""`:
			emptyText = true
		case field == "":
			field, name = f, m.Key
		case f != field:
			return "", ""
		case m.Key == f: // in both spellings: ours counts
			name = f
		}
	}
	if field == "" && emptyText {
		return fieldText, fieldText
	}
	return field, name
}

func (r *partReader) read(o *wire.Object) error {
	field, name := kindOf(o)
	var x partExtra
	if name != field {
		x.Field = name
	}
	switch {
	case field == fieldText:
		return r.text(o, &x)
	case field == fieldInline || field == fieldFile:
		return r.medium(o, field, name, &x)
	case field == fieldCall && r.role == session.Assistant:
		return r.call(o, name, &x)
	case field == fieldCall:
		return wire.Errorf(session.Invalid, wire.Join(r.path, name), "stands in a content of another role than model: only the model calls functions")
	case field == fieldResponse && r.role == session.User:
		return r.response(o, name, &x)
	case r.pair != "":
		return r.inline(o, field, name, &x)
	case field == "" && r.onlySignature(o):
		x.Shape = shapeAbsent
		return r.text(o, &x)
	}
	return r.unknown(o, field)
}

// unknown keeps a part that no kind holds: fields that nobody documented, or a known one where
// it is not expected, such as code without its output.
func (r *partReader) unknown(o *wire.Object, field string) error {
	if field == "" {
		for _, f := range o.Members() {
			if !f.Odd() && !wire.IsNull(f.Value) && !slices.Contains([]string{fieldThought, fieldSignature, snake(fieldSignature)}, f.Key) {
				field = f.Key
				break
			}
		}
		r.warn(r.path, "is of the unknown type %q: kept for export, not sent", wire.Clip(field))
	}
	r.parts = append(r.parts, dataPart(r.raw, partExtra{Type: field}))
	return nil
}

// onlySignature tells whether a part is nothing but a signature: the text beside it was empty,
// and some clients leave that out.
func (r *partReader) onlySignature(o *wire.Object) bool {
	_, signature := lookup(o, fieldSignature)
	if wire.KindOf(signature) != '"' {
		return false
	}
	for _, f := range o.Members() {
		if !wire.IsNull(f.Value) && f.Key != fieldSignature && f.Key != snake(fieldSignature) && f.Key != fieldThought {
			return false
		}
	}
	return true
}

func (r *partReader) text(o *wire.Object, x *partExtra) error {
	p := session.Part{Kind: session.PartText}
	if wire.KindOf(o.Get(fieldThought)) == 't' {
		p.Kind = session.PartReasoning
		o.Drop(fieldThought)
	}
	if x.Shape != shapeAbsent {
		var err error
		if p.Text, err = r.take(o, r.path, fieldText); err != nil {
			return err
		}
	}
	return r.keep(p, o, x)
}

// keep finishes a part: what is left of its object goes to extra.
func (r *partReader) keep(p session.Part, o *wire.Object, x *partExtra) error {
	if err := wire.FitsExtra(r.path, o); err != nil {
		return err
	}
	x.Fields = *o
	x.store(&p)
	r.parts = append(r.parts, p)
	return nil
}

// inner takes the object out of a part that says what it is.
func (r *partReader) inner(o *wire.Object, name string) (wire.Object, string, error) {
	path := wire.Join(r.path, name)
	inner, err := wire.ParseObject(path, o.Get(name))
	o.Drop(name)
	return inner, path, err
}
