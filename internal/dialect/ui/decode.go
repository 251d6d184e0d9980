// Package ui is the form of the AI SDK's UIMessage (the npm package ai): what chat front ends show and store.
//
// A reply is one message for each of its steps, as a provider wants it: what the model said and called, and the results
// as a message of role tool behind it. The first one says how many messages the entry is (extra.messages), the others
// that they continue it (extra.continues). A part that is not for models (a source, data, a type that is not known)
// is kept as it came. Fields that no column holds are in extra.rest, and win over the columns on export.
package ui

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "ui"

// Form is the dialect. No provider takes it, so it has no Send.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, FirstEntry: FirstEntry}
}

// Types of parts.
const (
	typeText           = "text"
	typeReasoning      = "reasoning"
	typeReasoningFile  = "reasoning-file"
	typeFile           = "file"
	typeSourceURL      = "source-url"
	typeSourceDocument = "source-document"
	typeStep           = "step-start"
	typeCustom         = "custom"
	typeSteering       = "steering-message"
	typeDynamicTool    = "dynamic-tool"
	prefixTool         = "tool-"
	prefixData         = "data-"
)

// States of a tool's part.
const (
	stateStreaming = "input-streaming"
	stateAvailable = "input-available"
	stateOutput    = "output-available"
	stateError     = "output-error"
	stateDenied    = "output-denied"
	stateResponded = "approval-responded"
)

// Fields of a tool's part.
const (
	fieldInput    = "input"
	fieldRawInput = "rawInput"
)

// shapeJSON is the shape of an output that is no string: its text is JSON.
const shapeJSON = "json"

// denied is the result of a call that a person did not allow, if no reason is given.
const denied = "The tool call was denied."

// Decode reads UIMessages. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

type decoder struct{ wire.Reader }

// entry decodes one UIMessage. Source: UIMessage and validateUIMessages of the package ai, version 7.
func (d *decoder) entry(path string, raw jsontext.Value) error {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	role, err := d.role(path, &o)
	if err != nil {
		return err
	}
	elements, err := wire.Elements(jsonx.Join(path, "parts"), o.Get("parts"))
	if err != nil {
		return err
	}
	s := splitter{role: role}
	s.begin()
	for i, e := range elements {
		b, err := wire.ParseBlock(jsonx.Index(jsonx.Join(path, "parts"), i), e)
		if err != nil {
			return err
		}
		if b.Kind == typeStep && role == session.Assistant && len(b.Object) == 1 && beginsStep(elements[i+1:]) {
			s.step()
			continue
		}
		if b.Kind == typeSteering && role == session.Assistant {
			if err := d.steering(&b, &s); err != nil {
				return err
			}
			continue
		}
		call, result, err := d.part(&b, role)
		if err != nil {
			return err
		}
		s.add(call, result)
	}
	s.flush()
	return d.keep(path, o, s.messages)
}

// keep completes an entry with what its parts do not say.
func (d *decoder) keep(path string, o jsonx.Object, of []wire.Message) error {
	first := &of[0]
	first.X.ID = o.Get("id")
	if metadata := o.Get("metadata"); jsonx.KindOf(metadata) == '{' && !wire.IsLarge(metadata) {
		first.Metadata = session.JSON(metadata)
	}
	for i := range of[1:] {
		of[i+1].X.Continues = true
	}
	if len(of) > 1 {
		first.X.Messages = len(of)
	}
	large, err := first.Keep(path, o, encode(of))
	if err != nil {
		return err
	}
	first.Parts = append(first.Parts, large...)
	d.Messages = append(d.Messages, of...)
	return wire.Holds(path, len(first.Parts)) // the others have fewer than the entry
}

