package gemini

import (
	"encoding/json"

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
	Number int   `json:"entry"` // of the content in its request
	At     []int `json:"at"`    // where in the content this message's parts stood
}

func (x *messageExtra) json() session.JSON {
	var e wire.Extra
	e.Text("shape", x.Shape)
	e.Text("role", x.Role)
	e.Flag("no_role", x.NoRole)
	e.Flag("no_content", x.NoContent)
	if x.Entry != nil {
		e.Raw("wire", json.RawMessage(session.JSONOf(x.Entry)))
	}
	e.Object("fields", &x.Fields)
	e.Whole("candidate", x.Candidate)
	e.Whole("response", x.Response)
	return e.JSON()
}

func messageExtraOf(m *session.Message) (messageExtra, error) {
	var x messageExtra
	if len(m.Extra) == 0 {
		return x, nil
	}
	fail := func(err error) (messageExtra, error) {
		return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	o, err := wire.Stored("extra", m.Extra)
	if err != nil {
		return fail(err)
	}
	x.Shape, _ = wire.TextOf(o.Get("shape"))
	x.Role, _ = wire.TextOf(o.Get("role"))
	x.NoRole, x.NoContent = o.Has("no_role"), o.Has("no_content")
	if raw := o.Get("wire"); raw != nil {
		x.Entry = new(entry)
		if err := json.Unmarshal(raw, x.Entry); err != nil {
			return fail(err)
		}
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
	var e wire.Extra
	e.Media(&x.Media)
	e.Text("field", x.Field)
	e.Text("shape", x.Shape)
	e.Text("key", x.Key)
	e.Text("where", x.Where)
	e.Text("type", x.Type)
	e.Text("encoding", x.Encoding)
	e.Flag("made", x.Made)
	e.Flag("nested", x.Nested)
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
		default:
			x.Media.Read(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
