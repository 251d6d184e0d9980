package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Decode reads items of a request or a reply, or whole response objects. Codes: Malformed,
// Invalid, TooLarge.
func Decode(raw []json.RawMessage) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

// Decoder is Decode for one who reads many items that he has checked, as wire.Check does. What it
// gives is good until it reads again; the parts of messages stay. The zero value works.
type Decoder struct{ decoder decoder }

// Decode reads items of one request or reply. Codes: Invalid, TooLarge.
func (d *Decoder) Decode(checked []json.RawMessage) (wire.Decoded, error) {
	d.decoder.open, d.decoder.shells = false, nil
	return d.decoder.ReadChecked(checked, d.decoder.entry)
}

func (d *decoder) entry(entry wire.Value) error {
	o, err := entry.Fields()
	switch {
	case err != nil:
		return err
	case IsResponse(&o.Object):
		return d.response(&o)
	}
	return d.item(&o)
}

type decoder struct {
	wire.Reader
	open   bool              // the last message may still take parts
	shells map[string]string // call ids of local shells by the ids of their items
}

// response reads {output: […]} and keeps what stands around it.
func (d *decoder) response(o *wire.Fields) error {
	items, err := o.Value("output").All()
	if err != nil {
		return err
	}
	o.Drop("output")
	first := len(d.Messages)
	d.open = false
	for _, item := range items {
		inner, err := item.Fields()
		if err != nil {
			return err
		}
		if err := d.item(&inner); err != nil {
			return err
		}
	}
	if len(d.Messages) == first { // a failed response may be empty
		d.Messages = append(d.Messages, newMessage(session.Assistant, session.Model))
	}
	d.open = false
	of := d.Messages[first:]
	finish(of, &o.Object)
	model, _ := wire.TextOf(o.Get("model"))
	for i := range of {
		if of[i].Role == session.Assistant {
			of[i].Model = model
		}
	}
	large, err := o.TakeLarge()
	if err != nil {
		return err
	}
	for _, f := range large {
		part := dataPart(f.Value, partExtra{Field: f.Key, Of: "response"})
		of[0].Parts = append(of[0].Parts, part.finish())
	}
	head, more := messageExtra{Response: &o.Object}, messageExtra{Continues: true}
	of[0].Extra = head.json()
	for i := 1; i < len(of); i++ {
		of[i].Extra = more.json()
	}
	return o.Holds(len(of[0].Parts))
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
func (d *decoder) item(o *wire.Fields) error {
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
		return o.Field("type").Errorf(session.Invalid, "must say what the item is, not be %s", wire.Describe(o.Get("type")))
	case kind == itemMessage || kind == "" && o.Has("role"):
		return d.message(o)
	case kind == "":
		return d.unknown(o, itemReference)
	case kind == itemReasoning:
		return d.reasoning(o)
	case isCall && spec.hosted:
		return d.hosted(o, kind, spec)
	case isCall:
		return d.call(o, kind, spec)
	case isOutput:
		return d.output(o, kind)
	}
	return d.unknown(o, kind)
}

// unknown keeps an item whole: one that is not known, and one that is no talk and no call.
func (d *decoder) unknown(o *wire.Fields, kind string) error {
	m := newMessage("", session.Program)
	known := false
	switch {
	case kind == itemCompaction, kind == itemMCPTools, kind == itemMCPRequest:
		m, known = newMessage(session.Assistant, session.Model), true
	case kind == itemMCPResponse:
		m, known = newMessage(session.User, session.Person), true
	case strings.HasSuffix(kind, "_call"):
		m = newMessage(session.Assistant, session.Model)
	case strings.HasSuffix(kind, "_output"):
		m = newMessage(session.Tool, session.ByTool)
	default:
		m.Kind = session.KindUnknown
	}
	if kind == itemReference {
		o.Warn("refers to an item that only the provider stores: kept for export, not sent")
	} else if !known {
		o.Warn("has the unknown type %q: kept for export, not sent", wire.Clip(kind))
	}
	return d.add(m, o, []built{{Part: session.Part{Kind: session.PartData}, x: partExtra{Type: kind}}})
}

// add finishes an item: what is left of it goes to its first part's extra, and its parts to
// the last message or to a new one.
func (d *decoder) add(m session.Message, o *wire.Fields, parts []built) error {
	large, err := o.TakeLarge()
	if err != nil {
		return err
	}
	for _, f := range large {
		parts = append(parts, dataPart(f.Value, partExtra{Field: f.Key}))
	}
	if err := o.Holds(len(parts)); err != nil {
		return err
	}
	parts[0].x.Item = &o.Object
	joins := m.Role == session.Assistant || m.Role == session.Tool
	last := len(d.Messages) - 1
	if !joins || !d.open || d.Messages[last].Role != m.Role || len(d.Messages[last].Parts)+len(parts) > session.MaxParts || confuses(&d.Messages[last], parts) {
		d.Messages = append(d.Messages, m)
		last++
	}
	d.open = joins
	to := &d.Messages[last]
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

// dataPart keeps a value as it came: in extra, or as a blob if it is deep or large.
func dataPart(raw json.RawMessage, x partExtra) built {
	p, small := wire.KeepRaw(raw)
	x.Raw = small
	return built{Part: p, x: x}
}
