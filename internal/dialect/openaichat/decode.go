package openaichat

import (
	"encoding/json"
	"fmt"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads messages of a request, or a reply's message, alone or as the whole choice
// {message, finish_reason}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	msgs := make([]session.Message, 0, len(raw))
	for i, r := range raw {
		path := wire.Index("messages", i)
		if err := wire.Check(path, r); err != nil {
			return wire.Decoded{}, err
		}
		m, err := d.choice(path, r)
		if err != nil {
			return wire.Decoded{}, err
		}
		msgs = append(msgs, m)
	}
	return wire.Decoded{Messages: msgs, Warnings: d.warnings}, nil
}

type decoder struct{ warnings []string }

func (d *decoder) warn(path, format string, args ...any) {
	d.warnings = append(d.warnings, path+" "+fmt.Sprintf(format, args...))
}

// choice reads a message, or a choice of a reply with the message in it.
func (d *decoder) choice(path string, raw json.RawMessage) (session.Message, error) {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return session.Message{}, err
	}
	inner := o.Get("message")
	if inner == nil || o.Has("role") {
		return d.message(path, o, messageExtra{})
	}
	finish, _ := wire.TextOf(o.Get("finish_reason"))
	o.Drop("message")
	if err := wire.FitsExtra(path, &o); err != nil {
		return session.Message{}, err
	}
	path = wire.Join(path, "message")
	body, err := wire.ParseObject(path, inner)
	if err != nil {
		return session.Message{}, err
	}
	m, err := d.message(path, body, messageExtra{Choice: &o})
	m.Finish = finishes()[finish]
	return m, err
}

func finishes() map[string]session.Finish {
	return map[string]session.Finish{
		"stop": session.FinishStop, "length": session.FinishLength, "content_filter": session.FinishRefusal,
		"tool_calls": session.FinishToolCalls, "function_call": session.FinishToolCalls,
	}
}

// message reads a message; what is left of o when all is understood goes to its extra.
func (d *decoder) message(path string, o wire.Object, x messageExtra) (session.Message, error) {
	m := session.Message{Kind: session.KindMessage, Dialect: Name, InContext: true, Display: true}
	if err := d.role(path, &o, &m, &x); err != nil {
		return m, err
	}
	var err error
	if raw := o.Get("name"); !wire.IsNull(raw) && string(raw) != `""` {
		if m.Author, err = d.take(&o, path, "name"); err != nil {
			return m, err
		}
	}
	steps := []func(string, *wire.Object, *session.Message, *messageExtra) error{d.content}
	switch m.Role {
	case session.Assistant:
		steps = []func(string, *wire.Object, *session.Message, *messageExtra) error{d.reasoning, d.content, d.refusal, d.audio, d.calls}
	case session.Tool:
		steps = []func(string, *wire.Object, *session.Message, *messageExtra) error{d.result}
	}
	if m.Role != session.Assistant && wire.HasElements(o.Get(fieldToolCalls)) {
		return m, wire.Errorf(session.Invalid, wire.Join(path, fieldToolCalls), "stands in a message of role %s: only an assistant calls tools", m.Role)
	}
	for _, step := range steps {
		if err := step(path, &o, &m, &x); err != nil {
			return m, err
		}
	}
	if err := keepLarge(path, &o, &m); err != nil {
		return m, err
	}
	if len(m.Parts) > session.MaxParts {
		return m, wire.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", len(m.Parts), session.MaxParts)
	}
	x.Fields = o
	m.Extra = x.json()
	return m, nil
}

func (d *decoder) role(path string, o *wire.Object, m *session.Message, x *messageExtra) error {
	role, err := d.take(o, path, "role")
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
		return wire.Errorf(session.Invalid, wire.Join(path, "role"), "is %q: it must be one of system, developer, user, assistant, tool, function", wire.Clip(role))
	}
	return nil
}

// content reads the content of any message but a tool's.
func (d *decoder) content(path string, o *wire.Object, m *session.Message, x *messageExtra) error {
	raw := o.Get("content")
	path = wire.Join(path, "content")
	switch wire.KindOf(raw) {
	case 'n':
		x.Shape = nullOrAbsent(raw)
	case '"':
		text, exact := d.text(path, raw)
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
		elements, err := parts(path, raw)
		if err != nil {
			return err
		}
		for i, e := range elements {
			p, err := d.element(wire.Index(path, i), e)
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, p)
		}
	default:
		return wire.Errorf(session.Invalid, path, "must be a string, an array or null, not %s", wire.Describe(raw))
	}
	o.Drop("content")
	return nil
}

