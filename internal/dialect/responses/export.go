package responses

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export gives items: those of messages that were decoded by this form as the same JSON values,
// those of any other as Send says them. A response object is one value again, as far as its
// messages stand behind one another. Codes: Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	e := exporter{out: make([]json.RawMessage, 0, len(msgs))}
	s := newSender("")
	for i := range msgs {
		m := &msgs[i]
		for j := range m.Parts {
			if err := wire.Loaded(&m.Parts[j]); err != nil {
				return nil, err
			}
		}
		if m.Dialect == Name {
			e.out = append(e.out, s.taken()...)
			if err := e.message(m); err != nil {
				return nil, err
			}
			continue
		}
		e.close()
		if err := s.message(m); err != nil {
			return nil, err
		}
		e.out = append(e.out, s.taken()...)
	}
	e.close()
	s.dangling()
	return append(e.out, s.taken()...), nil
}

// exporter gathers the items of a response until another message comes.
type exporter struct {
	out      []json.RawMessage
	response *wire.Object
	items    []json.RawMessage
}

func (e *exporter) close() {
	if e.response != nil {
		e.response.Set("output", wire.AppendArray(nil, e.items))
		e.out = append(e.out, e.response.JSON())
	}
	e.response, e.items = nil, nil
}

func (e *exporter) message(m *session.Message) error {
	x, err := messageExtraOf(m)
	if err != nil {
		return err
	}
	if !x.Continues || e.response == nil {
		e.close()
	}
	if x.Response != nil {
		e.response = x.Response
	}
	var u unit // the item that is being written
	for i := range m.Parts {
		p := &m.Parts[i]
		x, err := partExtraOf(p)
		if err != nil {
			return err
		}
		switch {
		case x.Of == "response" && e.response != nil:
			raw, err := rawOf(p, &x)
			if err != nil {
				return err
			}
			e.response.Set(x.Field, raw)
			continue
		case x.Item != nil || len(u.parts) == 0:
			if err := e.item(m, &u); err != nil {
				return err
			}
			u = unit{item: x.Item}
		}
		u.parts, u.extras = append(u.parts, p), append(u.extras, x)
	}
	return e.item(m, &u)
}

// unit is the parts of one item.
type unit struct {
	item   *wire.Object // nil for what came in another form
	parts  []*session.Part
	extras []partExtra
}

// kind is the type of the unit's item.
func (u *unit) kind() string {
	if u.item == nil {
		return ""
	}
	if t := u.item.Get("type"); t != nil {
		kind, _ := wire.TextOf(t)
		if kind == "" && u.parts[0].Kind != session.PartData {
			return itemMessage
		}
		return kind
	}
	if u.parts[0].Kind == session.PartData && u.extras[0].Type != "" && u.extras[0].Raw == nil && u.parts[0].Blob == nil {
		return u.extras[0].Type // an item_reference that does not say so
	}
	return itemMessage
}

func (e *exporter) item(m *session.Message, u *unit) error {
	if len(u.parts) == 0 {
		return nil
	}
	raw, err := exportItem(m, u)
	if err != nil {
		return err
	}
	if e.response != nil {
		e.items = append(e.items, raw)
	} else {
		e.out = append(e.out, raw)
	}
	return nil
}

// exportItem writes an item: what its parts hold, then its own fields, which win.
func exportItem(m *session.Message, u *unit) (json.RawMessage, error) {
	if u.item == nil { // parts that something put before the first item
		u.item = &wire.Object{}
		u.item.SetText("type", itemMessage)
	}
	var o wire.Object
	kind := u.kind()
	spec, isCall := specOf(kind)
	_, isOutput := outputTool(kind)
	var err error
	switch {
	case kind == itemMessage:
		err = exportMessage(&o, m, u)
	case kind == itemReasoning:
		err = exportReasoning(&o, u)
	case isCall:
		err = exportCall(&o, u, spec)
	case isOutput:
		err = exportOutput(&o, u)
	}
	if err != nil {
		return nil, err
	}
	o.Overlay(*u.item)
	for i, p := range u.parts {
		if x := &u.extras[i]; p.Kind == session.PartData && x.Field != "" && x.Of == "" {
			raw, err := rawOf(p, x)
			if err != nil {
				return nil, err
			}
			o.Set(x.Field, raw)
		}
	}
	return o.JSON(), nil
}

