package openaichat

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// messageExtra is messages.extra of a message that came in this form. It is read and written
// by hand, as it stands in the way of every turn.
type messageExtra struct {
	Shape  string       // of the content, if it is not a string with text in it
	Role   string       // developer or function
	Fields wire.Object  // as they came
	Choice *wire.Object // what stood around the message in a reply's choice
}

func (x *messageExtra) json() session.JSON {
	var e wire.Extra
	e.Text("shape", x.Shape)
	e.Text("role", x.Role)
	e.Object("fields", &x.Fields)
	e.Whole("choice", x.Choice)
	return e.JSON()
}

func messageExtraOf(m *session.Message) (messageExtra, error) {
	var x messageExtra
	if len(m.Extra) == 0 {
		return x, nil
	}
	o, err := wire.Stored("extra", m.Extra)
	if err != nil {
		return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	x.Shape, _ = wire.TextOf(o.Get("shape"))
	x.Role, _ = wire.TextOf(o.Get("role"))
	if fields := o.Get("fields"); fields != nil {
		if x.Fields, err = wire.ParseObject("extra.fields", fields); err != nil {
			return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
		}
	}
	if choice := o.Get("choice"); choice != nil {
		around, err := wire.ParseObject("extra.choice", choice)
		if err != nil {
			return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
		}
		x.Choice = &around
	}
	return x, nil
}

// partExtra is parts.extra of a part that came in this form.
type partExtra struct {
	wire.Media
	Field  string          // of the message, for a part that is not of its content
	Type   string          // of a call that is no function's, of an element that no kind holds
	At     *int            // of a result: which element is its text, -1 for none; nil: the first
	Prefix string          // of a data URL, before its bytes
	Absent []string        // what export would write and the wire had not
	Inner  wire.Object     // fields of image_url, input_audio, file, function or custom, as they came
	Fields wire.Object     // fields around it, as they came
	Raw    json.RawMessage // all of it, where no kind holds it
}

func (x *partExtra) store(p *session.Part) {
	var e wire.Extra
	e.Media(&x.Media)
	e.Text("field", x.Field)
	e.Text("type", x.Type)
	if x.At != nil {
		e.Number("at", *x.At)
	}
	e.Text("prefix", x.Prefix)
	if len(x.Absent) > 0 {
		e.Raw("absent", json.RawMessage(session.JSONOf(x.Absent)))
	}
	e.Object("inner", &x.Inner)
	e.Object("fields", &x.Fields)
	e.Raw("raw", x.Raw)
	p.Extra = e.JSON()
}

func partExtraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	err := wire.StoredOf(p, x.read)
	return x, err
}

func (x *partExtra) read(o *wire.Object) (err error) {
	for _, f := range o.Members() {
		switch f.Key {
		case "field":
			x.Field, _ = wire.TextOf(f.Value)
		case "type":
			x.Type, _ = wire.TextOf(f.Value)
		case "at":
			err = json.Unmarshal(f.Value, &x.At)
		case "prefix":
			x.Prefix, _ = wire.TextOf(f.Value)
		case "absent":
			err = json.Unmarshal(f.Value, &x.Absent)
		case "inner":
			x.Inner, err = wire.ParseObject("extra.inner", f.Value)
		case "fields":
			x.Fields, err = wire.ParseObject("extra.fields", f.Value)
		case "raw":
			x.Raw = f.Value
		default:
			x.Media.Read(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
