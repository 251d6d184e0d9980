package gemini

import (
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Export gives messages in this form: those that were decoded by it as the same JSON values,
// runs of others as Send says them; system text becomes a content of role system. Codes:
// Internal.
func Export(msgs []session.Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(msgs))
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Dialect != Name {
			from := i
			for i+1 < len(msgs) && msgs[i+1].Dialect != Name {
				i++
			}
			contents, err := exportOthers(msgs[from : i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, contents...)
			continue
		}
		group := []exported{{message: &msgs[i]}}
		if err := group[0].load(); err != nil {
			return nil, err
		}
		if i+1 < len(msgs) && msgs[i+1].Dialect == Name && msgs[i].Role == session.Tool && msgs[i+1].Role == session.User {
			other := exported{message: &msgs[i+1]}
			if err := other.load(); err != nil {
				return nil, err
			}
			if group[0].sharesEntry(&other) {
				group = append(group, other)
				i++
			}
		}
		raw, err := exportContent(group)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// exported is a message on its way out.
type exported struct {
	message *session.Message
	extra   messageExtra
}

func (e *exported) load() (err error) {
	e.extra, err = messageExtraOf(e.message)
	return err
}

func (e *exported) sharesEntry(other *exported) bool {
	return e.extra.Entry != nil && other.extra.Entry != nil && e.extra.Entry.Number == other.extra.Entry.Number
}

// exportContent writes a content, of one message or of the two that it became, and what stood
// around it.
func exportContent(group []exported) (json.RawMessage, error) {
	x := &group[0].extra
	content := wire.Object{}
	if !x.NoRole {
		content.SetText("role", exportRole(group[0].message, x))
	}
	around := map[string]*wire.Object{"content": &content, "candidate": x.Candidate, "response": x.Response}
	var all [2][]json.RawMessage
	for i := range group {
		parts, err := exportParts(group[i].message, around)
		if err != nil {
			return nil, err
		}
		all[i] = parts
	}
	parts := all[0]
	if len(group) == 2 {
		parts = weave(all[0], x.Entry.At, all[1], group[1].extra.Entry.At)
	}
	switch {
	case x.Shape == shapeNull:
		content.Set("parts", json.RawMessage("null"))
	case x.Shape != shapeAbsent:
		content.Set("parts", wire.AppendArray(nil, parts))
	}
	content.Overlay(x.Fields) // last: what is raw wins over what was made readable
	raw := content.JSON()
	if x.Candidate != nil {
		if !x.NoContent {
			x.Candidate.Set("content", raw)
		}
		raw = x.Candidate.JSON()
	}
	if x.Response != nil {
		if x.Candidate != nil {
			x.Response.Set("candidates", wire.AppendArray(nil, []json.RawMessage{raw}))
		}
		raw = x.Response.JSON()
	}
	return raw, nil
}

func exportRole(m *session.Message, x *messageExtra) string {
	switch {
	case x.Role != "":
		return x.Role
	case m.Role == session.Assistant:
		return roleModel
	case m.Role == session.System:
		return roleSystem
	}
	return roleUser
}

// weave puts the parts of two messages back in the order in which they came.
func weave(a []json.RawMessage, atA []int, b []json.RawMessage, atB []int) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && len(atA) > 0 && len(atB) > 0 && atA[0] < atB[0] {
			out, a = append(out, a[0]), a[1:]
			atA = atA[min(1, len(atA)):]
			continue
		}
		out, b = append(out, b[0]), b[1:]
		atB = atB[min(1, len(atB)):]
	}
	return out
}

