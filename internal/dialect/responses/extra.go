package responses

import (
	"encoding/json"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// messageExtra is messages.extra of a message that came in a response object.
type messageExtra struct {
	Response  *wire.Object // what stood around output; of the response's first message
	Continues bool         // it belongs to the response of the message before it
}

func (x *messageExtra) json() session.JSON {
	var o wire.Object
	if x.Response != nil {
		o.Set("response", x.Response.JSON())
	}
	if x.Continues {
		o.Set("continues", json.RawMessage("true"))
	}
	if o.Len() == 0 {
		return nil
	}
	return session.JSON(o.JSON())
}

func messageExtraOf(m *session.Message) (messageExtra, error) {
	var x messageExtra
	if len(m.Extra) == 0 {
		return x, nil
	}
	o, err := parseExtra(m.Extra)
	if err != nil {
		return x, session.Errorf(session.Internal, "extra of message %s: %w", m.ID, err)
	}
	x.Continues = wire.KindOf(o.Get("continues")) == 't'
	if raw := o.Get("response"); raw != nil {
		around, err := wire.ParseObject("extra.response", raw)
		if err != nil {
			return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
		}
		x.Response = &around
	}
	return x, nil
}

// partExtra is parts.extra of a part that came in this form. It is read and written by hand,
// as it stands in the way of every turn.
type partExtra struct {
	wire.Media
	Item   *wire.Object    // the item that the part begins: its fields as they came, but those that parts hold
	Shape  string          // of the item's content or output, if it is no array with elements
	Type   string          // custom for the call of a custom tool; of an item or element that no kind holds
	Field  string          // the field that the part's arguments, result or bytes came in
	At     *int            // of a result: which element is its text, -1 for none; nil: the first
	Prefix string          // of a data URL, before its bytes
	Of     string          // "response" for a field of the response object; summary, content, output for an element of that field
	Made   bool            // the part is for reading: nothing of it stands on the wire
	Fields wire.Object     // of the element, as they came
	Raw    json.RawMessage // all of the element, where no kind holds it
}

// built is a part and its extra before that is written.
type built struct {
	session.Part
	x partExtra
}

func (b *built) finish() session.Part {
	x := &b.x
	var o wire.Object
	if x.Item != nil {
		o.Set("item", x.Item.JSON())
	}
	for _, f := range [...][2]string{
		{"shape", x.Shape},
		{"type", x.Type},
		{"field", x.Field},
		{"prefix", x.Prefix},
		{"of", x.Of},
		{"media_type", x.MediaType},
		{"url", x.URL},
		{"file_id", x.FileID},
		{"name", x.Name},
		{"detail", x.Detail},
	} {
		if f[1] != "" {
			o.SetText(f[0], f[1])
		}
	}
	if x.At != nil {
		o.Set("at", json.RawMessage(strconv.Itoa(*x.At)))
	}
	if x.Made {
		o.Set("made", json.RawMessage("true"))
	}
	if x.Fields.Len() > 0 {
		o.Set("fields", x.Fields.JSON())
	}
	if x.Raw != nil {
		o.Set("raw", x.Raw)
	}
	if o.Len() > 0 {
		b.Extra = session.JSON(o.JSON())
	}
	return b.Part
}

func partExtraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	if len(p.Extra) == 0 {
		return x, nil
	}
	err := x.read(p.Extra)
	if err != nil {
		err = session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return x, err
}

func (x *partExtra) read(raw session.JSON) error {
	o, err := parseExtra(raw)
	if err != nil {
		return err
	}
	for _, f := range o.Members() {
		if text := x.textOf(f.Key); text != nil {
			*text, _ = wire.TextOf(f.Value)
			continue
		}
		switch f.Key {
		case "item":
			item, err := wire.ParseObject("extra.item", f.Value)
			if err != nil {
				return err
			}
			x.Item = &item
		case "fields":
			if x.Fields, err = wire.ParseObject("extra.fields", f.Value); err != nil {
				return err
			}
		case "at":
			if at, err := strconv.Atoi(string(f.Value)); err == nil {
				x.At = &at
			}
		case "made":
			x.Made = wire.KindOf(f.Value) == 't'
		case "raw":
			x.Raw = f.Value
		}
	}
	return nil
}

// textOf gives the place of a field that is a string.
func (x *partExtra) textOf(field string) *string {
	switch field {
	case "shape":
		return &x.Shape
	case "type":
		return &x.Type
	case "field":
		return &x.Field
	case "prefix":
		return &x.Prefix
	case "of":
		return &x.Of
	case "media_type":
		return &x.MediaType
	case "url":
		return &x.URL
	case "file_id":
		return &x.FileID
	case "name":
		return &x.Name
	case "detail":
		return &x.Detail
	}
	return nil
}

func parseExtra(raw session.JSON) (wire.Object, error) {
	if !json.Valid(raw) {
		return wire.Object{}, session.Errorf(session.Internal, "it is no JSON")
	}
	return wire.ParseObject("extra", json.RawMessage(raw))
}
