package ui

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// FirstEntry returns how many of the messages the first entry is made of: those of a UIMessage that was decoded by this
// form, else a reply with the results and replies behind it, up to the next word of a person.
func FirstEntry(msgs []session.Message) int {
	begun := false
	own := false
	for i := range msgs {
		m := &msgs[i]
		switch {
		case i > 0 && continues(m):
		case !isShown(m):
		case begun && (own || m.Dialect == Name || !isReply(m)):
			return i
		default:
			begun, own = true, m.Dialect == Name
			if !own && !isReply(m) {
				return i + 1
			}
		}
	}
	return len(msgs)
}

func continues(m *session.Message) bool {
	if m.Dialect != Name {
		return false
	}
	var x wire.Extra
	return wire.ReadExtra(m.Extra, &x) == nil && x.Continues
}

func isReply(m *session.Message) bool { return m.Role == session.Assistant || m.Role == session.Tool }

// isShown reports whether a message of any form is shown to people.
func isShown(m *session.Message) bool {
	return m.Dialect == Name || wire.IsTalk(m) && m.Display && m.Role != ""
}

// Export returns UIMessages: those that were decoded by this form as the same JSON values, any other reply with its
// results and the steps that follow as one. Codes: Internal.
func Export(msgs []session.Message) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, 0, len(msgs))
	for len(msgs) > 0 {
		n := FirstEntry(msgs)
		entry, err := open(msgs[:n])
		if err != nil {
			return nil, err
		}
		msgs = msgs[n:]
		if len(entry) == 0 {
			continue
		}
		if first := &entry[0]; first.Dialect == Name && !first.X.Continues {
			if len(entry) < first.X.Messages {
				first.X.Raw = nil // it holds all of them
				first.X.Rest.Drop("parts")
			}
			o := first.JSON(encode(entry))
			out = append(out, o.Value())
			continue
		}
		if parts := partsOf(entry); len(parts) > 0 {
			out = append(out, jsonx.Encode("id", entry[0].ID.String(), "role", roleOf(&entry[0]), "parts", parts))
		}
	}
	return out, nil
}

// open opens the messages of an entry that are shown.
func open(msgs []session.Message) (entry []wire.Message, err error) {
	for i := range msgs {
		if !isShown(&msgs[i]) {
			continue
		}
		var s wire.Sender
		if err := s.Load(Name, &msgs[i]); err != nil {
			return nil, err
		}
		entry = append(entry, s.M)
	}
	return entry, nil
}

func roleOf(m *wire.Message) string {
	s := wire.Sender{From: &m.Message}
	if role := s.Role(); role == session.System || role == session.User {
		return string(role)
	}
	return string(session.Assistant)
}

// encode encodes an entry of this form, without its remainder.
func encode(entry []wire.Message) jsonx.Object {
	first := &entry[0]
	var o jsonx.Object
	o.Add("id", first.X.ID, "role", string(first.Role), "metadata", jsontext.Value(first.Metadata))
	o.Set("parts", jsonx.Array(partsOf(entry)))
	for i := range first.Parts {
		if p := &first.Parts[i]; isField(p) {
			o.Set(p.X.Field, p.Raw())
		}
	}
	return o
}

// encodeSteering encodes what a person said within a reply, without its remainder.
func encodeSteering(m *wire.Message) jsonx.Object {
	var o jsonx.Object
	o.Add("type", typeSteering)
	var parts []jsontext.Value
	for i := range m.Parts {
		if p := &m.Parts[i]; isField(p) {
			o.Set(p.X.Field, p.Raw())
		} else {
			parts = append(parts, p.JSON(encodePart(p, nil)))
		}
	}
	o.Set("parts", jsonx.Array(parts))
	return o
}

// isField reports whether a part is a large field of its message.
func isField(p *wire.Part) bool { return p.Kind == session.PartData && p.X.Field != "" }

// shown is a part that is shown, with the result of one that is a call.
type shown struct {
	of           *wire.Message
	part, result *wire.Part
	steering     bool // all of the message, in one part
}

// partsOf returns the parts of an entry.
func partsOf(entry []wire.Message) []jsontext.Value {
	list := pair(entry)
	parts := make([]jsontext.Value, 0, len(list))
	results := false // the message before was of a tool: another step begins
	for i := range list {
		s := &list[i]
		if s.of.Dialect != Name {
			translate(s, i)
		}
		if s.part != nil && (s.part.X.Step || results && s.of.Role == session.Assistant && s.of.Dialect != Name) {
			parts = append(parts, jsonx.Encode("type", typeStep))
		}
		results = s.of.Role == session.Tool || results && s.part == nil
		if s.steering {
			if s.of.X.Step {
				parts = append(parts, jsonx.Encode("type", typeStep))
			}
			o := s.of.JSON(encodeSteering(s.of))
			parts = append(parts, o.Value())
		}
		if s.part == nil {
			continue
		}
		parts = append(parts, s.part.JSON(encodePart(s.part, s.result)))
	}
	return parts
}

