package gemini

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads contents of a request, or of a reply: the content alone, the candidate around
// it, or the whole response of one candidate. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, func(entry wire.Value) error {
		err := d.response(entry)
		d.entry++
		return err
	})
}

// decoder reads contents one after the other. It remembers the calls of the last reply, which
// responses without an id are matched with.
type decoder struct {
	wire.Reader
	entry int // which one is read
	open  []openCall
	made  map[string]int // ids made since the last reply, by name
}

// response reads {candidates: [{…}], …}, a candidate, or a content.
func (d *decoder) response(entry wire.Value) error {
	o, err := entry.Fields()
	if err != nil {
		return err
	}
	switch {
	case o.Has("parts") || o.Has("role"):
		return d.content(around{content: o})
	case isCandidate(&o.Object):
		return d.candidate(around{candidate: &o})
	case !o.Has("candidates") && !hasAny(&o.Object, "promptFeedback", "usageMetadata", "modelVersion"):
		return o.Field("parts").Errorf(session.Invalid, "is missing: a content is {role, parts}")
	}
	candidates := o.Value("candidates")
	if wire.IsNull(candidates.Raw) || candidates.Kind() == '[' && !wire.HasElements(candidates.Raw) {
		return d.content(around{content: wire.Fields{Place: o.Place}, none: true, response: &o})
	}
	elements, err := candidates.All()
	if err != nil {
		return err
	}
	if len(elements) > 1 {
		return candidates.Errorf(session.Invalid, "has %d elements: give the content of the one that was chosen", len(elements))
	}
	inner, err := elements[0].Fields()
	if err != nil {
		return err
	}
	o.Drop("candidates")
	return d.candidate(around{candidate: &inner, response: &o})
}

// around is a content and what stands around it: nothing in a request.
type around struct {
	content   wire.Fields
	none      bool // there is no content
	candidate *wire.Fields
	response  *wire.Fields
}

// reply tells whether it is a content of a reply.
func (a *around) reply() bool { return a.candidate != nil || a.response != nil }

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
func (d *decoder) candidate(a around) error {
	content := a.candidate.Value("content")
	if wire.IsNull(content.Raw) {
		a.none = true
		a.content = wire.Fields{Place: a.candidate.Place}
		return d.content(a)
	}
	var err error
	if a.content, err = content.Fields(); err != nil {
		return err
	}
	a.candidate.Drop("content")
	return d.content(a)
}

// said is what the wire says of a reply beside its content: the model, and why it ended.
func (a *around) said(m *session.Message) {
	if a.response != nil {
		_, version := lookup(&a.response.Object, "modelVersion")
		m.Model, _ = exactText(version) // it stays where it is
		if _, feedback := lookup(&a.response.Object, "promptFeedback"); a.candidate == nil && feedback != nil {
			m.Finish = session.FinishRefusal
		}
	}
	if a.candidate != nil {
		_, reason := lookup(&a.candidate.Object, "finishReason")
		text, _ := wire.TextOf(reason)
		m.Finish = finishOf(text)
	}
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
func (d *decoder) content(a around) error {
	o := &a.content
	m := session.Message{Kind: session.KindMessage, Dialect: Name, InContext: true, Display: true}
	a.said(&m)
	x := messageExtra{NoContent: a.none}
	if err := d.role(&a, &m, &x); err != nil {
		return err
	}
	read, err := d.parts(o, &m, &x)
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
	if err := a.keepLarge(&m); err != nil {
		return err
	}
	x.Fields = o.Object
	if a.candidate != nil {
		x.Candidate = &a.candidate.Object
	}
	if a.response != nil {
		x.Response = &a.response.Object
	}
	m.Extra = x.json()
	if d.Messages = append(d.Messages, m); len(rest.Parts) > 0 {
		d.Messages = append(d.Messages, rest)
	}
	return o.Holds(max(len(m.Parts), len(rest.Parts)))
}

func (d *decoder) role(a *around, m *session.Message, x *messageExtra) error {
	o := &a.content
	role := roleUser
	if a.reply() {
		role = roleModel
	}
	if wire.IsNull(o.Get("role")) {
		x.NoRole = true // a null stays in o
	} else {
		var err error
		if role, err = o.Take("role"); err != nil {
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
		return o.Field("role").Errorf(session.Invalid, "is %q: it must be user or model", wire.Clip(role))
	}
	if a.reply() && m.Role != session.Assistant {
		return o.Field("role").Errorf(session.Invalid, "is %q in a reply: it must be model", wire.Clip(role))
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
func (a *around) keepLarge(m *session.Message) error {
	for _, from := range [...]struct {
		where string
		o     *wire.Fields
	}{{"content", &a.content}, {"candidate", a.candidate}, {"response", a.response}} {
		if from.o == nil {
			continue
		}
		large, err := from.o.TakeLarge()
		if err != nil {
			return err
		}
		for _, f := range large {
			m.Parts = append(m.Parts, dataPart(f.Value, partExtra{Where: from.where, Field: f.Key}))
		}
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
