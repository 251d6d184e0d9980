package responses

import (
	"encoding/base64"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Export returns items: those of messages that were decoded by this form as the same JSON values,
// those of any other as Send says them. A response object is one value again, as far as its
// messages stand behind one another. Codes: Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	e := exporter{out: make([]jsontext.Value, 0, len(msgs))}
	s := newSender("")
	for i := range msgs {
		if msgs[i].Dialect != Name {
			e.close()
			if err := s.message(&msgs[i]); err != nil {
				return nil, err
			}
			e.out = append(e.out, s.Taken()...)
			continue
		}
		e.out = append(e.out, s.Taken()...)
		m, err := wire.Open(&msgs[i])
		if err != nil {
			return nil, err
		}
		e.message(&m)
	}
	e.close()
	s.dangling()
	return append(e.out, s.Taken()...), nil
}

// exporter gathers the items of a response until another message comes.
type exporter struct {
	out      []jsontext.Value
	response *jsonx.Object
	items    []jsontext.Value
}

func (e *exporter) close() {
	if e.response != nil {
		e.response.Set("output", jsonx.Array(e.items))
		e.out = append(e.out, e.response.Value())
	}
	e.response, e.items = nil, nil
}

func (e *exporter) message(m *wire.Message) {
	if !m.X.Continues || e.response == nil {
		e.close()
	}
	if m.X.Response != nil {
		e.response = m.X.Response
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; ofResponse(p) && e.response != nil {
			e.response.Set(p.X.Field, p.Raw())
		}
	}
	for _, u := range unitsOf(m) {
		o := u.encode(m.Role)
		if u.item != nil {
			o.Merge(u.item)
		}
		for _, p := range u.parts {
			if isLarge(p) {
				o.Set(p.X.Field, p.Raw())
			}
		}
		if e.response != nil {
			e.items = append(e.items, o.Value())
		} else {
			e.out = append(e.out, o.Value())
		}
	}
}

// ofResponse reports whether a part is a large field of the response object, and of no item.
func ofResponse(p *wire.Part) bool { return p.X.Of == "response" }

// isLarge reports whether a part is a large field of its item.
func isLarge(p *wire.Part) bool { return p.Kind == session.PartData && p.X.Field != "" && p.X.Of == "" }

// unit is the parts of one item.
type unit struct {
	item  *jsonx.Object // its fields that the parts do not say; nil for an item in another form
	kind  string        // its type, "" in another form
	parts []*wire.Part
}

// kindOf is the type of the item that a part begins.
func kindOf(item *jsonx.Object, first *wire.Part) string {
	kind := item.String("type")
	switch {
	case kind != "", item.Has("type") && first.Kind == session.PartData:
		return kind
	case first.Kind == session.PartData && first.X.Type != "" && first.X.Raw == nil && first.Blob == nil:
		return first.X.Type // an item_reference that does not say so
	}
	return itemMessage
}

// unitsOf takes a message apart into items. In this form a part says that it begins one; in any
// other, texts that stand together are one message, and a call has the results with it that
// stand under its id in the same message, since then the provider ran it.
func unitsOf(m *wire.Message) []unit {
	var units []unit
	for i := range m.Parts {
		p := &m.Parts[i]
		last := len(units) - 1
		switch {
		case ofResponse(p):
			continue
		case p.X.Item != nil:
		case last >= 0 && (units[last].item != nil || says(p) && says(units[last].parts[0])):
			units[last].parts = append(units[last].parts, p)
			continue
		case p.Kind != session.PartToolCall:
			if call := callOf(units, p); call != nil {
				call.parts = append(call.parts, p)
				continue
			}
		}
		u := unit{item: p.X.Item, parts: []*wire.Part{p}}
		if u.item != nil {
			u.kind = kindOf(u.item, p)
		}
		units = append(units, u)
	}
	return units
}

// callOf finds the call, of those that came in another form, that a result in the same reply
// answers, or the result that a picture belongs to.
func callOf(units []unit, p *wire.Part) *unit {
	for i := range units {
		u := &units[i]
		if u.item == nil && u.parts[0].Kind == session.PartToolCall && u.parts[0].CallID == p.CallID && p.CallID != "" {
			if answered := len(u.parts) > 1; answered || p.Kind == session.PartToolResult {
				return u
			}
		}
	}
	return nil
}

// says reports whether a part is text, a refusal or a sound.
func says(p *wire.Part) bool {
	return p.Kind == session.PartText || p.Kind == session.PartRefusal || p.Kind == session.PartAudio
}

