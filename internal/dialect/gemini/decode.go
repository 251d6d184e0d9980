package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads contents of a request, or of a reply: the content alone, the candidate around
// it, or the whole response of one candidate. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	d := decoder{msgs: make([]session.Message, 0, len(raw))}
	for i, r := range raw {
		path := wire.Index("messages", i)
		if err := wire.Check(path, r); err != nil {
			return wire.Decoded{}, err
		}
		d.entry = i
		if err := d.response(path, r); err != nil {
			return wire.Decoded{}, err
		}
	}
	return wire.Decoded{Messages: d.msgs, Warnings: d.warnings}, nil
}

// decoder reads contents one after the other. It remembers the calls of the last reply, which
// responses without an id are matched with.
type decoder struct {
	msgs     []session.Message
	warnings []string
	entry    int
	open     []openCall
	made     map[string]int // ids made since the last reply, by name
}

func (d *decoder) warn(path, format string, args ...any) {
	d.warnings = append(d.warnings, path+" "+fmt.Sprintf(format, args...))
}

// response reads {candidates: [{…}], …}, a candidate, or a content.
func (d *decoder) response(path string, raw json.RawMessage) error {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return err
	}
	switch {
	case o.Has("parts") || o.Has("role"):
		return d.content(path, o, messageExtra{}, session.Message{})
	case isCandidate(&o):
		return d.candidate(path, o, messageExtra{}, session.Message{})
	case !o.Has("candidates") && !hasAny(&o, "promptFeedback", "usageMetadata", "modelVersion"):
		return wire.Errorf(session.Invalid, wire.Join(path, "parts"), "is missing: a content is {role, parts}")
	}
	var m session.Message
	if _, version := lookup(&o, "modelVersion"); wire.KindOf(version) == '"' {
		if text, exact := wire.Text(version); exact {
			m.Model = text // it stays in o
		}
	}
	candidates := o.Get("candidates")
	if wire.IsNull(candidates) || wire.KindOf(candidates) == '[' && !wire.HasElements(candidates) {
		if _, feedback := lookup(&o, "promptFeedback"); feedback != nil {
			m.Finish = session.FinishRefusal
		}
		return d.content(path, wire.Object{}, messageExtra{NoContent: true, Response: &o}, m)
	}
	list := wire.Join(path, "candidates")
	elements, err := wire.ParseArray(list, candidates)
	if err != nil {
		return err
	}
	if len(elements) > 1 {
		return wire.Errorf(session.Invalid, list, "has %d elements: give the content of the one that was chosen", len(elements))
	}
	path = wire.Index(list, 0)
	inner, err := wire.ParseObject(path, elements[0])
	if err != nil {
		return err
	}
	o.Drop("candidates")
	return d.candidate(path, inner, messageExtra{Response: &o}, m)
}

// isCandidate tells a candidate from a content, which has neither of these fields, and from
// what other providers give.
func isCandidate(o *wire.Object) bool {
	if o.Has("candidates") {
		return false
	}
	_, reason := lookup(o, "finishReason")
	text, _ := wire.TextOf(reason)
	return wire.KindOf(o.Get("content")) == '{' || text != "" && strings.ToUpper(text) == text
}

func hasAny(o *wire.Object, fields ...string) bool {
	for _, f := range fields {
		if o.Has(f) || o.Has(snake(f)) {
			return true
		}
	}
	return false
}

// lookup gives a field in either spelling, and its name as it stands there; a null only where
// there is nothing else.
func lookup(o *wire.Object, field string) (name string, value json.RawMessage) {
	name, value = field, o.Get(field)
	if wire.IsNull(value) {
		if other := snake(field); other != field {
			if v := o.Get(other); v != nil && (value == nil || !wire.IsNull(v)) {
				return other, v
			}
		}
	}
	return name, value
}

// candidate reads {content, finishReason, …}.
func (d *decoder) candidate(path string, o wire.Object, x messageExtra, m session.Message) error {
	_, reason := lookup(&o, "finishReason")
	if text, _ := wire.TextOf(reason); text != "" {
		m.Finish = finishOf(text)
	}
	content := o.Get("content")
	var inner wire.Object
	if wire.IsNull(content) {
		x.NoContent = true
	} else {
		var err error
		if inner, err = wire.ParseObject(wire.Join(path, "content"), content); err != nil {
			return err
		}
		o.Drop("content")
		path = wire.Join(path, "content")
	}
	x.Candidate = &o
	return d.content(path, inner, x, m)
}

// finishOf translates a finishReason. A call that the provider found malformed was not made.
func finishOf(reason string) session.Finish {
	switch reason {
	case "STOP":
		return session.FinishStop
	case "MAX_TOKENS":
		return session.FinishLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return session.FinishRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
		"MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER", "OTHER":
		return session.FinishError
	}
	return ""
}