// pair lists what is shown of an entry, in order, each call with its result. A result without a call stands alone; the
// mark of one that has its call is a part that is nil.
func pair(entry []wire.Message) (list []shown) {
	for i := range entry {
		m := &entry[i]
		if m.Dialect == Name && m.Role == session.User && m.X.Continues {
			list = append(list, shown{of: m, steering: true})
			continue
		}
		var result *wire.Part
		for j := range m.Parts {
			p := &m.Parts[j]
			switch {
			case isField(p), p.Kind == session.PartData && m.Dialect != Name:
			case p.Kind == session.PartToolResult:
				result = p
				if at := callOf(list, p); at >= 0 {
					list[at].result = p
					list = append(list, shown{of: m})
					continue
				}
				call := &wire.Part{Part: session.Part{
					Kind: session.PartToolCall, CallID: p.CallID, ToolName: p.ToolName,
				}, X: wire.Extra{Type: typeDynamicTool}}
				list = append(list, shown{of: m, part: call, result: p})
			case result != nil && m.Role == session.Tool && p.Kind == session.PartText && m.Dialect != Name:
				result.Text, result.Blob = result.Content()+"\n"+p.Content(), nil
			default:
				list = append(list, shown{of: m, part: p})
			}
		}
	}
	return list
}

// callOf finds the call that a result answers: the first without a result of its id, for a result without an id of its
// tool. -1: there is none.
func callOf(list []shown, result *wire.Part) int {
	find := func(fits func(call *wire.Part) bool) int {
		return slices.IndexFunc(list, func(s shown) bool {
			return s.part != nil && s.part.Kind == session.PartToolCall && s.result == nil && fits(s.part)
		})
	}
	at := find(func(call *wire.Part) bool { return call.CallID == result.CallID && call.ToolName == result.ToolName })
	if at < 0 {
		at = find(func(call *wire.Part) bool { return call.CallID == result.CallID })
	}
	if at < 0 && result.MatchedByName() {
		at = find(func(call *wire.Part) bool { return call.MatchedByName() && call.ToolName == result.ToolName })
	}
	return at
}

// translate makes a part of another form, at a place of its entry, one of this.
func translate(s *shown, at int) {
	p := s.part
	if p == nil {
		return
	}
	copied := *p
	p, s.part = &copied, &copied
	if p.Kind != session.PartToolCall {
		p.X = wire.Extra{Media: p.X.Media}
	}
	switch p.Kind {
	case session.PartRefusal:
		p.Kind = session.PartText
	case session.PartImage, session.PartAudio, session.PartFile:
		if p.Blob != nil {
			p.X.Prefix, p.X.URL = "data:"+p.X.MediaType+";base64,", ""
		}
		if p.X.URL == "" && p.Blob == nil {
			s.part = nil // an id of the provider's
			return
		}
		p.X.MediaType = cmp.Or(p.X.MediaType, map[session.PartKind]string{
			session.PartImage: "image/*", session.PartAudio: "audio/*",
		}[p.Kind], "application/octet-stream")
	case session.PartReasoning, session.PartText:
		if p.Content() == "" {
			s.part = nil
		}
	case session.PartToolCall:
		s.call(p, at)
	}
}

// call translates a call. Its tool is one that the front end may not know: a dynamic one.
func (s *shown) call(p *wire.Part, at int) {
	p.X = wire.Extra{Type: typeDynamicTool}
	p.ToolName = cmp.Or(p.ToolName, "unknown")
	p.CallID = cmp.Or(p.CallID, fmt.Sprintf("call_%d_%d", s.of.ID.Seq, at+1))
	switch {
	case p.Arguments == "":
		p.Arguments = "{}"
	case !jsontext.Value(p.Arguments).IsValid():
		p.X.Shape = wire.ShapeString
	}
	if s.result == nil && s.of.Finish.Failed() {
		s.result = &wire.Part{Part: session.Part{Text: "The reply ended before the tool was run.", IsError: new(true)}}
	}
	if s.result != nil && s.of.Role == session.Assistant && s.of.HasResultOf(s.part.CallID) {
		p.X.Rest = jsonx.NewObject("providerExecuted", jsontext.Value("true"))
	}
}

// encodePart encodes a part, and the result of one that is a call.
func encodePart(p, result *wire.Part) (o jsonx.Object) {
	x := &p.X
	switch p.Kind {
	case session.PartText:
		o.Add("type", typeText, "text", p.Content())
	case session.PartReasoning:
		o.Add("type", typeReasoning, "text", p.Content())
	case session.PartImage, session.PartAudio, session.PartFile:
		o.Add("type", typeFile, "mediaType", jsonx.Maybe(x.MediaType), "filename", jsonx.Maybe(x.Name),
			"url", wire.DataURLOf(p)+x.URL)
	case session.PartToolCall:
		o.Add("type", cmp.Or(x.Type, prefixTool+p.ToolName))
		if x.Type == typeDynamicTool {
			o.SetText("toolName", p.ToolName)
		}
		o.Add("toolCallId", p.CallID, "state", stateOf(result))
		input := jsontext.Value(p.Arguments)
		if x.Shape == wire.ShapeString {
			input = jsonx.Quote(p.Arguments)
		}
		if len(input) > 0 {
			o.Set(cmp.Or(x.Field, fieldInput), input)
		}
		if result != nil {
			encodeResult(&o, result)
		}
	}
	return o
}

func stateOf(result *wire.Part) string {
	switch {
	case result == nil:
		return stateAvailable
	case result.Failed():
		return stateError
	}
	return stateOutput
}

func encodeResult(o *jsonx.Object, result *wire.Part) {
	field := "output"
	if result.Failed() {
		field = "errorText"
	}
	switch result.X.Shape {
	case wire.ShapeAbsent:
	case shapeJSON:
		o.Set(field, jsontext.Value(result.Content()))
	default:
		o.SetText(field, result.Content())
	}
}
