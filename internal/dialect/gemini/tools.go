package gemini

import (
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// openCall is a call of the last reply that has no result yet.
type openCall struct{ id, name string }

// call reads {functionCall: {id, name, args}}. Arguments are the bytes of args as they came.
func (r *partReader) call(o *wire.Fields, name string, x *partExtra) error {
	inner, err := inner(o, name)
	if err != nil {
		return err
	}
	p := session.Part{Kind: session.PartToolCall}
	if p.ToolName, err = inner.Take("name"); err != nil {
		return err
	}
	if err := callID(&inner, &p); err != nil {
		return err
	}
	if p.CallID == "" {
		p.CallID, x.Made = r.makeID(p.ToolName), true
	}
	if err := arguments(&inner, &p, x); err != nil {
		return err
	}
	r.open = append(r.open, openCall{id: p.CallID, name: p.ToolName})
	if err := inner.Fits(); err != nil {
		return err
	}
	x.Inner = inner.Object
	return r.keep(p, o, x)
}

// callID reads the id of a call or a response. An empty one is none, and stays in inner.
func callID(inner *wire.Fields, p *session.Part) error {
	if raw := inner.Get("id"); wire.IsNull(raw) || string(raw) == `""` {
		return nil
	}
	var err error
	p.CallID, err = inner.Take("id")
	return err
}

// arguments reads args: an object, whose bytes are kept; what else stands there is kept too.
func arguments(inner *wire.Fields, p *session.Part, x *partExtra) error {
	raw := inner.Get("args")
	switch wire.KindOf(raw) {
	case 'n':
		return nil // a null stays in inner
	case '"':
		text, err := inner.Take("args")
		p.Arguments, x.Shape = text, shapeString
		return err
	}
	p.Arguments = string(raw)
	inner.Drop("args")
	return nil
}

// makeID makes the id of a call that came without one, or of a response to one: the n-th call
// of a name in a reply. That the same ids come again in later replies does no harm, since a
// result answers the nearest call; and the response to a call of an earlier append finds it by
// its name, if the number is another.
func (d *decoder) makeID(name string) string {
	if d.made == nil {
		d.made = map[string]int{}
	}
	d.made[name]++
	return madeID(name, d.made[name])
}

// madeID gives an id that all providers accept, whatever the name.
func madeID(name string, n int) string {
	const most = 24
	id := legalID(name, most)
	if id != name {
		id = hash(name, most)
	}
	return session.MadeCallID + id + "_" + strconv.Itoa(n)
}

// response reads {functionResponse: {id, name, response, parts}}.
func (r *partReader) response(o *wire.Fields, name string, x *partExtra) error {
	inner, err := inner(o, name)
	if err != nil {
		return err
	}
	p := session.Part{Kind: session.PartToolResult}
	if p.ToolName, err = inner.Take("name"); err != nil {
		return err
	}
	if err := callID(&inner, &p); err != nil {
		return err
	}
	if p.CallID == "" {
		p.CallID, x.Made = r.answer(p.ToolName), true
	} else {
		r.close(func(c openCall) bool { return c.id == p.CallID })
	}
	if err := output(&inner, &p, x); err != nil {
		return err
	}
	list := inner.Value("parts")
	if wire.HasElements(list.Raw) {
		inner.Drop("parts")
	}
	if err := inner.Fits(); err != nil {
		return err
	}
	x.Inner = inner.Object
	if err := r.keep(p, o, x); err != nil {
		return err
	}
	if wire.HasElements(list.Raw) {
		return r.nested(list)
	}
	return nil
}

// answer gives the id of the call that a response without one answers: the first open one of
// its name. Its call may also be of an earlier append.
func (d *decoder) answer(name string) string {
	if c, ok := d.close(func(c openCall) bool { return c.name == name }); ok {
		return c.id
	}
	return d.makeID(name)
}

func (d *decoder) close(is func(openCall) bool) (openCall, bool) {
	for i, c := range d.open {
		if is(c) {
			d.open = append(d.open[:i:i], d.open[i+1:]...)
			return c, true
		}
	}
	return openCall{}, false
}

// output reads the response. The readable text of {"output": "text"}, and of any other object
// of one text, is that text; of all others their JSON. The API says that "error" holds what
// went wrong.
func output(inner *wire.Fields, p *session.Part, x *partExtra) error {
	raw := inner.Get("response")
	switch wire.KindOf(raw) {
	case 'n':
		return nil // a null stays in inner
	case '"':
		x.Shape = shapeString
		text, err := inner.Take("response")
		p.Text = text
		return err
	case '{':
		object, err := inner.Inner("response")
		if err != nil {
			return err
		}
		if failure := object.Get("error"); !wire.IsNull(failure) && !object.Has("output") {
			failed := true
			p.IsError = &failed
		}
		if fields := object.Members(); len(fields) == 1 && fields[0].Key != "" && !fields[0].Odd() && len(fields[0].Key) <= maxKey {
			if text, exact := wire.TextOf(fields[0].Value); exact {
				p.Text, x.Key = text, fields[0].Key
				inner.Drop("response")
				return nil
			}
		}
	}
	p.Text = string(raw)
	inner.Drop("response")
	return nil
}

// maxKey is the longest name of a field, in bytes, that says what a text is.
const maxKey = 200

// nested reads the parts of a response: media that the tool gave.
func (r *partReader) nested(list wire.Value) error {
	elements, err := list.All()
	if err != nil {
		return err
	}
	for _, e := range elements {
		o, err := e.Fields()
		if err != nil {
			return err
		}
		n := partReader{decoder: r.decoder, role: r.role, raw: e.Raw}
		field, name := kindOf(&o.Object)
		if field == fieldInline || field == fieldFile {
			x := partExtra{Nested: true}
			if name != field {
				x.Field = name
			}
			err = n.medium(&o, field, name, &x)
		} else {
			e.Warn("is no medium: kept for export, not sent")
			n.parts = append(n.parts, dataPart(e.Raw, partExtra{Nested: true, Type: field}))
		}
		if err != nil {
			return err
		}
		if len(r.parts)+len(n.parts) > session.MaxParts {
			return list.Errorf(session.Invalid, "has %d elements: a message holds at most %d parts, split it", len(elements), session.MaxParts)
		}
		r.parts = append(r.parts, n.parts...)
	}
	return nil
}
