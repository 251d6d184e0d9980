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
func (d *decoder) parts(o *wire.Fields, m *session.Message, x *messageExtra) (contentParts, error) {
	var out contentParts
	list := o.Value("parts")
	if wire.IsNull(list.Raw) {
		if !wire.IsNull(o.Get("content")) { // another provider's, whose words would be lost
			return out, o.Field("content").Errorf(session.Invalid, "stands where parts should: a content is {role, parts}")
		}
		if x.Shape = shapeNull; list.Raw == nil {
			x.Shape = shapeAbsent
		}
		o.Drop("parts")
		return out, nil
	}
	elements, err := list.Elements()
	if err != nil {
		return out, err
	}
	o.Drop("parts")
	inner := make([]wire.Fields, len(elements))
	for i, e := range elements {
		if inner[i], err = e.Fields(); err != nil {
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
		r.raw, r.parts = e.Raw, r.parts[:0]
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

func (r *partReader) read(o *wire.Fields) error {
	field, name := kindOf(&o.Object)
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
		return o.Field(name).Errorf(session.Invalid, "stands in a content of another role than model: only the model calls functions")
	case field == fieldResponse && r.role == session.User:
		return r.response(o, name, &x)
	case r.pair != "":
		return r.inline(o, field, name, &x)
	case field == "" && onlySignature(&o.Object):
		x.Shape = shapeAbsent
		return r.text(o, &x)
	}
	return r.unknown(o, field)
}

// unknown keeps a part that no kind holds: fields that nobody documented, or a known one where
// it is not expected, such as code without its output.
func (r *partReader) unknown(o *wire.Fields, field string) error {
	if field == "" {
		for _, f := range o.Members() {
			if !f.Odd() && !wire.IsNull(f.Value) && !slices.Contains([]string{fieldThought, fieldSignature, snake(fieldSignature)}, f.Key) {
				field = f.Key
				break
			}
		}
		o.Warn("is of the unknown type %q: kept for export, not sent", wire.Clip(field))
	}
	r.parts = append(r.parts, dataPart(r.raw, partExtra{Type: field}))
	return nil
}

// onlySignature tells whether a part is nothing but a signature: the text beside it was empty,
// and some clients leave that out.
func onlySignature(o *wire.Object) bool {
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

func (r *partReader) text(o *wire.Fields, x *partExtra) error {
	p := session.Part{Kind: session.PartText}
	if wire.KindOf(o.Get(fieldThought)) == 't' {
		p.Kind = session.PartReasoning
		o.Drop(fieldThought)
	}
	if x.Shape != shapeAbsent {
		var err error
		if p.Text, err = o.Take(fieldText); err != nil {
			return err
		}
	}
	return r.keep(p, o, x)
}

// keep finishes a part: what is left of its object goes to extra.
func (r *partReader) keep(p session.Part, o *wire.Fields, x *partExtra) error {
	if err := o.Fits(); err != nil {
		return err
	}
	x.Fields = o.Object
	x.store(&p)
	r.parts = append(r.parts, p)
	return nil
}

// inner takes the object out of a part that says what it is.
func inner(o *wire.Fields, name string) (wire.Fields, error) {
	inner, err := o.Inner(name)
	o.Drop(name)
	return inner, err
}
