// Package openaichat is the wire form of OpenAI's Chat Completions and of the many servers
// that speak it.
//
// One message is one session.Message. Its parts stand in this order: reasoning, content,
// refusal, audio, calls. The fields that no column holds are in extra.rest, and win over the
// columns on export.
package openaichat

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "openai.chat"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{
		Name: Name, Decode: Decode, Export: Export, Send: Send, Rules: wire.RulesOfModel,
		ResendsReasoning: true,
	}
}

// Roles of the wire that share a role with another one.
const (
	roleDeveloper = "developer"
	roleFunction  = "function"
)

// Types of calls and of elements of content.
const (
	typeFunction = "function"
	typeCustom   = "custom"
	typeText     = "text"
	typeImage    = "image_url"
	typeAudio    = "input_audio"
	typeFile     = "file"
	typeRefusal  = "refusal"
)

// Fields of a message that become parts.
const (
	fieldReasoning        = "reasoning"         // OpenRouter, vLLM
	fieldReasoningContent = "reasoning_content" // DeepSeek, Kimi, Qwen
	fieldReasoningDetails = "reasoning_details" // OpenRouter, MiniMax
	fieldRefusal          = "refusal"
	fieldAudio            = "audio"
	fieldToolCalls        = "tool_calls"
	fieldFunctionCall     = "function_call"
)

// Decode reads messages of a request, or a reply's message: alone, as the choice
// {message, finish_reason}, or as the whole completion {choices: [{…}], …}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

type decoder struct{ wire.Reader }

// around is the objects around a reply's message.
type around struct{ choice, completion *jsonx.Object }

// entry decodes a message, or a choice or a completion with the message in it.
func (d *decoder) entry(path string, raw jsontext.Value) error {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	switch {
	case o.Has("role"):
		return d.message(path, &o, around{})
	case o.Has("choices"):
		return d.completion(path, &o)
	case o.Has("message"):
		return d.choice(path, &o, nil)
	}
	return d.message(path, &o, around{})
}

// completion decodes {choices: [{…}], …} and keeps the fields around it.
func (d *decoder) completion(path string, o *jsonx.Object) error {
	at := jsonx.Join(path, "choices")
	choices, err := jsonx.ParseArray(at, o.Get("choices"))
	if err != nil {
		return err
	}
	if len(choices) != 1 {
		return jsonx.Errorf(session.Invalid, at, "has %d elements: send the choice to go on with", len(choices))
	}
	choice, err := jsonx.ParseObject(jsonx.Index(at, 0), choices[0])
	if err != nil {
		return err
	}
	o.Drop("choices")
	if err := wire.CheckFits(*o, path); err != nil {
		return err
	}
	return d.choice(jsonx.Index(at, 0), &choice, o)
}

// choice decodes {message, finish_reason, …}.
func (d *decoder) choice(path string, o, completion *jsonx.Object) error {
	of, err := jsonx.ParseObject(jsonx.Join(path, "message"), o.Get("message"))
	if err != nil {
		return err
	}
	o.Drop("message")
	if err := wire.CheckFits(*o, path); err != nil {
		return err
	}
	return d.message(jsonx.Join(path, "message"), &of, around{o, completion})
}

// finish translates a finish_reason.
func finish(reason string) session.Finish {
	switch reason {
	case "stop":
		return session.FinishStop
	case "length":
		return session.FinishLength
	case "content_filter":
		return session.FinishRefusal
	case "tool_calls", "function_call":
		return session.FinishToolCalls
	}
	return ""
}

// message decodes a message of any role. Source: OpenAI's API reference, chat/create.
func (d *decoder) message(path string, o *jsonx.Object, by around) error {
	m, err := d.role(path, o)
	if err != nil {
		return err
	}
	if m.X.Choice, m.X.Response = by.choice, by.completion; by.choice != nil {
		m.Finish = finish(by.choice.String("finish_reason"))
	}
	if by.completion != nil {
		m.Model = by.completion.String("model")
	}
	if name := o.Get("name"); !jsonx.IsNull(name) {
		if m.Author, err = d.StringOf(path, "name", name); err != nil {
			return err
		}
	}
	switch m.Role {
	case session.Assistant:
		err = d.reply(path, o, &m)
	case session.Tool:
		err = d.result(path, o, &m)
	default:
		err = d.content(path, o, &m)
	}
	if err != nil {
		return err
	}
	if m.Role != session.Assistant && jsonx.HasElements(o.Get(fieldToolCalls)) {
		return jsonx.Errorf(session.Invalid, jsonx.Join(path, fieldToolCalls),
			"stands in a message of role %s: only an assistant calls tools", m.Role)
	}
	large, err := m.Keep(path, *o, encode(&m))
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, large...)
	d.Messages = append(d.Messages, m)
	return wire.Holds(path, len(m.Parts))
}

