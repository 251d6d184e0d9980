package responses

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// message reads {type: message, role, content}. The type may be missing.
func (d *decoder) message(path string, o wire.Object) error {
	m, err := d.role(path, &o)
	if err != nil {
		return err
	}
	m.Author, _ = wire.TextOf(o.Get("name")) // no documented field; it stays in the item
	parts, err := d.content(path, &o, textType(m.Role))
	if err != nil {
		return err
	}
	return d.add(path, m, o, parts)
}

func (d *decoder) role(path string, o *wire.Object) (session.Message, error) {
	role, err := d.take(o, path, "role")
	if err != nil {
		return session.Message{}, err
	}
	switch role {
	case "user":
		return newMessage(session.User, session.Person), nil
	case "assistant":
		return newMessage(session.Assistant, session.Model), nil
	case "system":
		return newMessage(session.System, session.Program), nil
	case roleDeveloper:
		o.SetText("role", role)
		return newMessage(session.System, session.Program), nil
	}
	return session.Message{}, wire.Errorf(session.Invalid, wire.Join(path, "role"), "is %q: it must be one of user, assistant, system, developer", wire.Clip(role))
}

// roleDeveloper is the role of the wire that shares session.System with another.
const roleDeveloper = "developer"

// textType is the type that a text has in a message of a role.
func textType(role session.Role) string {
	if role == session.Assistant {
		return typeOutputText
	}
	return typeInputText
}

// content reads a message's content. Where it holds nothing an empty text stands for it, so
// that the item has a part.
func (d *decoder) content(path string, o *wire.Object, texts string) ([]built, error) {
	raw := o.Get("content")
	path = wire.Join(path, "content")
	one := built{Part: session.TextPart("")}
	switch wire.KindOf(raw) {
	case 'n':
		one.x.Shape = nullOrAbsent(raw)
	case '"':
		text, exact := d.text(path, raw)
		one.Text, one.x.Shape = text, shapeString
		if text == "" {
			one.x.Shape = shapeEmpty
		}
		if !exact {
			return []built{one}, nil // the field stays in o
		}
	case '[':
		parts, err := d.elements(path, raw, texts)
		if err != nil {
			return nil, err
		}
		o.Drop("content")
		if len(parts) > 0 {
			return parts, nil
		}
		one.x.Shape = shapeArray
	default:
		return nil, wire.Errorf(session.Invalid, path, "must be a string, an array or null, not %s", wire.Describe(raw))
	}
	o.Drop("content")
	return []built{one}, nil
}

func nullOrAbsent(raw json.RawMessage) string {
	if raw == nil {
		return shapeAbsent
	}
	return shapeNull
}

// elements reads the elements of an array. texts is the type that needs no mention.
func (d *decoder) elements(path string, raw json.RawMessage, texts string) ([]built, error) {
	elements, err := wire.ParseArray(path, raw)
	if err != nil {
		return nil, err
	}
	if len(elements) > session.MaxParts {
		return nil, wire.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d, split it", len(elements), session.MaxParts)
	}
	parts := make([]built, 0, len(elements))
	for i, e := range elements {
		b, err := d.element(wire.Index(path, i), e, texts)
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
	}
	return parts, nil
}

// reasoning reads {summary: […], content: […], encrypted_content}. Each text is one part; the
// encrypted content stays in the item as it came.
func (d *decoder) reasoning(path string, o wire.Object) error {
	var parts []built
	for _, list := range [...]struct{ field, texts string }{{"summary", typeSummary}, {"content", typeReasoning}} {
		raw := o.Get(list.field)
		if !wire.HasElements(raw) {
			continue // an empty list, a null or whatever it is stays in the item
		}
		texts, err := d.elements(wire.Join(path, list.field), raw, list.texts)
		if err != nil {
			return err
		}
		for i := range texts {
			if texts[i].Kind == session.PartText {
				texts[i].Kind = session.PartReasoning
			}
			texts[i].x.Of = list.field
		}
		parts = append(parts, texts...)
		o.Drop(list.field)
	}
	if len(parts) == 0 {
		parts = []built{{Part: session.Part{Kind: session.PartReasoning}}}
	}
	return d.add(path, newMessage(session.Assistant, session.Model), o, parts)
}
