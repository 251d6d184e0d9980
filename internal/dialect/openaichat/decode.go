package openaichat

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads messages of a request, or a reply's message, alone or as the whole choice
// {message, finish_reason}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

type decoder struct{ wire.Reader }

// entry reads a message, or a choice of a reply with the message in it.
func (d *decoder) entry(entry wire.Value) error {
	o, err := entry.Fields()
	if err != nil {
		return err
	}
	if !o.Has("message") || o.Has("role") {
		return d.message(&o, messageExtra{}, "")
	}
	body, err := o.Inner("message")
	if err != nil {
		return err
	}
	finish, _ := wire.TextOf(o.Get("finish_reason"))
	o.Drop("message")
	if err := o.Fits(); err != nil {
		return err
	}
	return d.message(&body, messageExtra{Choice: &o.Object}, finishes()[finish])
}

func finishes() map[string]session.Finish {
	return map[string]session.Finish{
		"stop": session.FinishStop, "length": session.FinishLength, "content_filter": session.FinishRefusal,
		"tool_calls": session.FinishToolCalls, "function_call": session.FinishToolCalls,
	}
}

// message reads a message; what is left of o when all is understood goes to its extra.
func (d *decoder) message(o *wire.Fields, x messageExtra, finish session.Finish) error {
	m := session.Message{Kind: session.KindMessage, Dialect: Name, Finish: finish, InContext: true, Display: true}
	if err := role(o, &m, &x); err != nil {
		return err
	}
	var err error
	if raw := o.Get("name"); !wire.IsNull(raw) && string(raw) != `""` {
		if m.Author, err = o.Take("name"); err != nil {
			return err
		}
	}
	switch m.Role {
	case session.Assistant:
		err = d.reply(o, &m, &x)
	case session.Tool:
		err = d.result(o, &m, &x)
	default:
		err = d.content(o, &m, &x)
	}
	if err != nil {
		return err
	}
	if m.Role != session.Assistant && wire.HasElements(o.Get(fieldToolCalls)) {
		return o.Field(fieldToolCalls).Errorf(session.Invalid, "stands in a message of role %s: only an assistant calls tools", m.Role)
	}
	large, err := o.TakeLarge()
	if err != nil {
		return err
	}
	for _, f := range large {
		m.Parts = append(m.Parts, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	x.Fields = o.Object
	m.Extra = x.json()
	d.Messages = append(d.Messages, m)
	return o.Holds(len(m.Parts))
}

func role(o *wire.Fields, m *session.Message, x *messageExtra) error {
	role, err := o.Take("role")
	if err != nil {
		return err
	}
	switch role {
	case "user":
		m.Role, m.Origin = session.User, session.Person
	case "assistant":
		m.Role, m.Origin = session.Assistant, session.Model
	case "tool":
		m.Role, m.Origin = session.Tool, session.ByTool
	case "system":
		m.Role, m.Origin = session.System, session.Program
	case roleDeveloper:
		m.Role, m.Origin, x.Role = session.System, session.Program, role
	case roleFunction:
		m.Role, m.Origin, x.Role = session.Tool, session.ByTool, role
	default:
		return o.Field("role").Errorf(session.Invalid, "is %q: it must be one of system, developer, user, assistant, tool, function", wire.Clip(role))
	}
	return nil
}

// reply reads what an assistant's message holds, in the order of its parts.
func (d *decoder) reply(o *wire.Fields, m *session.Message, x *messageExtra) error {
	if err := reasoning(o, m); err != nil {
		return err
	}
	if err := d.content(o, m, x); err != nil {
		return err
	}
	if err := refusal(o, m); err != nil {
		return err
	}
	if err := audio(o, m); err != nil {
		return err
	}
	return d.calls(o, m)
}

// content reads the content of any message but a tool's.
func (d *decoder) content(o *wire.Fields, m *session.Message, x *messageExtra) error {
	content := o.Value("content")
	switch content.Kind() {
	case 'n':
		x.Shape = nullOrAbsent(content.Raw)
	case '"':
		text, exact := content.Text()
		if text == "" {
			x.Shape = shapeEmpty
		} else {
			m.Parts = append(m.Parts, session.TextPart(text))
		}
		if !exact {
			return nil // the field stays in o
		}
	case '[':
		x.Shape = shapeArray
		elements, err := content.Elements()
		if err != nil {
			return err
		}
		for _, e := range elements {
			p, err := element(e)
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, p)
		}
	default:
		return content.Not("a string, an array or null")
	}
	o.Drop("content")
	return nil
}

// result reads a tool's message: its first text is the result's, the other elements follow
// under the same call id.
func (d *decoder) result(o *wire.Fields, m *session.Message, x *messageExtra) error {
	p := session.Part{Kind: session.PartToolResult, ToolName: m.Author}
	var err error
	if x.Role != roleFunction {
		if p.CallID, err = o.Take("tool_call_id"); err != nil {
			return err
		}
	}
	if err := d.content(o, m, x); err != nil {
		return err
	}
	var px partExtra
	at := -1
	for i := range m.Parts {
		m.Parts[i].CallID = p.CallID
		if at < 0 && m.Parts[i].Kind == session.PartText {
			at = i
		}
	}
	switch {
	case at >= 0:
		first := m.Parts[at]
		if px, err = partExtraOf(&first); err != nil {
			return err
		}
		p.Text = first.Text
		m.Parts = append(m.Parts[:at], m.Parts[at+1:]...)
	case x.Shape != shapeArray:
		at = 0
	}
	if at != 0 {
		px.At = &at
	}
	px.store(&p)
	m.Parts = append([]session.Part{p}, m.Parts...)
	return nil
}

func reasoning(o *wire.Fields, m *session.Message) error {
	for _, field := range []string{fieldReasoningContent, fieldReasoning} {
		if wire.KindOf(o.Get(field)) != '"' {
			continue // a vendor's own: whatever else it is, it is kept
		}
		text, err := o.Take(field)
		if err != nil {
			return err
		}
		p := session.Part{Kind: session.PartReasoning, Text: text}
		x := partExtra{Field: field}
		x.store(&p)
		m.Parts = append(m.Parts, p)
	}
	return nil
}

func refusal(o *wire.Fields, m *session.Message) error {
	if wire.IsNull(o.Get(fieldRefusal)) {
		return nil
	}
	text, err := o.Take(fieldRefusal)
	p := session.Part{Kind: session.PartRefusal, Text: text}
	x := partExtra{Field: fieldRefusal}
	x.store(&p)
	m.Parts = append(m.Parts, p)
	return err
}

// audio reads what the model said aloud: {id, data, expires_at, transcript}.
func audio(o *wire.Fields, m *session.Message) error {
	if wire.IsNull(o.Get(fieldAudio)) {
		return nil
	}
	inner, err := o.Inner(fieldAudio)
	if err != nil {
		return err
	}
	p := session.Part{Kind: session.PartAudio}
	if text, _ := wire.TextOf(inner.Get("transcript")); text != "" && len(text) <= session.BlobThreshold { // the blob is for the bytes
		if p.Text, err = inner.Take("transcript"); err != nil {
			return err
		}
	}
	if text, exact := wire.TextOf(inner.Get("data")); exact {
		if data, ok := wire.Base64(text); ok {
			wire.Attach(&p, wire.Blob("application/octet-stream", data)) // the format stood in the request
			inner.Drop("data")
		}
	}
	x := partExtra{Field: fieldAudio}
	if err := x.keepInner(fieldAudio, o, inner); err != nil {
		return err
	}
	x.store(&p)
	m.Parts = append(m.Parts, p)
	return nil
}

func nullOrAbsent(raw json.RawMessage) string {
	if raw == nil {
		return shapeAbsent
	}
	return shapeNull
}

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) session.Part {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	x.store(&p)
	return p
}