// exportParts gives a message's parts as the wire has them. Large fields go back to where they
// stood around them.
func exportParts(m *session.Message, around map[string]*wire.Object) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(m.Parts))
	for i := 0; i < len(m.Parts); i++ {
		p := &m.Parts[i]
		x, err := partExtraOf(p)
		if err != nil {
			return nil, err
		}
		if err := wire.Loaded(p); err != nil {
			return nil, err
		}
		if x.Where != "" {
			raw, err := rawOf(p, &x)
			if err != nil {
				return nil, err
			}
			if o := around[x.Where]; o != nil {
				o.Set(x.Field, raw)
			}
			continue
		}
		from := i
		for i+1 < len(m.Parts) && isNested(&m.Parts[i+1]) {
			i++
		}
		raw, err := exportPart(p, &x, m.Parts[from+1:i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// isNested tells whether a part stands within the response before it.
func isNested(p *session.Part) bool {
	if p.Kind == session.PartToolResult || !p.Kind.HasBytes() {
		return false
	}
	x, err := partExtraOf(p)
	return err == nil && x.Nested
}

// exportPart gives a part back, with the parts that stand within it.
func exportPart(p *session.Part, x *partExtra, nested []session.Part) (json.RawMessage, error) {
	var o wire.Object
	set := func(field string, inner wire.Object) {
		if x.Field != "" {
			field = x.Field
		}
		o.Set(field, inner.JSON())
	}
	switch p.Kind {
	case session.PartText, session.PartReasoning:
		if x.Shape != shapeAbsent {
			o.SetText(fieldText, p.Content())
		}
		if p.Kind == session.PartReasoning {
			o.Set(fieldThought, json.RawMessage("true"))
		}
	case session.PartImage, session.PartAudio, session.PartFile:
		set(fieldInline, exportMedium(p, x))
	case session.PartToolCall, session.PartToolResult:
		switch {
		case x.Type != "":
			inner, err := exportInline(p, x)
			if err != nil {
				return nil, session.Errorf(session.Internal, "part %d of message %d: %w", p.Idx, p.MessageID, err)
			}
			set(x.Type, inner)
		case p.Kind == session.PartToolCall:
			set(fieldCall, exportCall(p, x))
		default:
			inner, err := exportResponse(p, x, nested)
			if err != nil {
				return nil, err
			}
			set(fieldResponse, inner)
		}
	default:
		return rawOf(p, x)
	}
	o.Overlay(x.Fields)
	return o.JSON(), nil
}

func exportMedium(p *session.Part, x *partExtra) wire.Object {
	var o wire.Object
	if x.MediaType != "" && !x.Inner.Has(snake("mimeType")) {
		o.SetText("mimeType", x.MediaType)
	}
	if p.Blob != nil {
		o.SetText("data", encode64(p.Blob.Data, x.Encoding))
	}
	if uri := x.URL + x.FileID; uri != "" && !x.Inner.Has(snake("fileUri")) {
		o.SetText("fileUri", uri)
	}
	if x.Name != "" && !x.Inner.Has(snake("displayName")) {
		o.SetText("displayName", x.Name)
	}
	o.Overlay(x.Inner)
	return o
}

func exportCall(p *session.Part, x *partExtra) wire.Object {
	var o wire.Object
	if !x.Made {
		o.SetText("id", p.CallID)
	}
	o.SetText("name", p.ToolName)
	exportArguments(&o, p, x)
	o.Overlay(x.Inner)
	return o
}

func exportArguments(o *wire.Object, p *session.Part, x *partExtra) {
	switch {
	case x.Shape == shapeString:
		o.SetText("args", p.Arguments)
	case p.Arguments != "":
		o.Set("args", json.RawMessage(p.Arguments))
	}
}

func exportResponse(p *session.Part, x *partExtra, nested []session.Part) (wire.Object, error) {
	var o wire.Object
	if !x.Made {
		o.SetText("id", p.CallID)
	}
	o.SetText("name", p.ToolName)
	switch text := p.Content(); {
	case x.Key != "":
		var inner wire.Object
		inner.SetText(x.Key, text)
		o.Set("response", inner.JSON())
	case x.Shape == shapeString:
		o.SetText("response", text)
	case text != "":
		o.Set("response", json.RawMessage(text))
	}
	if len(nested) > 0 {
		list := make([]json.RawMessage, len(nested))
		for i := range nested {
			nx, err := partExtraOf(&nested[i])
			if err != nil {
				return o, err
			}
			if err := wire.Loaded(&nested[i]); err != nil {
				return o, err
			}
			if list[i], err = exportPart(&nested[i], &nx, nil); err != nil {
				return o, err
			}
		}
		o.Set("parts", wire.AppendArray(nil, list))
	}
	o.Overlay(x.Inner)
	return o, nil
}

// rawOf gives a data part back.
func rawOf(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if p.Blob != nil {
		return p.Blob.Data, nil
	}
	if len(x.Raw) == 0 {
		return nil, session.Errorf(session.Internal, "part %d of message %d of kind %s holds nothing to export", p.Idx, p.MessageID, p.Kind)
	}
	return x.Raw, nil
}
