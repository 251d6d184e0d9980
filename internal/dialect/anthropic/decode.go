package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads entries of a request's messages, or whole replies {id, type: "message", role,
// model, content, stop_reason, usage}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

// Decoder is Decode for one who reads many entries that he has checked, as wire.Check does. What
// it gives is good until it reads again; the parts of messages stay. The zero value works.
type Decoder struct{ decoder decoder }

// Decode reads entries. Codes: Invalid, TooLarge.
func (d *Decoder) Decode(checked []json.RawMessage) (wire.Decoded, error) {
	return d.decoder.ReadChecked(checked, d.decoder.entry)
}

type decoder struct{ wire.Reader }

func newMessage(role session.Role, origin session.Origin) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Origin: origin, Dialect: Name, InContext: true, Display: true}
}

// entry reads an entry and keeps the message, or the two, that it becomes.
func (d *decoder) entry(entry wire.Value) error {
	o, err := entry.Fields()
	if err != nil {
		return err
	}
	m, err := role(&o)
	if err != nil {
		return err
	}
	if m.Role == session.Assistant {
		m.Model, _ = wire.TextOf(o.Get("model")) // stays in o, too: the append may say another one
		reason, _ := wire.TextOf(o.Get("stop_reason"))
		m.Finish = finish(reason)
	}
	var x messageExtra
	groups, err := content(&o, &m, &x)
	if err != nil {
		return err
	}
	m, user := split(m, groups, &x, entry.Raw)
	if err := keepLarge(&o, &m); err != nil {
		return err
	}
	x.Fields = o.Object
	m.Extra = x.json()
	d.Messages = append(d.Messages, m)
	if user != nil { // it has fewer blocks than the entry, each of them one part
		half := messageExtra{Shape: shapeArray, Entry: x.Entry}
		user.Extra = half.json()
		d.Messages = append(d.Messages, *user)
	}
	return o.Holds(len(m.Parts))
}

func role(o *wire.Fields) (session.Message, error) {
	role, err := o.Take("role")
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
	return session.Message{}, o.Field("role").Errorf(session.Invalid, "is %q: it must be one of user, assistant, system", wire.Clip(role))
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
func content(o *wire.Fields, m *session.Message, x *messageExtra) ([]group, error) {
	content := o.Value("content")
	switch content.Kind() {
	case 'n':
		if x.Shape = shapeNull; content.Raw == nil {
			x.Shape = shapeAbsent
		}
	case '"':
		text, exact := content.Text()
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
		all, err := content.Elements()
		if err != nil {
			return nil, err
		}
		o.Drop("content")
		return blocks(all, m.Role)
	default:
		return nil, content.Not("a string or an array")
	}
	o.Drop("content")
	return nil, nil
}

func blocks(all []wire.Value, role session.Role) ([]group, error) {
	read := make([]block, len(all))
	for i, e := range all {
		var err error
		if read[i], err = open(e); err != nil {
			return nil, err
		}
	}
	if role != session.User {
		parts := make(group, 0, len(read))
		for i := range read {
			p, err := spoken(&read[i], read, role)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
		if len(parts) == 0 {
			return nil, nil
		}
		return []group{parts}, nil
	}
	groups := make([]group, len(read))
	for i := range read {
		b := &read[i]
		var err error
		if b.kind == typeToolResult {
			groups[i], err = b.result()
		} else {
			var p session.Part
			p, err = spoken(b, read, role)
			groups[i] = group{p}
		}
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// spoken reads a block that is no result.
func spoken(b *block, entry []block, role session.Role) (session.Part, error) {
	switch {
	case b.kind == typeToolResult:
		return session.Part{}, b.Errorf(session.Invalid, "is a tool_result in an entry of role %s: results stand in a user's", role)
	case b.kind == typeToolUse && role != session.Assistant:
		return session.Part{}, b.Errorf(session.Invalid, "is a tool_use in an entry of role %s: only an assistant calls tools", role)
	case isServerCall(b.kind) && role == session.Assistant && !answered(b, entry):
		return dataPart(b.raw, partExtra{Type: b.kind}), nil // no call that anybody here must answer
	}
	return b.read(role)
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

// keepLarge moves fields that an extra should not hold, being deep or large, to data parts.
func keepLarge(o *wire.Fields, m *session.Message) error {
	large, err := o.TakeLarge()
	if len(large) == 0 {
		return err
	}
	kept := make([]session.Part, 0, len(large)+len(m.Parts))
	for _, f := range large {
		kept = append(kept, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	m.Parts = append(kept, m.Parts...) // first: behind a result they would belong to it
	return nil
}

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) session.Part {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	x.store(&p)
	return p
}
