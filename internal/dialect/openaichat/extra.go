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
	var o wire.Object
	if x.Shape != "" {
		o.SetText("shape", x.Shape)
	}
	if x.Role != "" {
		o.SetText("role", x.Role)
	}
	if x.Fields.Len() > 0 {
		o.Set("fields", x.Fields.JSON())
	}
	if x.Choice != nil {
		o.Set("choice", x.Choice.JSON())
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
	raw := json.RawMessage(m.Extra)
	if err := wire.Check("extra", raw); err != nil {
		return x, session.Errorf(session.Internal, "message %s: %w", m.ID, err)
	}
	o, err := wire.ParseObject("extra", raw)
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
	Field  string          `json:"field,omitempty"`  // of the message, for a part that is not of its content
	Type   string          `json:"type,omitempty"`   // of a call that is no function's, of an element that no kind holds
	At     *int            `json:"at,omitempty"`     // of a result: which element is its text, -1 for none; nil: the first
	Prefix string          `json:"prefix,omitempty"` // of a data URL, before its bytes
	Absent []string        `json:"absent,omitempty"` // what export would write and the wire had not
	Inner  wire.Object     `json:"inner,omitzero"`   // fields of image_url, input_audio, file, function or custom, as they came
	Fields wire.Object     `json:"fields,omitzero"`  // fields around it, as they came
	Raw    json.RawMessage `json:"raw,omitempty"`    // all of it, where no kind holds it
}

func (x *partExtra) store(p *session.Part) {
	empty := x.Media == wire.Media{} && x.Field == "" && x.Type == "" && x.At == nil && x.Prefix == "" &&
		len(x.Absent) == 0 && x.Inner.IsZero() && x.Fields.IsZero() && len(x.Raw) == 0
	if !empty {
		p.Extra = session.JSONOf(x)
	}
}

func partExtraOf(p *session.Part) (partExtra, error) {
	var x partExtra
	if len(p.Extra) == 0 {
		return x, nil
	}
	if err := json.Unmarshal(p.Extra, &x); err != nil {
		return x, session.Errorf(session.Internal, "extra of part %d of message %d: %w", p.Idx, p.MessageID, err)
	}
	return x, nil
}
