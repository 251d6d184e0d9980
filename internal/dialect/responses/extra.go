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
	var e wire.Extra
	e.Whole("response", x.Response)
	e.Flag("continues", x.Continues)
	return e.JSON()
}

func messageExtraOf(m *session.Message) (messageExtra, error) {
	var x messageExtra
	if len(m.Extra) == 0 {
		return x, nil
	}
	o, err := wire.Stored("extra", m.Extra)
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
	var e wire.Extra
	e.Whole("item", x.Item)
	e.Text("shape", x.Shape)
	e.Text("type", x.Type)
	e.Text("field", x.Field)
	e.Text("prefix", x.Prefix)
	e.Text("of", x.Of)
	e.Media(&x.Media)
	if x.At != nil {
		e.Number("at", *x.At)
	}
	e.Flag("made", x.Made)
	e.Object("fields", &x.Fields)
	e.Raw("raw", x.Raw)
	b.Extra = e.JSON()
	return b.Part
}

func partExtraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	err := wire.StoredOf(p, x.read)
	return x, err
}

func (x *partExtra) read(o *wire.Object) (err error) {
	for _, f := range o.Members() {
		switch f.Key {
		case "shape":
			x.Shape, _ = wire.TextOf(f.Value)
		case "type":
			x.Type, _ = wire.TextOf(f.Value)
		case "field":
			x.Field, _ = wire.TextOf(f.Value)
		case "prefix":
			x.Prefix, _ = wire.TextOf(f.Value)
		case "of":
			x.Of, _ = wire.TextOf(f.Value)
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
		default:
			x.Media.Read(&f)
		}
	}
	return nil
}
