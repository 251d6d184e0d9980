package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads entries of a request's messages, or whole replies {id, type: "message", role,
// model, content, stop_reason, usage}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	msgs := make([]session.Message, 0, len(raw))
	for i, r := range raw {
		path := wire.Index("messages", i)
		if err := wire.Check(path, r); err != nil {
			return wire.Decoded{}, err
		}
		var err error
		if msgs, err = d.entry(msgs, path, r); err != nil {
			return wire.Decoded{}, err
		}
	}
	return wire.Decoded{Messages: msgs, Warnings: d.warnings}, nil
}

type decoder struct{ warnings []string }

func (d *decoder) warn(path, format string, args ...any) {
	d.warnings = append(d.warnings, path+" "+fmt.Sprintf(format, args...))
}

func newMessage(role session.Role, origin session.Origin) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Origin: origin, Dialect: Name, InContext: true, Display: true}
}

// entry reads an entry and appends the message, or the two, that it becomes.
func (d *decoder) entry(msgs []session.Message, path string, raw json.RawMessage) ([]session.Message, error) {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return nil, err
	}
	m, err := d.role(path, &o)
	if err != nil {
		return nil, err
	}
	if m.Role == session.Assistant {
		m.Model, _ = wire.TextOf(o.Get("model")) // stays in o, too: the append may say another one
		reason, _ := wire.TextOf(o.Get("stop_reason"))
		m.Finish = finish(reason)
	}
	var x messageExtra
	groups, err := d.content(path, &o, &m, &x)
	if err != nil {
		return nil, err
	}
	m, user := split(m, groups, &x, raw)
	if err := keepLarge(path, &o, &m); err != nil {
		return nil, err
	}
	x.Fields = o
	m.Extra = x.json()
	if len(m.Parts) > session.MaxParts {
		return nil, wire.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", len(m.Parts), session.MaxParts)
	}
	msgs = append(msgs, m)
	if user != nil { // it has fewer blocks than the entry, each of them one part
		half := messageExtra{Shape: shapeArray, Entry: x.Entry}
		user.Extra = half.json()
		msgs = append(msgs, *user)
	}
	return msgs, nil
}

func (d *decoder) role(path string, o *wire.Object) (session.Message, error) {
	role, err := d.take(o, path, "role")
	if err != nil {
		return session.Message{}, err
	}
	switch role {
	case "user":
		return newMessage(session.User, session.Person), nil
	case "assistant":
		return newMessage(session.Assistant, session.Model), nil
	case "system": // in the middle of a conversation, newer models take it
		return newMessage(session.System, session.Program), nil
	}
	return session.Message{}, wire.Errorf(session.Invalid, wire.Join(path, "role"), "is %q: it must be one of user, assistant, system", wire.Clip(role))
}

func finish(reason string) session.Finish {
	switch reason {
	case "end_turn", "stop_sequence":
		return session.FinishStop
	case "tool_use":
		return session.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return session.FinishLength
	case "refusal":
		return session.FinishRefusal
	case "pause_turn", "compaction":
		return session.FinishPaused
	}
	return ""
}

// group is what one block of a user's entry became: a part, or a result with its content behind
// it. All blocks of any other entry are one group.
type group []session.Part

// content reads the content of an entry, block by block.
func (d *decoder) content(path string, o *wire.Object, m *session.Message, x *messageExtra) ([]group, error) {
	raw := o.Get("content")
	path = wire.Join(path, "content")
	switch wire.KindOf(raw) {
	case 'n':
		if x.Shape = shapeNull; raw == nil {
			x.Shape = shapeAbsent
		}
	case '"':
		text, exact := d.text(path, raw)
		if !exact {
			return []group{{session.TextPart(text)}}, nil // the field stays in o
		}
		o.Drop("content")
		if text != "" {
			return []group{{session.TextPart(text)}}, nil
		}
		x.Shape = shapeEmpty
	case '[':
		x.Shape = shapeArray
		blocks, err := elements(path, raw)
		if err != nil {
			return nil, err
		}
		o.Drop("content")
		return d.blocks(path, blocks, m.Role)
	default:
		return nil, wire.Errorf(session.Invalid, path, "must be a string or an array, not %s", wire.Describe(raw))
	}
	o.Drop("content")
	return nil, nil
}

// elements gives the elements of an array, if a message can hold as many. Codes: Invalid.
func elements(path string, raw json.RawMessage) ([]json.RawMessage, error) {
	found, err := wire.ParseArray(path, raw)
	if len(found) > session.MaxParts {
		return nil, wire.Errorf(session.Invalid, path, "has %d elements: a message holds at most %d, split it", len(found), session.MaxParts)
	}
	return found, err
}

