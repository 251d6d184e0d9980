package responses

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// message reads {type: message, role, content}. The type may be missing.
func (d *decoder) message(o *wire.Fields) error {
	m, err := role(o)
	if err != nil {
		return err
	}
	m.Author, _ = wire.TextOf(o.Get("name")) // no documented field; it stays in the item
	parts, err := content(o, textType(m.Role))
	if err != nil {
		return err
	}
	return d.add(m, o, parts)
}

func role(o *wire.Fields) (session.Message, error) {
	role, err := o.Take("role")
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
	return session.Message{}, o.Field("role").Errorf(session.Invalid, "is %q: it must be one of user, assistant, system, developer", wire.Clip(role))
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
func content(o *wire.Fields, texts string) ([]built, error) {
	content := o.Value("content")
	one := built{Part: session.TextPart("")}
	switch content.Kind() {
	case 'n':
		one.x.Shape = nullOrAbsent(content.Raw)
	case '"':
		text, exact := content.Text()
		one.Text, one.x.Shape = text, shapeString
		if text == "" {
			one.x.Shape = shapeEmpty
		}
		if !exact {
			return []built{one}, nil // the field stays in o
		}
	case '[':
		parts, err := elements(content, texts)
		if err != nil {
			return nil, err
		}
		o.Drop("content")
		if len(parts) > 0 {
			return parts, nil
		}
		one.x.Shape = shapeArray
	default:
		return nil, content.Not("a string, an array or null")
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
func elements(array wire.Value, texts string) ([]built, error) {
	all, err := array.Elements()
	if err != nil {
		return nil, err
	}
	parts := make([]built, len(all))
	for i, e := range all {
		if err := parts[i].element(e, texts); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// reasoning reads {summary: […], content: […], encrypted_content}. Each text is one part; the
// encrypted content stays in the item as it came.
func (d *decoder) reasoning(o *wire.Fields) error {
	var parts []built
	for _, list := range [...]struct{ field, texts string }{{"summary", typeSummary}, {"content", typeReasoning}} {
		if !wire.HasElements(o.Get(list.field)) {
			continue // an empty list, a null or whatever it is stays in the item
		}
		texts, err := elements(o.Value(list.field), list.texts)
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
	return d.add(newMessage(session.Assistant, session.Model), o, parts)
}
