package gemini

import (
	"encoding/json"
	"strconv"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// messageExtra is messages.extra of a message that came in this form.
type messageExtra struct {
	Shape     string       // of the parts, if they are no array
	Role      string       // as the wire says it, where the message's role does not tell
	NoRole    bool         // the wire names none
	NoContent bool         // a candidate without a content
	Entry     *entry       // of a content that became two messages
	Fields    wire.Object  // of the content, as they came
	Candidate *wire.Object // what stood around the content in a reply
	Response  *wire.Object // what stood around the candidate
}

// entry is a message's share of a content that holds results and other parts.
type entry struct {
	Number int   // of the content in its request
	At     []int // where in the content this message's parts stood
}

func (x *messageExtra) json() session.JSON {
	var o wire.Object
	if x.Shape != "" {
		o.SetText("shape", x.Shape)
	}
	if x.Role != "" {
		o.SetText("role", x.Role)
	}
	flag(&o, "no_role", x.NoRole)
	flag(&o, "no_content", x.NoContent)
	if x.Entry != nil {
		b := strconv.AppendInt([]byte(`{"entry":`), int64(x.Entry.Number), 10)
		b = append(b, `,"at":[`...)
		for i, at := range x.Entry.At {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(at), 10)
		}
		o.Set("wire", append(b, `]}`...))
	}
	if x.Fields.Len() > 0 {
		o.Set("fields", x.Fields.JSON())
	}
	if x.Candidate != nil {
		o.Set("candidate", x.Candidate.JSON())
	}
	if x.Response != nil {
		o.Set("response", x.Response.JSON())
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
	fail := func(err error) (messageExtra, error) {
		return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	o, err := parse("extra", json.RawMessage(m.Extra))
	if err != nil {
		return fail(err)
	}
	x.Shape, _ = wire.TextOf(o.Get("shape"))
	x.Role, _ = wire.TextOf(o.Get("role"))
	x.NoRole, x.NoContent = o.Has("no_role"), o.Has("no_content")
	if raw := o.Get("wire"); raw != nil {
		var e struct {
			Entry int   `json:"entry"`
			At    []int `json:"at"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fail(err)
		}
		x.Entry = &entry{e.Entry, e.At}
	}
	if raw := o.Get("fields"); raw != nil {
		if x.Fields, err = wire.ParseObject("extra.fields", raw); err != nil {
			return fail(err)
		}
	}
	for name, into := range map[string]**wire.Object{"candidate": &x.Candidate, "response": &x.Response} {
		if raw := o.Get(name); raw != nil {
			around, err := wire.ParseObject("extra."+name, raw)
			if err != nil {
				return fail(err)
			}
			*into = &around
		}
	}
	return x, nil
}

// partExtra is parts.extra of a part that came in this form.
type partExtra struct {
	wire.Media
	Field    string          // the wire's name of what the part is, where its kind does not tell
	Shape    string          // of a text, a response or arguments
	Key      string          // of a response of one text: the field that holds it
	Where    string          // content, candidate or response: the part is a large field of it, named by Field
	Type     string          // of a part that no kind holds: its field
	Made     bool            // the call id is not the wire's
	Nested   bool            // the part stands within the response before it
	Encoding string          // "url": the bytes came in that alphabet of base64
	Inner    wire.Object     // fields of what the part is, as they came
	Fields   wire.Object     // fields beside it, as they came
	Raw      json.RawMessage // all of it, where no kind holds it
}

func (x *partExtra) store(p *session.Part) {
	var o wire.Object
	for _, f := range [...]struct{ key, text string }{
		{"media_type", x.MediaType},
		{"url", x.URL},
		{"file_id", x.FileID},
		{"name", x.Name},
		{"field", x.Field},
		{"shape", x.Shape},
		{"key", x.Key},
		{"where", x.Where},
		{"type", x.Type},
		{"encoding", x.Encoding},
	} {
		if f.text != "" {
			o.SetText(f.key, f.text)
		}
	}
	flag(&o, "made", x.Made)
	flag(&o, "nested", x.Nested)
	if x.Inner.Len() > 0 {
		o.Set("inner", x.Inner.JSON())
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
	o, err := parse("extra", json.RawMessage(p.Extra))
	if err == nil {
		err = x.read(&o)
	}
	if err != nil {
		return x, session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return x, nil
}

func (x *partExtra) read(o *wire.Object) (err error) {
	for _, f := range o.Members() {
		switch f.Key {
		case "media_type":
			x.MediaType, _ = wire.TextOf(f.Value)
		case "url":
			x.URL, _ = wire.TextOf(f.Value)
		case "file_id":
			x.FileID, _ = wire.TextOf(f.Value)
		case "name":
			x.Name, _ = wire.TextOf(f.Value)
		case "field":
			x.Field, _ = wire.TextOf(f.Value)
		case "shape":
			x.Shape, _ = wire.TextOf(f.Value)
		case "key":
			x.Key, _ = wire.TextOf(f.Value)
		case "where":
			x.Where, _ = wire.TextOf(f.Value)
		case "type":
			x.Type, _ = wire.TextOf(f.Value)
		case "encoding":
			x.Encoding, _ = wire.TextOf(f.Value)
		case "made":
			x.Made = true
		case "nested":
			x.Nested = true
		case "inner":
			x.Inner, err = wire.ParseObject("extra.inner", f.Value)
		case "fields":
			x.Fields, err = wire.ParseObject("extra.fields", f.Value)
		case "raw":
			x.Raw = f.Value
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func flag(o *wire.Object, key string, on bool) {
	if on {
		o.Set(key, json.RawMessage("true"))
	}
}

// parse reads an object that nobody checked yet.
func parse(path string, raw json.RawMessage) (wire.Object, error) {
	if err := wire.Check(path, raw); err != nil {
		return wire.Object{}, err
	}
	return wire.ParseObject(path, raw)
}