func (d *decoder) blocks(path string, raw []json.RawMessage, role session.Role) ([]group, error) {
	read := make([]block, len(raw))
	for i, r := range raw {
		var err error
		if read[i], err = d.open(wire.Index(path, i), r); err != nil {
			return nil, err
		}
	}
	if role != session.User {
		all := make(group, 0, len(read))
		for i := range read {
			p, err := d.spoken(&read[i], read, role)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		if len(all) == 0 {
			return nil, nil
		}
		return []group{all}, nil
	}
	groups := make([]group, len(read))
	for i := range read {
		b := &read[i]
		var err error
		if b.kind == typeToolResult {
			groups[i], err = d.result(b)
		} else {
			var p session.Part
			p, err = d.spoken(b, read, role)
			groups[i] = group{p}
		}
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// spoken reads a block that is no result.
func (d *decoder) spoken(b *block, entry []block, role session.Role) (session.Part, error) {
	switch {
	case b.kind == typeToolResult:
		return session.Part{}, wire.Errorf(session.Invalid, b.path, "is a tool_result in an entry of role %s: results stand in a user's", role)
	case b.kind == typeToolUse && role != session.Assistant:
		return session.Part{}, wire.Errorf(session.Invalid, b.path, "is a tool_use in an entry of role %s: only an assistant calls tools", role)
	case isServerCall(b.kind) && role == session.Assistant && !answered(b, entry):
		return dataPart(b.raw, partExtra{Type: b.kind}), nil // no call that anybody here must answer
	}
	return d.block(b, role)
}

// split sorts the results of a user's entry into a tool's message and the rest into a user's.
// For any other entry user is nil.
func split(m session.Message, groups []group, x *messageExtra, raw json.RawMessage) (first session.Message, user *session.Message) {
	var at []int
	size := 0
	for i, g := range groups {
		if size += len(g); g[0].Kind == session.PartToolResult && m.Role == session.User {
			at = append(at, i)
		}
	}
	if len(at) > 0 && len(at) < len(groups) {
		sum := sha256.Sum256(raw)
		x.Entry, x.At = hex.EncodeToString(sum[:8]), at
		other := newMessage(session.User, session.Person)
		user = &other
	}
	if len(at) > 0 {
		m.Role, m.Origin = session.Tool, session.ByTool
	}
	if len(groups) == 1 {
		m.Parts = groups[0]
		return m, nil
	}
	if size > 0 {
		m.Parts = make([]session.Part, 0, size)
	}
	for _, g := range groups {
		if user != nil && g[0].Kind != session.PartToolResult {
			user.Parts = append(user.Parts, g...)
		} else {
			m.Parts = append(m.Parts, g...)
		}
	}
	return m, user
}

// take reads a field that must be a string. The field stays in the object, and so in extra,
// where the text is not all that it says.
func (d *decoder) take(o *wire.Object, path, field string) (string, error) {
	raw := o.Get(field)
	if wire.KindOf(raw) != '"' {
		path = wire.Join(path, field)
		if raw == nil {
			return "", wire.Errorf(session.Invalid, path, "is missing")
		}
		return "", wire.Errorf(session.Invalid, path, "must be a string, not %s", wire.Describe(raw))
	}
	text, exact := wire.Text(raw)
	if exact {
		o.Drop(field)
	} else {
		d.inexact(wire.Join(path, field))
	}
	return text, nil
}

func (d *decoder) text(path string, raw json.RawMessage) (string, bool) {
	text, exact := wire.Text(raw)
	if !exact {
		d.inexact(path)
	}
	return text, exact
}

func (d *decoder) inexact(path string) {
	d.warn(path, "holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export")
}

// keepLarge moves fields that an extra should not hold, being deep or large, to data parts.
func keepLarge(path string, o *wire.Object, m *session.Message) error {
	var kept []session.Part
	for _, f := range o.Large() {
		if f.Key == "content" {
			continue // a large text that is no Unicode text
		}
		if f.Odd() || f.Key == "" {
			return wire.Errorf(session.TooLarge, wire.Join(path, f.Key), "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, wire.MaxExtraDepth)
		}
		o.Drop(f.Key)
		kept = append(kept, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	if kept != nil { // first: behind a result they would belong to it
		m.Parts = append(kept, m.Parts...)
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
