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
	var o wire.Object
	if x.Shape != "" {
		o.SetText("shape", x.Shape)
	}
	if x.Entry != "" {
		var w wire.Object
		w.SetText("entry", x.Entry)
		if x.At != nil {
			w.Set("at", json.RawMessage(session.JSONOf(x.At)))
		}
		o.Set("wire", w.JSON())
	}
	if x.Fields.Len() > 0 {
		o.Set("fields", x.Fields.JSON())
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
	o, err := stored(m.Extra)
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

// stored reads an extra of our own.
func stored(extra session.JSON) (wire.Object, error) {
	if err := wire.Check("extra", json.RawMessage(extra)); err != nil {
		return wire.Object{}, err
	}
	return wire.ParseObject("extra", json.RawMessage(extra))
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
	var o wire.Object
	for _, f := range [...]struct{ key, value string }{
		{"media_type", x.MediaType},
		{"url", x.URL},
		{"file_id", x.FileID},
		{"name", x.Name},
		{"type", x.Type},
		{"field", x.Field},
		{"shape", x.Shape},
	} {
		if f.value != "" {
			o.SetText(f.key, f.value)
		}
	}
	if x.At != 0 {
		o.Set("at", json.RawMessage(strconv.Itoa(x.At)))
	}
	if x.Source.Len() > 0 {
		o.Set("source", x.Source.JSON())
	}
	if x.Fields.Len() > 0 {
		o.Set("fields", x.Fields.JSON())
	}
	if len(x.Raw) > 0 {
		o.Set("raw", x.Raw)
	}
	if o.Len() > 0 {
		p.Extra = session.JSON(o.JSON())
	}
}

func partExtraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	if len(p.Extra) == 0 {
		return x, nil
	}
	o, err := stored(p.Extra)
	for _, m := range o.Members() {
		if err != nil {
			break
		}
		switch m.Key {
		case "media_type":
			x.MediaType, _ = wire.TextOf(m.Value)
		case "url":
			x.URL, _ = wire.TextOf(m.Value)
		case "file_id":
			x.FileID, _ = wire.TextOf(m.Value)
		case "name":
			x.Name, _ = wire.TextOf(m.Value)
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
		}
	}
	if err != nil {
		return x, session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return x, nil
}
