package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads items of a request or a reply, or whole response objects. Codes: Malformed,
// Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	d := decoder{msgs: make([]session.Message, 0, len(raw))}
	for i, r := range raw {
		path := wire.Index("messages", i)
		if err := wire.Check(path, r); err != nil {
			return wire.Decoded{}, err
		}
		o, err := wire.ParseObject(path, r)
		if err != nil {
			return wire.Decoded{}, err
		}
		if IsResponse(&o) {
			err = d.response(path, o)
		} else {
			err = d.item(path, o)
		}
		if err != nil {
			return wire.Decoded{}, err
		}
	}
	return wire.Decoded{Messages: d.msgs, Warnings: d.warnings}, nil
}

type decoder struct {
	warnings []string
	msgs     []session.Message
	open     bool              // the last message may still take parts
	shells   map[string]string // call ids of local shells by the ids of their items
}

func (d *decoder) warn(path, format string, args ...any) {
	d.warnings = append(d.warnings, path+" "+fmt.Sprintf(format, args...))
}

// response reads {output: […]} and keeps what stands around it.
func (d *decoder) response(path string, o wire.Object) error {
	items, err := wire.ParseArray(wire.Join(path, "output"), o.Get("output"))
	if err != nil {
		return err
	}
	o.Drop("output")
	first := len(d.msgs)
	d.open = false
	for i, raw := range items {
		at := wire.Index(wire.Join(path, "output"), i)
		inner, err := wire.ParseObject(at, raw)
		if err != nil {
			return err
		}
		if err := d.item(at, inner); err != nil {
			return err
		}
	}
	if len(d.msgs) == first { // a failed response may be empty
		d.msgs = append(d.msgs, newMessage(session.Assistant, session.Model))
	}
	d.open = false
	of := d.msgs[first:]
	finish(of, &o)
	model, _ := wire.TextOf(o.Get("model"))
	for i := range of {
		if of[i].Role == session.Assistant {
			of[i].Model = model
		}
	}
	large, err := takeLarge(path, &o)
	if err != nil {
		return err
	}
	for i := range large {
		large[i].x.Of = "response"
		of[0].Parts = append(of[0].Parts, large[i].finish())
	}
	if len(of[0].Parts) > session.MaxParts {
		return wire.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", len(of[0].Parts), session.MaxParts)
	}
	head, more := messageExtra{Response: &o}, messageExtra{Continues: true}
	of[0].Extra = head.json()
	for i := 1; i < len(of); i++ {
		of[i].Extra = more.json()
	}
	return nil
}

// finish says why a response ended. A reply that failed did so as a whole; any other end is
// that of its last message.
func finish(of []session.Message, response *wire.Object) {
	status, _ := wire.TextOf(response.Get("status"))
	var f session.Finish
	switch status {
	case "completed":
		f = session.FinishStop
	case "failed":
		f = session.FinishError
	case "cancelled":
		f = session.FinishAborted
	case "incomplete":
		f = session.FinishLength
		details, err := wire.ParseObject("", response.Get("incomplete_details"))
		if reason, _ := wire.TextOf(details.Get("reason")); err == nil && reason == "content_filter" {
			f = session.FinishRefusal
		}
	}
	for i := range slices.Backward(of) {
		m := &of[i]
		if m.Role != session.Assistant {
			continue
		}
		m.Finish = f
		if f == session.FinishStop && waits(m) {
			m.Finish = session.FinishToolCalls
		}
		if !f.Failed() {
			return
		}
	}
}

// waits tells whether a reply calls a tool that the provider does not run.
func waits(m *session.Message) bool {
	results := m.Results()
	return slices.ContainsFunc(m.Calls(), func(c *session.Part) bool {
		return !slices.ContainsFunc(results, func(r *session.Part) bool { return r.CallID == c.CallID })
	})
}

func newMessage(role session.Role, origin session.Origin) session.Message {
	return session.Message{Kind: session.KindMessage, Role: role, Origin: origin, Dialect: Name, InContext: true, Display: true}
}