// parts gives the elements of an array, if a message can hold as many. Codes: Invalid.
func parts(path string, raw json.RawMessage) ([]json.RawMessage, error) {
	elements, err := wire.ParseArray(path, raw)
	if len(elements) > session.MaxParts {
		return nil, wire.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d, split it", len(elements), session.MaxParts)
	}
	return elements, err
}

// result reads a tool's message: its first text is the result's, the other elements follow
// under the same call id.
func (d *decoder) result(path string, o *wire.Object, m *session.Message, x *messageExtra) error {
	p := session.Part{Kind: session.PartToolResult, ToolName: m.Author}
	var err error
	if x.Role != roleFunction {
		if p.CallID, err = d.take(o, path, "tool_call_id"); err != nil {
			return err
		}
	}
	if err := d.content(path, o, m, x); err != nil {
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

func (d *decoder) reasoning(path string, o *wire.Object, m *session.Message, _ *messageExtra) error {
	for _, field := range []string{fieldReasoningContent, fieldReasoning} {
		if wire.KindOf(o.Get(field)) != '"' {
			continue // a vendor's own: whatever else it is, it is kept
		}
		text, err := d.take(o, path, field)
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

func (d *decoder) refusal(path string, o *wire.Object, m *session.Message, _ *messageExtra) error {
	if wire.IsNull(o.Get(fieldRefusal)) {
		return nil
	}
	text, err := d.take(o, path, fieldRefusal)
	p := session.Part{Kind: session.PartRefusal, Text: text}
	x := partExtra{Field: fieldRefusal}
	x.store(&p)
	m.Parts = append(m.Parts, p)
	return err
}

// audio reads what the model said aloud: {id, data, expires_at, transcript}.
func (d *decoder) audio(path string, o *wire.Object, m *session.Message, _ *messageExtra) error {
	raw := o.Get(fieldAudio)
	if wire.IsNull(raw) {
		return nil
	}
	path = wire.Join(path, fieldAudio)
	inner, err := wire.ParseObject(path, raw)
	if err != nil {
		return err
	}
	p := session.Part{Kind: session.PartAudio}
	if text, _ := wire.TextOf(inner.Get("transcript")); text != "" && len(text) <= session.BlobThreshold { // the blob is for the bytes
		if p.Text, err = d.take(&inner, path, "transcript"); err != nil {
			return err
		}
	}
	if text, exact := wire.TextOf(inner.Get("data")); exact {
		if data, ok := wire.Base64(text); ok {
			wire.Attach(&p, wire.Blob("application/octet-stream", data)) // the format stood in the request
			inner.Drop("data")
		}
	}
	if err := wire.FitsExtra(path, &inner); err != nil {
		return err
	}
	o.Drop(fieldAudio)
	x := partExtra{Field: fieldAudio, Inner: inner}
	x.store(&p)
	m.Parts = append(m.Parts, p)
	return nil
}

// take reads a field that must be a string. The field stays in the object, and so in extra,
// where the text is not all that it says.
func (d *decoder) take(o *wire.Object, path, field string) (string, error) {
	raw := o.Get(field)
	path = wire.Join(path, field)
	if wire.KindOf(raw) != '"' {
		if raw == nil {
			return "", wire.Errorf(session.Invalid, path, "is missing")
		}
		return "", wire.Errorf(session.Invalid, path, "must be a string, not %s", wire.Describe(raw))
	}
	text, exact := d.text(path, raw)
	if exact {
		o.Drop(field)
	}
	return text, nil
}

func (d *decoder) text(path string, raw json.RawMessage) (string, bool) {
	text, exact := wire.Text(raw)
	if !exact {
		d.warn(path, "holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export")
	}
	return text, exact
}

func nullOrAbsent(raw json.RawMessage) string {
	if raw == nil {
		return shapeAbsent
	}
	return shapeNull
}

// keepLarge moves fields that an extra should not hold, being deep or large, to data parts.
func keepLarge(path string, o *wire.Object, m *session.Message) error {
	for _, f := range o.Large() {
		if f.Odd() || f.Key == "" {
			return wire.Errorf(session.TooLarge, wire.Join(path, f.Key), "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, wire.MaxExtraDepth)
		}
		o.Drop(f.Key)
		m.Parts = append(m.Parts, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	return nil
}

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) session.Part {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	x.store(&p)
	return p
}