// content reads {role, parts}: one message, or two where results and other parts are mixed.
func (d *decoder) content(path string, o wire.Object, x messageExtra, m session.Message) error {
	m.Kind, m.Dialect, m.InContext, m.Display = session.KindMessage, Name, true, true
	if err := d.role(path, &o, &m, &x); err != nil {
		return err
	}
	read, err := d.parts(path, &o, &m, &x)
	if err != nil {
		return err
	}
	m.Parts = read.parts
	if m.Finish == session.FinishStop && len(d.open) > 0 && m.Role == session.Assistant {
		m.Finish = session.FinishToolCalls
	}
	var rest session.Message
	if read.results > 0 && m.Role != session.Assistant {
		rest = d.divide(&m, &x, &read)
	}
	if err := keepLarge(path, &o, &m, &x); err != nil {
		return err
	}
	if n := max(len(m.Parts), len(rest.Parts)); n > session.MaxParts {
		return wire.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", n, session.MaxParts)
	}
	x.Fields = o
	m.Extra = x.json()
	if d.msgs = append(d.msgs, m); len(rest.Parts) > 0 {
		d.msgs = append(d.msgs, rest)
	}
	return nil
}

func (d *decoder) role(path string, o *wire.Object, m *session.Message, x *messageExtra) error {
	raw := o.Get("role")
	role := roleUser
	if x.Candidate != nil || x.Response != nil {
		role = roleModel
	}
	if wire.IsNull(raw) {
		x.NoRole = true // a null stays in o
	} else {
		var err error
		if role, err = d.take(o, path, "role"); err != nil {
			return err
		}
	}
	switch role {
	case roleUser:
		m.Role, m.Origin = session.User, session.Person
	case roleModel:
		m.Role, m.Origin = session.Assistant, session.Model
		d.open, d.made = d.open[:0], nil
	case roleSystem:
		m.Role, m.Origin = session.System, session.Program
	case roleFunction, roleTool:
		m.Role, m.Origin, x.Role = session.User, session.Person, role
	default:
		return wire.Errorf(session.Invalid, wire.Join(path, "role"), "is %q: it must be user or model", wire.Clip(role))
	}
	if (x.Candidate != nil || x.Response != nil) && m.Role != session.Assistant {
		return wire.Errorf(session.Invalid, wire.Join(path, "role"), "is %q in a reply: it must be model", wire.Clip(role))
	}
	return nil
}

// divide makes a content with responses a tool's message. Where it holds more than these and
// the media that belong to them, it gives the rest as a user's message that stands behind it.
func (d *decoder) divide(m *session.Message, x *messageExtra, read *contentParts) (rest session.Message) {
	rest = *m
	m.Role, m.Origin = session.Tool, session.ByTool
	id, inResult := "", false
	if read.onlyResults() {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == session.PartToolResult {
				id = p.CallID
			} else {
				p.CallID = id
			}
		}
		return session.Message{}
	}
	m.Parts, rest.Parts = nil, nil
	here, there := &entry{Number: d.entry}, &entry{Number: d.entry}
	for i, p := range read.parts {
		if at := read.at[i]; at >= 0 {
			if inResult = p.Kind == session.PartToolResult; inResult {
				id = p.CallID
				here.At = append(here.At, at)
			} else {
				there.At = append(there.At, at)
			}
		}
		if inResult {
			p.CallID = id
			m.Parts = append(m.Parts, p)
		} else {
			rest.Parts = append(rest.Parts, p)
		}
	}
	x.Entry = here
	shared := messageExtra{Entry: there}
	rest.Extra = shared.json()
	return rest
}

// keepLarge moves fields that an extra should not hold, being deep or large, to data parts.
func keepLarge(path string, o *wire.Object, m *session.Message, x *messageExtra) error {
	for _, from := range []struct {
		where string
		o     *wire.Object
	}{{"content", o}, {"candidate", x.Candidate}, {"response", x.Response}} {
		if from.o == nil {
			continue
		}
		for _, f := range from.o.Large() {
			if f.Odd() || f.Key == "" {
				return wire.Errorf(session.TooLarge, wire.Join(path, f.Key), "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, wire.MaxExtraDepth)
			}
			from.o.Drop(f.Key)
			m.Parts = append(m.Parts, dataPart(f.Value, partExtra{Where: from.where, Field: f.Key}))
		}
	}
	return nil
}

// take reads a field that must be a string. The field stays in the object, and so in extra,
// where the text is not all that it says.
func (d *decoder) take(o *wire.Object, path, field string) (string, error) {
	raw := o.Get(field)
	if wire.KindOf(raw) != '"' {
		if raw == nil {
			return "", wire.Errorf(session.Invalid, wire.Join(path, field), "is missing")
		}
		return "", wire.Errorf(session.Invalid, wire.Join(path, field), "must be a string, not %s", wire.Describe(raw))
	}
	text, exact := wire.Text(raw)
	if exact {
		o.Drop(field)
	} else {
		d.warn(wire.Join(path, field), "holds a NUL or half a surrogate pair: stored as U+FFFD for reading, and raw for export")
	}
	return text, nil
}

// takeExact takes a field that is a string with something in it, and leaves any other.
func takeExact(o *wire.Object, field string) string {
	text, exact := wire.TextOf(o.Get(field))
	if !exact || text == "" {
		return ""
	}
	o.Drop(field)
	return text
}

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) session.Part {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	x.store(&p)
	return p
}
