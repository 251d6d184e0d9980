package anthropic

import (
	"encoding/json"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// messageExtra is messages.extra of a message that came in this form. Both extras are read
// and written by hand, as they stand in the way of every turn.
type messageExtra struct {
	Shape  string      // of the content, if it is not a string with text in it
	Entry  string      // the same in the two messages that one entry became
	At     []int       // where in that entry its results stand
	Fields wire.Object // as they came
}

func (x *messageExtra) json() session.JSON {
	var e wire.Extra
	e.Text("shape", x.Shape)
	if x.Entry != "" {
		var w wire.Extra
		w.Text("entry", x.Entry)
		if x.At != nil {
			w.Raw("at", json.RawMessage(session.JSONOf(x.At)))
		}
		e.Raw("wire", json.RawMessage(w.JSON()))
	}
	e.Object("fields", &x.Fields)
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
	if raw := o.Get("fields"); raw != nil {
		if x.Fields, err = wire.ParseObject("extra.fields", raw); err != nil {
			return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
		}
	}
	if raw := o.Get("wire"); wire.KindOf(raw) == '{' {
		var w struct {
			Entry string `json:"entry"`
			At    []int  `json:"at"`
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return x, session.Errorf(session.Internal, "extra.wire of message %s: %w", m.ID, err)
		}
		x.Entry, x.At = w.Entry, w.At
	}
	return x, nil
}

// partExtra is parts.extra of a part that came in this form.
type partExtra struct {
	wire.Media
	Type   string          // of the block, where the part's kind does not say it
	Field  string          // of the message, for a part that is no block
	Shape  string          // of a result's content or of a call's input, if it is not the usual one
	At     int             // of a result: which element of its content is its text, -1 for none
	Source wire.Object     // of an image or a document, without its bytes
	Fields wire.Object     // of the block, as they came
	Raw    json.RawMessage // all of it, where no kind holds it
}

func (x *partExtra) store(p *session.Part) {
	var e wire.Extra
	e.Media(&x.Media)
	e.Text("type", x.Type)
	e.Text("field", x.Field)
	e.Text("shape", x.Shape)
	if x.At != 0 {
		e.Number("at", x.At)
	}
	e.Object("source", &x.Source)
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
	for _, m := range o.Members() {
		switch m.Key {
		case "type":
			x.Type, _ = wire.TextOf(m.Value)
		case "field":
			x.Field, _ = wire.TextOf(m.Value)
		case "shape":
			x.Shape, _ = wire.TextOf(m.Value)
		case "at":
			x.At, err = strconv.Atoi(string(m.Value))
		case "source":
			x.Source, err = wire.ParseObject("extra.source", m.Value)
		case "fields":
			x.Fields, err = wire.ParseObject("extra.fields", m.Value)
		case "raw":
			x.Raw = m.Value
		default:
			x.Media.Read(&m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