// item reads one item and adds it to the message that it belongs to.
func (d *decoder) item(path string, o wire.Object) error {
	kind := itemMessage
	if t := o.Get("type"); t != nil {
		kind, _ = wire.TextOf(t)
	} else if !o.Has("role") && o.Has("id") && o.Len() == 1 {
		kind = itemReference
	}
	_, isOutput := outputTool(kind)
	spec, isCall := specOf(kind)
	switch {
	case kind == "" && !wire.IsNull(o.Get("type")):
		return wire.Errorf(session.Invalid, wire.Join(path, "type"), "must say what the item is, not be %s", wire.Describe(o.Get("type")))
	case kind == itemMessage || kind == "" && o.Has("role"):
		return d.message(path, o)
	case kind == "":
		return d.unknown(path, o, itemReference)
	case kind == itemReasoning:
		return d.reasoning(path, o)
	case isCall && spec.hosted:
		return d.hosted(path, o, kind, spec)
	case isCall:
		return d.call(path, o, kind, spec)
	case isOutput:
		return d.output(path, o, kind)
	}
	return d.unknown(path, o, kind)
}

// unknown keeps an item whole: one that is not known, and one that is no talk and no call.
func (d *decoder) unknown(path string, o wire.Object, kind string) error {
	parts := []built{{Part: session.Part{Kind: session.PartData}, x: partExtra{Type: kind}}}
	m := newMessage("", session.Program)
	switch {
	case kind == itemCompaction, kind == itemMCPTools, kind == itemMCPRequest:
		m = newMessage(session.Assistant, session.Model)
	case kind == itemMCPResponse:
		m = newMessage(session.User, session.Person)
	case strings.HasSuffix(kind, "_call"):
		d.warn(path, "has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		m = newMessage(session.Assistant, session.Model)
	case strings.HasSuffix(kind, "_output"):
		d.warn(path, "has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		m = newMessage(session.Tool, session.ByTool)
	default:
		m.Kind = session.KindUnknown
		if kind == itemReference {
			d.warn(path, "refers to an item that only the provider stores: kept for export, not sent")
		} else {
			d.warn(path, "has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		}
	}
	return d.add(path, m, o, parts)
}

// add finishes an item: what is left of it goes to its first part's extra, and its parts to
// the last message or to a new one.
func (d *decoder) add(path string, m session.Message, o wire.Object, parts []built) error {
	large, err := takeLarge(path, &o)
	if err != nil {
		return err
	}
	parts = append(parts, large...)
	if len(parts) > session.MaxParts {
		return wire.Errorf(session.Invalid, path, "has %d parts: a message holds at most %d, split it", len(parts), session.MaxParts)
	}
	parts[0].x.Item = &o
	joins := m.Role == session.Assistant || m.Role == session.Tool
	last := len(d.msgs) - 1
	if !joins || !d.open || d.msgs[last].Role != m.Role || len(d.msgs[last].Parts)+len(parts) > session.MaxParts || confuses(&d.msgs[last], parts) {
		d.msgs = append(d.msgs, m)
		last++
	}
	d.open = joins
	to := &d.msgs[last]
	to.Parts = slices.Grow(to.Parts, len(parts))
	for i := range parts {
		to.Parts = append(to.Parts, parts[i].finish())
	}
	return nil
}

// confuses tells whether a call and the result of a tool that the provider ran would stand under
// one id in a reply: then the result would seem to be the other call's.
func confuses(m *session.Message, parts []built) bool {
	if m.Role != session.Assistant {
		return false
	}
	for i := range parts {
		p := &parts[i]
		if p.Kind != session.PartToolCall && p.Kind != session.PartToolResult {
			continue
		}
		for j := range m.Parts {
			q := &m.Parts[j]
			if q.CallID == p.CallID && (q.Kind == session.PartToolResult || q.Kind == session.PartToolCall && p.Kind == session.PartToolResult) {
				return true
			}
		}
	}
	return false
}

// takeLarge moves fields that an extra should not hold, being deep or large, to data parts.
func takeLarge(path string, o *wire.Object) ([]built, error) {
	var parts []built
	for _, f := range o.Large() {
		if f.Odd() || f.Key == "" {
			return nil, wire.Errorf(session.TooLarge, wire.Join(path, f.Key), "is over %d bytes or %d levels under a name that is empty or no Unicode text", session.BlobThreshold, wire.MaxExtraDepth)
		}
		o.Drop(f.Key)
		parts = append(parts, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	return parts, nil
}

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) built {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	return built{Part: p, x: x}
}

// take reads a field that must be a string. The field stays in the object where the text is
// not all that it says.
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

// takeExact takes a field that is a string with something in it, and leaves any other.
func takeExact(o *wire.Object, field string) string {
	text, exact := wire.TextOf(o.Get(field))
	if !exact || text == "" {
		return ""
	}
	o.Drop(field)
	return text
}