// steering decodes what a person said while the reply was made: {id, parts}. It is a message of the person's.
func (d *decoder) steering(b *wire.Block, s *splitter) error {
	m := wire.NewMessage(Name, session.User, session.Person)
	part := func(path string, raw jsontext.Value) (p wire.Part, err error) {
		of, err := wire.ParseBlock(path, raw)
		if err == nil {
			p, _, err = d.part(&of, session.User)
		}
		return p, err
	}
	parts, err := wire.Each(jsonx.Join(b.Path, "parts"), b.Get("parts"), part)
	if err != nil {
		return err
	}
	m.Parts = parts
	large, err := m.Keep(b.Path, b.Object, encodeSteering(&m))
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, large...)
	s.flush()
	m.X.Step, s.stepped = s.stepped, false
	s.messages = append(s.messages, m)
	return nil
}

func (d *decoder) role(path string, o *jsonx.Object) (session.Role, error) {
	role, err := d.StringOf(path, "role", o.Get("role"))
	switch of := session.Role(role); {
	case err != nil:
		return "", err
	case of == session.System, of == session.User, of == session.Assistant:
		return of, nil
	}
	return "", jsonx.Errorf(session.Invalid, jsonx.Join(path, "role"), "is %q: it must be one of system, user, assistant",
		jsonx.Clip(role))
}

// beginsStep reports whether a part follows that can say that a step began before it.
func beginsStep(following []jsontext.Value) bool {
	if len(following) == 0 {
		return false
	}
	next, err := jsonx.ParseObject("", following[0])
	return err == nil && next.String("type") != typeStep
}

// splitter splits an entry into messages.
type splitter struct {
	role     session.Role
	messages []wire.Message
	results  []wire.Part // of the calls in the last message
	stepped  bool        // a step began
}

func (s *splitter) begin() {
	s.messages = append(s.messages, wire.NewMessage(Name, s.role, s.role.DefaultOrigin()))
}

// step begins another reply, unless the present one is empty.
func (s *splitter) step() {
	s.flush()
	if last := s.messages[len(s.messages)-1]; last.Role == s.role && len(last.Parts) > 0 {
		s.begin()
	}
	s.stepped = true
}

// flush writes the results as a message of role tool.
func (s *splitter) flush() {
	if len(s.results) == 0 {
		return
	}
	m := wire.NewMessage(Name, session.Tool, session.ByTool)
	m.Parts, s.results = s.results, nil
	s.messages = append(s.messages, m)
}

// add adds a part, and the result of one that is a call. What the model says behind results begins another reply.
func (s *splitter) add(p wire.Part, result *wire.Part) {
	if p.Kind != session.PartToolCall && p.Kind != session.PartData {
		s.flush()
	}
	if s.messages[len(s.messages)-1].Role != s.role {
		s.begin()
	}
	m := &s.messages[len(s.messages)-1]
	p.X.Step, s.stepped = s.stepped, false
	m.Parts = append(m.Parts, p)
	switch {
	case result == nil:
	case byProvider(&p):
		m.Parts = append(m.Parts, *result)
	default:
		s.results = append(s.results, *result)
	}
}

// byProvider reports whether the provider ran a call.
func byProvider(call *wire.Part) bool { return string(call.X.Rest.Get("providerExecuted")) == "true" }

// part decodes a part, and the result that a tool's part holds.
func (d *decoder) part(b *wire.Block, role session.Role) (p wire.Part, result *wire.Part, err error) {
	switch {
	case b.Kind == typeText:
		p.Kind = session.PartText
		p.Text, err = d.TextOf(b, "text")
	case b.Kind == typeReasoning && role == session.Assistant:
		p.Kind = session.PartReasoning
		p.Text, err = d.TextOf(b, "text")
	case b.Kind == typeFile && file(b, &p):
	case role == session.Assistant && d.tool(b, &p):
		return d.result(b, p)
	default:
		if !isKnown(b.Kind) {
			d.WarnUnknown(b.Path, b.Kind)
		}
		return wire.Data(b.Raw, wire.Extra{Type: b.Kind}), nil, nil
	}
	if err == nil {
		err = p.Keep(b.Path, b.Raw, &b.Object, encodePart(&p, nil))
	}
	return p, nil, err
}