func (d *decoder) role(path string, o *jsonx.Object) (wire.Message, error) {
	role, err := d.StringOf(path, "role", o.Get("role"))
	if err != nil {
		return wire.Message{}, err
	}
	m := wire.NewMessage(Name, session.Role(role), session.Program)
	switch role {
	case "user":
		m.Origin = session.Person
	case "assistant":
		m.Origin = session.Model
	case "tool":
		m.Origin = session.ByTool
	case "system":
	case roleDeveloper:
		m.Role, m.X.Role = session.System, role
	case roleFunction:
		m.Role, m.Origin, m.X.Role = session.Tool, session.ByTool, role
	default:
		return m, jsonx.Errorf(session.Invalid, jsonx.Join(path, "role"),
			"is %q: it must be one of system, developer, user, assistant, tool, function", jsonx.Clip(role))
	}
	return m, nil
}

// reply decodes what an assistant's message says, in the order of its parts.
func (d *decoder) reply(path string, o *jsonx.Object, m *wire.Message) error {
	add := func(kind session.PartKind, field, text string) {
		m.Parts = append(m.Parts, wire.Part{Part: session.Part{Kind: kind, Text: text}, X: wire.Extra{Field: field}})
	}
	said := ""
	for _, field := range []string{fieldReasoningContent, fieldReasoning} {
		if raw := o.Get(field); jsonx.KindOf(raw) == '"' { // a vendor's own: any other value stays in rest
			text, err := d.StringOf(path, field, raw)
			if err != nil {
				return err
			}
			add(session.PartReasoning, field, text)
			said += text
		}
	}
	if p, ok := d.details(o, said); ok {
		m.Parts = append(m.Parts, p)
	}
	if err := d.content(path, o, m); err != nil {
		return err
	}
	if refusal := o.Get(fieldRefusal); !jsonx.IsNull(refusal) {
		text, err := d.StringOf(path, fieldRefusal, refusal)
		if err != nil {
			return err
		}
		add(session.PartRefusal, fieldRefusal, text)
	}
	if audio := o.Get(fieldAudio); !jsonx.IsNull(audio) {
		if err := d.audio(jsonx.Join(path, fieldAudio), audio, m); err != nil {
			return err
		}
	}
	if list := o.Get(fieldToolCalls); !jsonx.IsNull(list) {
		calls, err := wire.Each(jsonx.Join(path, fieldToolCalls), list, d.call)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, calls...)
	}
	call := o.Get(fieldFunctionCall)
	if jsonx.IsNull(call) {
		return nil
	}
	at := jsonx.Join(path, fieldFunctionCall)
	p := wire.Part{Part: session.Part{Kind: session.PartToolCall}, X: wire.Extra{Field: fieldFunctionCall}}
	function, err := d.function(at, call, "arguments", &p)
	if err == nil {
		err = p.Keep(at, call, &function, encodeFunction(&p, "arguments"))
	}
	m.Parts = append(m.Parts, p)
	return err
}

// content decodes the content of any message.
func (d *decoder) content(path string, o *jsonx.Object, m *wire.Message) error {
	raw := o.Get("content")
	shape, text, err := d.Content(path, "content", raw)
	switch m.X.Shape = shape; shape {
	case wire.ShapeString:
		m.X.Shape = ""
		m.Parts = append(m.Parts, wire.Part{Part: session.TextPart(text)})
	case wire.ShapeArray:
		var elements []wire.Part
		elements, err = wire.Each(jsonx.Join(path, "content"), raw, d.element)
		m.Parts = append(m.Parts, elements...)
	}
	return err
}

// result decodes a tool's message: its first text is the result's, the other elements follow
// under the same call id.
func (d *decoder) result(path string, o *jsonx.Object, m *wire.Message) error {
	result := wire.Part{Part: session.Part{Kind: session.PartToolResult, ToolName: m.Author}}
	var err error
	if m.X.Role != roleFunction {
		if result.CallID, err = d.StringOf(path, "tool_call_id", o.Get("tool_call_id")); err != nil {
			return err
		}
	}
	if err := d.content(path, o, m); err != nil {
		return err
	}
	m.Parts = wire.ResultFirst(result, m.Parts, wire.FirstText(m.Parts), m.X.Shape == wire.ShapeArray)
	return nil
}