func exportMessage(o *wire.Object, m *session.Message, u *unit) error {
	o.SetText("role", string(m.Role))
	switch u.extras[0].Shape {
	case shapeAbsent:
	case shapeNull:
		o.Set("content", json.RawMessage("null"))
	case shapeEmpty:
		o.SetText("content", "")
	case shapeArray:
		o.Set("content", json.RawMessage("[]"))
	case shapeString:
		o.SetText("content", u.parts[0].Content())
	default:
		return u.list(o, "content", textType(m.Role), "")
	}
	return nil
}

// list writes the parts of a list of elements; of says which, where an item has several.
func (u *unit) list(o *wire.Object, field, texts, of string) error {
	elements := make([]json.RawMessage, 0, len(u.parts))
	for i, p := range u.parts {
		x := &u.extras[i]
		if x.Of != of || x.Field != "" && p.Kind == session.PartData {
			continue
		}
		raw, err := exportElement(p, x, texts)
		if err != nil {
			return err
		}
		elements = append(elements, raw)
	}
	if of == "" || len(elements) > 0 {
		o.Set(field, wire.AppendArray(nil, elements))
	}
	return nil
}

func exportReasoning(o *wire.Object, u *unit) error {
	if err := u.list(o, "summary", typeSummary, "summary"); err != nil {
		return err
	}
	return u.list(o, "content", typeReasoning, "content")
}

func exportCall(o *wire.Object, u *unit, spec callSpec) error {
	for i, p := range u.parts {
		x := &u.extras[i]
		switch {
		case x.Made || x.Field == "" && p.Kind != session.PartToolCall:
		case p.Kind == session.PartToolCall:
			if p.CallID != "" && !spec.hosted {
				o.SetText("call_id", p.CallID)
			}
			if spec.tool == "" {
				o.SetText("name", p.ToolName)
			}
			switch {
			case x.Field == "":
			case spec.text:
				o.SetText(x.Field, p.Arguments)
			default:
				o.Set(x.Field, json.RawMessage(p.Arguments))
			}
		case p.Kind == session.PartToolResult:
			o.SetText(x.Field, p.Content())
		case p.Kind == session.PartImage && p.Blob != nil:
			o.SetText(x.Field, encode(p.Blob.Data))
		}
	}
	return nil
}

func exportOutput(o *wire.Object, u *unit) error {
	result, x := u.parts[0], &u.extras[0]
	if result.CallID != "" && u.kind() != itemLocalShellOutput { // that keeps its ids in the item
		o.SetText("call_id", result.CallID)
	}
	switch {
	case x.Made: // of a screenshot
		for i, p := range u.parts {
			if u.extras[i].Of == "output" {
				raw, err := exportElement(p, &u.extras[i], typeInputText)
				if err != nil {
					return err
				}
				o.Set("output", raw)
			}
		}
	case x.Shape == shapeNull:
		o.Set("output", json.RawMessage("null"))
	case x.Shape == shapeArray:
		o.Set("output", json.RawMessage("[]"))
	case x.Shape == shapeString:
		o.SetText("output", result.Content())
	case x.Shape == "" && !u.item.Has("output"):
		return exportResult(o, u)
	}
	return nil
}

// exportResult writes an output of elements, the result's text in its place among them.
func exportResult(o *wire.Object, u *unit) error {
	at := 0
	if u.extras[0].At != nil {
		at = *u.extras[0].At
	}
	var elements []json.RawMessage
	for i, p := range u.parts {
		x := &u.extras[i]
		if i == 0 && at < 0 || x.Field != "" && p.Kind == session.PartData {
			continue
		}
		raw, err := exportElement(p, x, typeInputText)
		if err != nil {
			return err
		}
		elements = append(elements, raw)
	}
	if at > 0 && at < len(elements) {
		first := elements[0]
		copy(elements, elements[1:at+1])
		elements[at] = first
	}
	o.Set("output", wire.AppendArray(nil, elements))
	return nil
}