// isKnown reports whether the SDK has parts of a type, of those that are kept as they came.
func isKnown(kind string) bool {
	switch kind {
	case typeReasoning, typeReasoningFile, typeFile, typeSourceURL, typeSourceDocument, typeStep, typeCustom,
		typeSteering, typeDynamicTool:
		return true
	}
	return strings.HasPrefix(kind, prefixData) || strings.HasPrefix(kind, prefixTool)
}

// file decodes {mediaType, filename, url} and reports whether it is one.
func file(b *wire.Block, p *wire.Part) bool {
	url, mediaType := b.Text("url"), b.Text("mediaType")
	p.X.Name = b.Text("filename")
	if !wire.AttachURL(p, url) {
		p.X.URL, p.X.MediaType = url, mediaType
	}
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		p.Kind = session.PartImage
	case strings.HasPrefix(mediaType, "audio/"):
		p.Kind = session.PartAudio
	default:
		p.Kind = session.PartFile
	}
	return p.Blob != nil || url != "" && len(url) <= session.BlobThreshold
}

// tool decodes a call and reports whether the part is one that was made: with an id, a name and its whole input. A call
// of the provider's that waits for its result is none of the caller's.
func (d *decoder) tool(b *wire.Block, p *wire.Part) bool {
	name, isTool := strings.CutPrefix(b.Kind, prefixTool)
	if b.Kind == typeDynamicTool {
		name, isTool = b.Text("toolName"), true
		p.X.Type = typeDynamicTool
	}
	state := b.Text("state")
	if _, exact := jsonx.Text(b.Get("type")); !exact || !isTool || name == "" || state == "" || state == stateStreaming ||
		string(b.Get("providerExecuted")) == "true" && !hasResult(b) {
		return false
	}
	p.Kind, p.ToolName, p.CallID = session.PartToolCall, name, b.Text("toolCallId")
	field := fieldInput
	if !b.Has(fieldInput) && b.Has(fieldRawInput) {
		field, p.X.Field = fieldRawInput, fieldRawInput
	}
	p.Arguments = string(b.Get(field))
	if text, exact := jsonx.Text(b.Get(field)); exact && text != "" {
		p.Arguments, p.X.Shape = text, wire.ShapeString
	}
	return p.CallID != ""
}

// hasResult reports whether a tool's part holds the result of its call.
func hasResult(b *wire.Block) bool {
	switch b.Text("state") {
	case stateOutput, stateError:
		return true
	}
	return isDenied(b)
}

// isDenied reports whether a person did not allow a call.
func isDenied(b *wire.Block) bool {
	state := b.Text("state")
	return state == stateDenied || state == stateResponded && string(b.Inner("approval").Get("approved")) == "false"
}

// result decodes the result of a call from its part.
func (d *decoder) result(b *wire.Block, call wire.Part) (wire.Part, *wire.Part, error) {
	var result *wire.Part
	if state := b.Text("state"); hasResult(b) {
		result = &wire.Part{Part: session.Part{
			Kind: session.PartToolResult, CallID: call.CallID, ToolName: call.ToolName, IsError: new(state != stateOutput),
		}}
		field := "output"
		if state == stateError {
			field = "errorText"
		}
		raw := b.Get(field)
		switch {
		case isDenied(b):
			result.X.Shape, result.Text = wire.ShapeAbsent, denied
			if reason := b.Inner("approval").String("reason"); reason != "" {
				result.Text = reason
			}
		case raw == nil:
			result.X.Shape = wire.ShapeAbsent
		case jsonx.KindOf(raw) == '"':
			result.Text, _ = d.StringOf(b.Path, field, raw)
		default:
			result.X.Shape, result.Text = shapeJSON, string(raw)
		}
	}
	err := call.Keep(b.Path, b.Raw, &b.Object, encodePart(&call, result))
	return call, result, err
}