// element decodes one element of a content array. A type that is not known is kept whole as data.
func (d *decoder) element(path string, raw jsontext.Value) (wire.Part, error) {
	var p wire.Part
	b, err := wire.ParseBlock(path, raw)
	if err != nil {
		return p, err
	}
	kind := b.Kind
	inner := b.Get(kind) // the field is named like the type
	at := jsonx.Join(path, kind)
	switch kind {
	case typeText, typeRefusal:
		p.Kind = session.PartText
		if kind == typeRefusal {
			p.Kind = session.PartRefusal
		}
		p.Text, err = d.StringOf(path, kind, inner)
	case typeImage:
		p.Kind = session.PartImage
		err = d.picture(at, inner, &p)
	case typeAudio:
		p.Kind = session.PartAudio
		var sound jsonx.Object
		if sound, err = jsonx.ParseObject(at, inner); err == nil {
			p.X.MediaType = wire.SoundType(sound.String("format"))
			wire.AttachBase64(&p, sound.Get("data"))
		}
	case typeFile:
		p.Kind = session.PartFile
		var file jsonx.Object
		if file, err = jsonx.ParseObject(at, inner); err == nil {
			p.X.Name, p.X.FileID = file.Text("filename"), file.Text("file_id")
			wire.AttachURL(&p, file.Text("file_data"))
		}
	default:
		d.WarnUnknown(path, kind)
		return wire.Data(raw, wire.Extra{Type: kind}), nil
	}
	if err != nil {
		return p, err
	}
	return p, p.Keep(path, raw, &b.Object, encodeElement(&p))
}

// picture decodes {url, detail}. Bytes of a data URL become the part's blob where that gives the
// URL back exactly. Some servers take the URL itself.
func (d *decoder) picture(path string, raw jsontext.Value, p *wire.Part) error {
	if url := jsonx.ExactText(raw); url != "" {
		p.X.URL = url
		return nil
	}
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	url, err := d.StringOf(path, "url", o.Get("url"))
	if !wire.AttachURL(p, url) {
		p.X.URL = url
	}
	p.X.Detail = o.Text("detail")
	return err
}

// audio decodes what the model said aloud: {id, data, expires_at, transcript}.
func (d *decoder) audio(path string, raw jsontext.Value, m *wire.Message) error {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	p := wire.Part{Part: session.Part{Kind: session.PartAudio}, X: wire.Extra{Field: fieldAudio}}
	// the blob is for the bytes
	if text := o.Get("transcript"); jsonx.KindOf(text) == '"' && len(text) <= session.BlobThreshold {
		p.Text, _ = d.StringOf(path, "transcript", text)
	}
	p.X.MediaType = "application/octet-stream" // the format stood in the request
	wire.AttachBase64(&p, o.Get("data"))
	err = p.Keep(path, raw, &o, encodeAudio(&p))
	m.Parts = append(m.Parts, p)
	return err
}

// call decodes one element of tool_calls: a function's, a custom tool's, or a type that is not
// known and is kept whole.
func (d *decoder) call(path string, raw jsontext.Value) (wire.Part, error) {
	p := wire.Part{Part: session.Part{Kind: session.PartToolCall}}
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return p, err
	}
	kind, arguments := typeFunction, "arguments"
	if t := o.Get("type"); t == nil { // some servers leave it out
		p.X.Shape = wire.ShapeAbsent
	} else if kind, _ = jsonx.Text(t); kind == "" {
		return p, jsonx.Errorf(session.Invalid, jsonx.Join(path, "type"), "must be function or custom, not %s",
			jsonx.Describe(t))
	}
	switch kind {
	case typeFunction:
	case typeCustom:
		p.X.Type, arguments = kind, "input"
	default:
		d.WarnUnknown(path, kind)
		return wire.Data(raw, wire.Extra{Field: fieldToolCalls, Type: kind}), nil
	}
	if p.CallID, err = d.StringOf(path, "id", o.Get("id")); err != nil {
		return p, err
	}
	if _, err := d.function(jsonx.Join(path, kind), o.Get(kind), arguments, &p); err != nil {
		return p, err
	}
	return p, p.Keep(path, raw, &o, encodeCall(&p))
}

// function decodes {name, arguments}. Arguments are kept byte for byte, whatever they hold; some
// servers give them as an object: then its bytes are the arguments.
func (d *decoder) function(path string, raw jsontext.Value, arguments string,
	p *wire.Part,
) (o jsonx.Object, err error) {
	if o, err = jsonx.ParseObject(path, raw); err != nil {
		return o, err
	}
	if p.ToolName, err = d.StringOf(path, "name", o.Get("name")); err != nil {
		return o, err
	}
	switch raw := o.Get(arguments); jsonx.KindOf(raw) {
	case 'n':
	case '{', '[':
		p.Arguments = string(raw)
	default:
		p.Arguments, err = d.StringOf(path, arguments, raw)
	}
	return o, err
}
