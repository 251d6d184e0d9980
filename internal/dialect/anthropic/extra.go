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
	if x.Shape == "" && x.Entry == "" && x.Fields.Len() == 0 {
		return nil
	}
	b := make([]byte, 0, sizeOf(&x.Fields)+4*len(x.At)+len(`{"shape":"absent","wire":{"entry":"0123456789abcdef","at":[]},"fields":}`))
	b = appendTextField(b, "shape", x.Shape)
	if x.Entry != "" {
		w := appendTextField(nil, "entry", x.Entry)
		if x.At != nil {
			w = append(appendKey(w, "at"), session.JSONOf(x.At)...)
		}
		b = append(append(appendKey(b, "wire"), w...), '}')
	}
	if x.Fields.Len() > 0 {
		b = x.Fields.Append(appendKey(b, "fields"))
	}
	return append(b, '}')
}

// appendKey begins a field of the object that b holds, or the object itself.
func appendKey(b []byte, key string) []byte {
	if len(b) == 0 {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), key...), `":`...)
}

// appendTextField writes a field unless it is empty.
func appendTextField(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	return wire.AppendText(appendKey(b, key), text)
}

// sizeOf gives about how long an object is.
func sizeOf(o *wire.Object) int {
	size := len(`{}`)
	for _, m := range o.Members() {
		size += len(m.Key) + len(m.Value) + len(`"":,`)
	}
	return size
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
	if x.Media == (wire.Media{}) && x.Type == "" && x.Field == "" && x.Shape == "" && x.At == 0 && x.Source.Len() == 0 && x.Fields.Len() == 0 && len(x.Raw) == 0 {
		return
	}
	const keys = len(`{"media_type":"","url":"","file_id":"","name":"","type":"","field":"","shape":"","at":-1,"source":,"fields":,"raw":}`)
	texts := len(x.MediaType) + len(x.URL) + len(x.FileID) + len(x.Name) + len(x.Type) + len(x.Field) + len(x.Shape)
	b := make([]byte, 0, keys+texts+sizeOf(&x.Source)+sizeOf(&x.Fields)+len(x.Raw))
	b = appendTextField(b, "media_type", x.MediaType)
	b = appendTextField(b, "url", x.URL)
	b = appendTextField(b, "file_id", x.FileID)
	b = appendTextField(b, "name", x.Name)
	b = appendTextField(b, "type", x.Type)
	b = appendTextField(b, "field", x.Field)
	b = appendTextField(b, "shape", x.Shape)
	if x.At != 0 {
		b = strconv.AppendInt(appendKey(b, "at"), int64(x.At), 10)
	}
	if x.Source.Len() > 0 {
		b = x.Source.Append(appendKey(b, "source"))
	}
	if x.Fields.Len() > 0 {
		b = x.Fields.Append(appendKey(b, "fields"))
	}
	if len(x.Raw) > 0 {
		b = append(appendKey(b, "raw"), x.Raw...)
	}
	p.Extra = append(b, '}')
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