// encode encodes the parts of an item, without its other fields.
func (u *unit) encode(role session.Role) (o jsonx.Object) {
	if p := u.parts[0]; p.Kind == session.PartData && len(p.X.Raw) == 0 && p.Blob == nil {
		return o // all of it is in the item
	}
	spec, isCall := callSpecs[u.kind]
	_, isOutput := outputTools[u.kind]
	switch {
	case u.kind == itemMessage || u.kind == "":
		u.message(&o, role)
	case u.kind == itemReasoning:
		u.list(&o, "summary", typeSummary, "summary")
		u.list(&o, "content", typeReasoning, "content")
	case isCall:
		u.call(&o, spec)
	case isOutput:
		u.output(&o)
	}
	return o
}

func (u *unit) message(o *jsonx.Object, role session.Role) {
	if u.kind == "" {
		o.SetText("type", itemMessage) // parts that something put before the first item
	}
	o.SetText("role", string(role))
	first := u.parts[0]
	if first.X.Shape == "" {
		u.list(o, "content", textType(role), "")
	} else {
		wire.SetContent(o, "content", first.X.Shape, nil, first.Content())
	}
}

// list writes the parts of a list of elements; of says which, where an item has several.
func (u *unit) list(o *jsonx.Object, field, texts, of string) {
	var elements []jsontext.Value
	for _, p := range u.parts {
		if p.X.Of == of && !isLarge(p) {
			elements = append(elements, p.JSON(encodeElement(p, texts)))
		}
	}
	if of == "" || len(elements) > 0 {
		o.Set(field, jsonx.Array(elements))
	}
}

func (u *unit) call(o *jsonx.Object, spec callSpec) {
	for _, p := range u.parts {
		switch {
		case p.Kind == session.PartToolCall:
			if !spec.hosted {
				o.Add("call_id", jsonx.Maybe(p.CallID))
			}
			if spec.tool == "" {
				o.SetText("name", p.ToolName)
			}
			o.Add(spec.arguments, spec.value(p.Arguments))
		case p.Kind == session.PartToolResult && p.X.Field != "":
			o.SetText(p.X.Field, p.Content())
		case p.Kind == session.PartImage && p.Blob != nil && p.X.Field != "":
			o.SetText(p.X.Field, base64.StdEncoding.EncodeToString(p.Blob.Data))
		}
	}
}

// value returns arguments as the item has them, nil for none.
func (c callSpec) value(arguments string) jsontext.Value {
	if c.text && arguments != "" {
		return jsonx.Quote(arguments)
	}
	return jsontext.Value(arguments)
}

func (u *unit) output(o *jsonx.Object) {
	result := u.parts[0]
	if u.kind != itemLocalShellOutput { // that keeps its ids in the item
		o.Add("call_id", jsonx.Maybe(result.CallID))
	}
	switch result.X.Shape {
	case wire.ShapeAbsent:
		for _, p := range u.parts {
			if p.X.Of == "output" { // a screenshot
				o.Set("output", p.JSON(encodeElement(p, typeInputText)))
			}
		}
		return
	case "":
	default:
		wire.SetContent(o, "output", result.X.Shape, nil, result.Content())
		return
	}
	elements := slices.DeleteFunc(slices.Clone(u.parts[1:]), isLarge)
	if at := wire.TextPlace(result); at >= 0 && at <= len(elements) {
		elements = slices.Insert(elements, at, result)
	}
	list := make([]jsontext.Value, len(elements))
	for i, p := range elements {
		list[i] = p.JSON(encodeElement(p, typeInputText))
	}
	o.Set("output", jsonx.Array(list))
}

// encodeElement encodes an element's part. texts is the type that a text has in the list.
func encodeElement(p *wire.Part, texts string) (o jsonx.Object) {
	x := &p.X
	switch p.Kind {
	case session.PartRefusal:
		o.Add("type", typeRefusal, "refusal", p.Content())
	case session.PartImage:
		o.Add("type", typeImage, "image_url", jsonx.Maybe(wire.DataURLOf(p)+x.URL), "file_id", jsonx.Maybe(x.FileID),
			"detail", jsonx.Maybe(x.Detail))
	case session.PartFile:
		o.Add("type", typeFile, "file_data", jsonx.Maybe(wire.DataURLOf(p)), "file_url", jsonx.Maybe(x.URL), "file_id",
			jsonx.Maybe(x.FileID), "filename", jsonx.Maybe(x.Name))
	case session.PartAudio:
		o.Add("type", typeAudio)
		if x.Field != "" {
			o.Add(x.Field, jsonx.Maybe(wire.DataURLOf(p)+x.URL))
		} else if p.Blob != nil {
			o.Add(typeAudio, jsonx.Encode("data", wire.DataURLOf(p)))
		}
	default:
		o.Add("type", texts, "text", p.Content())
	}
	return o
}
