// Package responses is the wire form of OpenAI's Responses API: a list of items.
//
// Consecutive items that the model made are one assistant message, consecutive outputs of
// tools one tool message, any other item is one message. An item's own fields stand in the
// extra.item of its first part, so a part with an item begins one; its elements are the parts
// that follow. The fields that no column holds are there, and win over the columns on export.
//
// A tool that the provider runs (a search, an interpreter) is a call and its result in the
// assistant's message: the caller does not answer it.
//
// A whole response object {object:"response", output:[…]} is taken too: the fields around
// its output are in the message's extra.response.
package responses

import (
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "openai.responses"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{
		Name: Name, Decode: Decode, Export: Export, Send: Send, Rules: wire.RulesOfModel,
	}
}

// Types of items.
const (
	itemMessage         = "message"
	itemReasoning       = "reasoning"
	itemCompaction      = "compaction"
	itemReference       = "item_reference"
	itemFunctionCall    = "function_call"
	itemCustomCall      = "custom_tool_call"
	itemComputerCall    = "computer_call"
	itemLocalShellCall  = "local_shell_call"
	itemShellCall       = "shell_call"
	itemApplyPatchCall  = "apply_patch_call"
	itemToolSearchCall  = "tool_search_call"
	itemWebSearchCall   = "web_search_call"
	itemFileSearchCall  = "file_search_call"
	itemInterpreterCall = "code_interpreter_call"
	itemImageCall       = "image_generation_call"
	itemMCPCall         = "mcp_call"
	itemMCPTools        = "mcp_list_tools"
	itemMCPRequest      = "mcp_approval_request"
	itemMCPResponse     = "mcp_approval_response"

	itemFunctionOutput   = "function_call_output"
	itemCustomOutput     = "custom_tool_call_output"
	itemComputerOutput   = "computer_call_output"
	itemLocalShellOutput = "local_shell_call_output"
	itemShellOutput      = "shell_call_output"
	itemApplyPatchOutput = "apply_patch_call_output"
	itemToolSearchOutput = "tool_search_output"
)

// Types of the elements of a content.
const (
	typeInputText  = "input_text"
	typeOutputText = "output_text"
	typeText       = "text"
	typeRefusal    = "refusal"
	typeImage      = "input_image"
	typeScreenshot = "computer_screenshot"
	typeFile       = "input_file"
	typeAudio      = "input_audio"
	typeSummary    = "summary_text"
	typeReasoning  = "reasoning_text"
)

// roleDeveloper is the role of the wire that shares session.System with another.
const roleDeveloper = "developer"

// textType is the type that a text has in a message of a role.
func textType(role session.Role) string {
	if role == session.Assistant {
		return typeOutputText
	}
	return typeInputText
}

// typeCustom marks a call of a custom tool, in the word that openai.chat has for it too.
const typeCustom = "custom"

// callSpec says where an item of a call holds what the columns hold.
type callSpec struct {
	tool      string // the tool's name; "" = the item's name says it
	arguments string // the field of the arguments
	text      bool   // the arguments are a string, and not any JSON value
	needsID   bool   // call_id must be there
	hosted    bool   // the provider runs it: id names it, and its result stands in it
}

// callSpecs are the callSpecs by type of items.
var callSpecs = map[string]callSpec{
	itemFunctionCall:    {arguments: "arguments", text: true, needsID: true},
	itemCustomCall:      {arguments: "input", text: true, needsID: true},
	itemComputerCall:    {tool: "computer", arguments: "action", needsID: true},
	itemLocalShellCall:  {tool: "local_shell", arguments: "action"},
	itemShellCall:       {tool: "shell", arguments: "action", needsID: true},
	itemApplyPatchCall:  {tool: "apply_patch", arguments: "operation", needsID: true},
	itemToolSearchCall:  {tool: "tool_search", arguments: "arguments"},
	itemWebSearchCall:   {tool: "web_search", arguments: "action", hosted: true},
	itemFileSearchCall:  {tool: "file_search", arguments: "queries", hosted: true},
	itemInterpreterCall: {tool: "code_interpreter", arguments: "code", text: true, hosted: true},
	itemImageCall:       {tool: "image_generation", arguments: "revised_prompt", text: true, hosted: true},
	itemMCPCall:         {arguments: "arguments", text: true, hosted: true},
}

// outputTools are the tools whose outputs items are, by type of items. The output of a function does not say whose
// it is.
var outputTools = map[string]string{
	itemFunctionOutput: "", itemCustomOutput: "", itemComputerOutput: "computer", itemLocalShellOutput: "local_shell",
	itemShellOutput: "shell", itemApplyPatchOutput: "apply_patch", itemToolSearchOutput: "tool_search",
}

// Decode reads items of a request or a reply, or whole response objects. Codes: Malformed,
// Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	d := decoder{shells: map[string]string{}}
	return d.Read(raw, func(path string, raw jsontext.Value) error {
		o, err := jsonx.ParseObject(path, raw)
		switch {
		case err != nil:
			return err
		case IsResponse(&o):
			return d.response(path, &o)
		}
		return d.item(&wire.Block{Object: o, Path: path})
	})
}

type decoder struct {
	wire.Reader
	open   bool              // the last message may still take parts
	shells map[string]string // call ids of local shells by the ids of their items
}

// response decodes {output: […]} and keeps the fields around it.
func (d *decoder) response(path string, o *jsonx.Object) error {
	at := jsonx.Join(path, "output")
	items, err := jsonx.ParseArray(at, o.Get("output"))
	if err != nil {
		return err
	}
	o.Drop("output")
	first := len(d.Messages)
	d.open = false
	for i, raw := range items {
		inner, err := jsonx.ParseObject(jsonx.Index(at, i), raw)
		if err == nil {
			err = d.item(&wire.Block{Object: inner, Path: jsonx.Index(at, i)})
		}
		if err != nil {
			return err
		}
	}
	if len(d.Messages) == first { // a failed response may be empty
		d.Messages = append(d.Messages, reply())
	}
	d.open = false
	of := d.Messages[first:]
	finish(of, o)
	model := o.String("model")
	for i := range of {
		if of[i].X.Continues = i > 0; of[i].Role == session.Assistant {
			of[i].Model = model
		}
	}
	large, err := wire.TakeLarge(o, path, "response")
	of[0].Parts = append(of[0].Parts, large...)
	of[0].X.Response = o
	if err == nil {
		err = wire.Holds(path, len(of[0].Parts))
	}
	return err
}

// finish says why a response ended. A reply that failed did so as a whole; any other end is
// that of its last message.
func finish(of []wire.Message, response *jsonx.Object) {
	var f session.Finish
	switch response.String("status") {
	case "completed":
		f = session.FinishStop
	case "failed":
		f = session.FinishError
	case "cancelled":
		f = session.FinishAborted
	case "incomplete":
		f = session.FinishLength
		details, err := jsonx.ParseObject("", response.Get("incomplete_details"))
		if err == nil && details.Text("reason") == "content_filter" {
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

// waits reports whether a reply calls a tool that the provider does not run.
func waits(m *wire.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p wire.Part) bool {
		return p.Kind == session.PartToolCall && !wire.AnsweredInside(m, p.CallID)
	})
}

func reply() wire.Message { return wire.NewMessage(Name, session.Assistant, session.Model) }

// item decodes one item and adds it to the message that it belongs to. Its fields have the types that its kind
// gives them. Source: OpenAI's API reference, responses.
func (d *decoder) item(it *wire.Block) error {
	kind := itemMessage
	if t := it.Get("type"); t != nil {
		kind, _ = jsonx.Text(t)
	} else if !it.Has("role") && it.Has("id") && len(it.Object) == 1 {
		kind = itemReference
	}
	_, isOutput := outputTools[kind]
	spec, isCall := callSpecs[kind]
	switch {
	case kind == "" && !jsonx.IsNull(it.Get("type")):
		return jsonx.Errorf(session.Invalid, jsonx.Join(it.Path, "type"), "must say what the item is, not be %s",
			jsonx.Describe(it.Get("type")))
	case kind == itemMessage || kind == "" && it.Has("role"):
		return d.message(it)
	case kind == "":
		return d.unknown(it, itemReference)
	case kind == itemReasoning:
		return d.reasoning(it)
	case isCall && spec.hosted:
		return d.hosted(it, kind, spec)
	case isCall:
		return d.call(it, kind, spec)
	case isOutput:
		return d.output(it, kind)
	}
	return d.unknown(it, kind)
}

// unknown keeps an item whole: one that is not known, and one that is no talk and no call.
func (d *decoder) unknown(it *wire.Block, kind string) error {
	m := wire.NewMessage(Name, "", session.Program)
	known := false
	switch {
	case kind == itemCompaction, kind == itemMCPTools, kind == itemMCPRequest:
		m, known = reply(), true
	case kind == itemMCPResponse:
		m, known = wire.NewMessage(Name, session.User, session.Person), true
	case strings.HasSuffix(kind, "_call"):
		m = reply()
	case strings.HasSuffix(kind, "_output"):
		m = wire.NewMessage(Name, session.Tool, session.ByTool)
	default:
		m.Kind = session.KindUnknown
	}
	if kind == itemReference {
		d.Warn(it.Path, "refers to an item that only the provider stores: kept for export, not sent")
	} else if !known {
		d.WarnUnknown(it.Path, kind)
	}
	return d.add(m, it, wire.Part{Part: session.Part{Kind: session.PartData}, X: wire.Extra{Type: kind}})
}

// add finishes an item: the fields that its parts do not say go to the first one's extra, and
// the parts to the last message or to a new one.
func (d *decoder) add(m wire.Message, it *wire.Block, parts ...wire.Part) error {
	u := unit{kind: kindOf(&it.Object, &parts[0])}
	for i := range parts {
		u.parts = append(u.parts, &parts[i])
	}
	encoded := u.encode(m.Role)
	rest, ok := jsonx.Rest(&it.Object, &encoded)
	if !ok {
		rest = it.Object
	}
	large, err := wire.TakeLarge(&rest, it.Path, "")
	if err != nil {
		return err
	}
	parts = append(parts, large...)
	if err := wire.Holds(it.Path, len(parts)); err != nil {
		return err
	}
	parts[0].X.Item = &rest
	joins := m.Role == session.Assistant || m.Role == session.Tool
	last := len(d.Messages) - 1
	if !joins || !d.open || d.Messages[last].Role != m.Role || len(d.Messages[last].Parts)+len(parts) > session.MaxParts ||
		confuses(&d.Messages[last], parts) {
		d.Messages = append(d.Messages, m)
		last++
	}
	d.open = joins
	d.Messages[last].Parts = append(d.Messages[last].Parts, parts...)
	return nil
}

// confuses reports whether a call and the result of a tool that the provider ran would stand under
// one id in a reply: then the result would seem to be the other call's.
func confuses(m *wire.Message, parts []wire.Part) bool {
	isCall := func(p *wire.Part) bool { return p.Kind == session.PartToolCall }
	isResult := func(p *wire.Part) bool { return p.Kind == session.PartToolResult }
	for i := range parts {
		p := &parts[i]
		if m.Role == session.Assistant && (isCall(p) || isResult(p)) && slices.ContainsFunc(m.Parts, func(q wire.Part) bool {
			return q.CallID == p.CallID && (isResult(&q) || isCall(&q) && isResult(p))
		}) {
			return true
		}
	}
	return false
}

// message decodes {type: message, role, content}. The type may be missing.
func (d *decoder) message(it *wire.Block) error {
	role, err := d.TextOf(it, "role")
	if err != nil {
		return err
	}
	m := wire.NewMessage(Name, session.Role(role), session.Program)
	switch role {
	case "user":
		m.Origin = session.Person
	case "assistant":
		m.Origin = session.Model
	case "system":
	case roleDeveloper:
		m.Role = session.System
	default:
		return jsonx.Errorf(session.Invalid, jsonx.Join(it.Path, "role"),
			"is %q: it must be one of user, assistant, system, developer", jsonx.Clip(role))
	}
	m.Author = it.String("name") // no documented field; it stays in the item
	parts, err := d.content(it, textType(m.Role))
	if err != nil {
		return err
	}
	return d.add(m, it, parts...)
}

// content decodes a message's content. Where it holds nothing an empty text stands for it, so
// that the item has a part.
func (d *decoder) content(it *wire.Block, texts string) ([]wire.Part, error) {
	shape, text, err := d.Content(it.Path, "content", it.Get("content"))
	if err == nil && shape == wire.ShapeArray {
		if parts, err := d.elements(it, "content", texts); err != nil || len(parts) > 0 {
			return parts, err
		}
	}
	return []wire.Part{{Part: session.TextPart(text), X: wire.Extra{Shape: shape}}}, err
}

// reasoning decodes {summary: […], content: […], encrypted_content}. Each text is one part.
func (d *decoder) reasoning(it *wire.Block) error {
	var parts []wire.Part
	for _, list := range [...][2]string{{"summary", typeSummary}, {"content", typeReasoning}} {
		if !jsonx.HasElements(it.Get(list[0])) {
			continue // an empty list, a null or whatever it is stays in the item
		}
		texts, err := d.elements(it, list[0], list[1])
		if err != nil {
			return err
		}
		for i := range texts {
			if texts[i].Kind == session.PartText {
				texts[i].Kind = session.PartReasoning
			}
			texts[i].X.Of = list[0]
		}
		parts = append(parts, texts...)
	}
	if len(parts) == 0 {
		parts = []wire.Part{{Part: session.Part{Kind: session.PartReasoning}}}
	}
	return d.add(reply(), it, parts...)
}

// elements decodes the elements of a list. texts is the type that a text has in it.
func (d *decoder) elements(it *wire.Block, field, texts string) ([]wire.Part, error) {
	return wire.Each(jsonx.Join(it.Path, field), it.Get(field), func(path string, raw jsontext.Value) (wire.Part, error) {
		return d.element(path, raw, texts)
	})
}

// element decodes one element of a content, an output or a summary. A type that is not known is
// kept whole as data.
func (d *decoder) element(path string, raw jsontext.Value, texts string) (p wire.Part, err error) {
	e, err := wire.ParseBlock(path, raw)
	if err != nil {
		return p, err
	}
	switch e.Kind {
	case typeInputText, typeOutputText, typeText, typeSummary, typeReasoning:
		p.Kind = session.PartText
		p.Text, err = d.TextOf(&e, "text")
	case typeRefusal:
		p.Kind = session.PartRefusal
		p.Text, err = d.TextOf(&e, "refusal")
	case typeImage, typeScreenshot:
		p.Kind = session.PartImage
		attachURL(&p, e.Text("image_url"))
		p.X.FileID, p.X.Detail = e.Text("file_id"), e.Text("detail")
	case typeFile:
		p.Kind = session.PartFile
		file(&p, &e.Object)
	case typeAudio:
		p.Kind = session.PartAudio
		err = sound(&p, &e)
	default:
		d.WarnUnknown(path, e.Kind)
		return wire.Data(raw, wire.Extra{Type: e.Kind}), nil
	}
	if err != nil {
		return p, err
	}
	return p, p.Keep(path, raw, &e.Object, encodeElement(&p, texts))
}

// attachURL makes the bytes of a data URL the part's blob. Any other URL stays one, unless it is
// too long to be an address.
func attachURL(p *wire.Part, url string) {
	if !wire.AttachURL(p, url) && len(url) <= session.BlobThreshold {
		p.X.URL = url
	}
}

// file decodes {file_id}, {file_url} or {filename, file_data}: a data URL, or bare base64.
func file(p *wire.Part, o *jsonx.Object) {
	p.X.FileID, p.X.URL, p.X.Name = o.Text("file_id"), o.Text("file_url"), o.Text("filename")
	text := o.Text("file_data")
	if wire.AttachURL(p, text) {
		return
	}
	if data, ok := wire.Base64(text); ok {
		p.X.MediaType, _, _ = mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(p.X.Name)))
		if filepath.Ext(p.X.Name) == ".pdf" || p.X.MediaType == "" {
			p.X.MediaType = "application/pdf" // what the API takes bare base64 for
		}
		wire.Attach(&p.Part, wire.Blob(p.X.MediaType, data))
	}
}

// sound decodes {input_audio: {data, format}}, or the {audio_url} that Codex writes.
func sound(p *wire.Part, e *wire.Block) error {
	if jsonx.KindOf(e.Get(typeAudio)) != '{' {
		p.X.Field = "audio_url"
		attachURL(p, e.Text(p.X.Field))
		return nil
	}
	inner, err := jsonx.ParseObject(jsonx.Join(e.Path, typeAudio), e.Get(typeAudio))
	if err != nil {
		return err
	}
	if data, ok := wire.Base64(inner.Text("data")); ok {
		p.X.MediaType = wire.SoundType(inner.String("format"))
		wire.Attach(&p.Part, wire.Blob(p.X.MediaType, data))
	}
	return nil
}

// call decodes an item that calls a tool.
func (d *decoder) call(it *wire.Block, kind string, spec callSpec) error {
	p := wire.Part{Part: session.Part{Kind: session.PartToolCall, ToolName: spec.tool}}
	var err error
	if p.CallID, err = d.callID(it, spec.needsID); err != nil {
		return err
	}
	if kind == itemCustomCall {
		p.X.Type = typeCustom
	}
	if id := it.String("id"); kind == itemLocalShellCall && id != "" {
		d.shells[id] = p.CallID
	}
	if err := d.nameAndArguments(it, spec, &p); err != nil {
		return err
	}
	return d.add(reply(), it, p)
}

// callID reads call_id.
func (d *decoder) callID(it *wire.Block, needed bool) (string, error) {
	if !needed && jsonx.IsNull(it.Get("call_id")) {
		return "", nil
	}
	return d.TextOf(it, "call_id")
}

// nameAndArguments reads what a call calls. The arguments are the bytes of the wire: a string's
// text, or the whole value where it is no string.
func (d *decoder) nameAndArguments(it *wire.Block, spec callSpec, p *wire.Part) (err error) {
	if spec.tool == "" {
		if p.ToolName, err = d.TextOf(it, "name"); err != nil {
			return err
		}
	}
	raw := it.Get(spec.arguments)
	switch kind := jsonx.KindOf(raw); {
	case kind == 'n':
	case !spec.text, kind == '{', kind == '[': // some servers give the object itself
		p.Arguments = string(raw)
	default:
		p.Arguments, err = d.TextOf(it, spec.arguments)
	}
	return err
}

// output decodes the item of a tool's result. Its first text is the result's; other elements
// follow under the same call id.
func (d *decoder) output(it *wire.Block, kind string) error {
	p := wire.Part{Part: session.Part{Kind: session.PartToolResult, ToolName: outputTools[kind]}}
	var err error
	switch needed := kind == itemFunctionOutput || kind == itemCustomOutput; {
	case kind == itemLocalShellOutput: // what it says of ids stays in the item
		p.CallID = d.shellOf(&it.Object)
	case needed && jsonx.IsNull(it.Get("call_id")) && it.Has("call_id"): // Codex writes null
	default:
		if p.CallID, err = d.callID(it, needed || kind == itemComputerOutput); err != nil {
			return err
		}
	}
	if p.ToolName == "" {
		p.ToolName = it.String("name") // some programs say it; it stays in the item
	}
	if status := it.String("status"); kind == itemApplyPatchOutput && (status == "failed" || status == "completed") {
		p.IsError = new(status == "failed")
	}
	parts := []wire.Part{p}
	switch kind {
	case itemComputerOutput:
		parts, err = d.screenshot(it, p)
	case itemShellOutput:
		parts[0].Text, parts[0].X.Shape = shellText(it.Get("output")), wire.ShapeAbsent // it stays in the item
	case itemToolSearchOutput:
		parts[0].X.Shape = wire.ShapeAbsent
	default:
		parts, err = d.result(it, p)
	}
	if err != nil {
		return err
	}
	return d.add(wire.NewMessage(Name, session.Tool, session.ByTool), it, parts...)
}

// shellOf returns the call id that the output of a local shell answers. By the API's reference
// its id is that of the call; some take that for the id of the call's item, which may be of an
// earlier append: then it is matched by name.
func (d *decoder) shellOf(o *jsonx.Object) string {
	if id := o.String("call_id"); id != "" {
		return id
	}
	id := o.String("id")
	if call, known := d.shells[id]; known {
		return call
	}
	if strings.HasPrefix(id, "lsh_") {
		return session.MadeCallID + id
	}
	return id
}

// result decodes an output that is a string or an array of elements.
func (d *decoder) result(it *wire.Block, p wire.Part) ([]wire.Part, error) {
	output := it.Get("output")
	// older programs wrote objects; it stays in the item
	if kind := jsonx.KindOf(output); kind != 'n' && kind != '"' && kind != '[' {
		p.Text, p.X.Shape = string(output), wire.ShapeAbsent
		return []wire.Part{p}, nil
	}
	var err error
	switch p.X.Shape, p.Text, err = d.Content(it.Path, "output", output); p.X.Shape {
	case wire.ShapeEmpty:
		p.X.Shape = wire.ShapeString
	case wire.ShapeArray:
		var elements []wire.Part
		if elements, err = d.elements(it, "output", typeInputText); err == nil && len(elements) > 0 {
			p.X.Shape = ""
			return wire.ResultFirst(p, elements, wire.FirstText(elements), true), nil
		}
	}
	return []wire.Part{p}, err
}

// screenshot decodes an output that is one image.
func (d *decoder) screenshot(it *wire.Block, p wire.Part) ([]wire.Part, error) {
	output := it.Get("output")
	if p.X.Shape = wire.ShapeAbsent; jsonx.KindOf(output) != '{' {
		return []wire.Part{p}, nil // it stays as it is
	}
	image, err := d.element(jsonx.Join(it.Path, "output"), output, typeInputText)
	image.CallID, image.X.Of = p.CallID, "output"
	return []wire.Part{p, image}, err
}

// shellText returns what a shell's output says, for reading: each command's stdout and stderr.
func shellText(raw jsontext.Value) string {
	commands, err := jsonx.ParseArray("output", raw)
	if err != nil {
		return plainText(raw)
	}
	var texts []string
	for _, c := range commands {
		if o, err := jsonx.ParseObject("output", c); err == nil {
			for _, f := range [...]string{"stdout", "stderr"} {
				if text := o.String(f); text != "" {
					texts = append(texts, text)
				}
			}
		}
	}
	return strings.Join(texts, "\n")
}

// plainText returns a value for reading: a string's text, anything else as it stands.
func plainText(raw []byte) string {
	switch jsonx.KindOf(raw) {
	case 'n':
		return ""
	case '"':
		text, _ := jsonx.Text(raw)
		return text
	}
	return string(raw)
}

// hosted decodes an item of a tool that the provider ran: a call and, under its id, the result,
// whose text is for reading.
func (d *decoder) hosted(it *wire.Block, kind string, spec callSpec) error {
	call := wire.Part{Part: session.Part{Kind: session.PartToolCall, ToolName: spec.tool}}
	call.CallID = it.String("id")
	if call.CallID == "" { // Codex leaves it out; the result must find its call
		call.CallID = fmt.Sprintf("%s_%d", spec.tool, d.calls())
	}
	if err := d.nameAndArguments(it, spec, &call); err != nil {
		return err
	}
	result := wire.Part{
		Part: session.Part{Kind: session.PartToolResult, ToolName: call.ToolName, CallID: call.CallID},
		X:    wire.Extra{Made: true},
	}
	parts := []wire.Part{call, result}
	switch kind {
	case itemWebSearchCall:
		if action, err := jsonx.ParseObject("action", []byte(call.Arguments)); err == nil {
			parts[1].Text = listText(action.Get("sources"), "url")
		}
	case itemFileSearchCall:
		parts[1].Text = listText(it.Get("results"), "text")
	case itemInterpreterCall:
		parts[1].Text = listText(it.Get("outputs"), "logs")
	case itemImageCall:
		mediaType := "image/png"
		if format := it.String("output_format"); format != "" {
			mediaType = "image/" + format
		}
		image := wire.Part{
			Part: session.Part{Kind: session.PartImage, CallID: call.CallID},
			X:    wire.Extra{Field: "result", Media: wire.Media{MediaType: mediaType}},
		}
		if wire.AttachBase64(&image, it.Get("result")) {
			parts = append(parts, image)
		}
	case itemMCPCall:
		mcpResult(it, &parts[1])
	}
	return d.add(reply(), it, parts...)
}

// calls is the number of parts of the message that an item would join, to name what has no name.
func (d *decoder) calls() int {
	if last := len(d.Messages) - 1; d.open && d.Messages[last].Role == session.Assistant {
		return len(d.Messages[last].Parts)
	}
	return 0
}

// mcpResult reads output or error. The output is the result itself and not only for reading.
func mcpResult(it *wire.Block, p *wire.Part) {
	if raw := it.Get("error"); !jsonx.IsNull(raw) {
		failed := true
		p.Text, p.IsError = plainText(raw), &failed
		return
	}
	text, exact := jsonx.Text(it.Get("output"))
	if p.Text = text; exact {
		p.X.Made, p.X.Field = false, "output"
	}
}

// listText returns a text field of all objects of a list, one under the other.
func listText(list []byte, field string) string {
	elements, _ := jsonx.ParseArray(field, list)
	var texts []string
	for _, e := range elements {
		if o, err := jsonx.ParseObject(field, e); err == nil {
			if text, _ := jsonx.Text(o.Get(field)); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// IsResponse tells a response object from an item: it says so, or has an output and neither
// type nor role.
func IsResponse(o *jsonx.Object) bool {
	if jsonx.KindOf(o.Get("output")) != '[' || o.Has("role") {
		return false
	}
	object := o.String("object")
	return object == "response" || !o.Has("type") && !o.Has("call_id")
}

// IsItem reports whether an entry is an item of this form by what it says itself. The content of
// a message may tell where this does not: {role, content} alone is of any form, and a typed
// reply with a list may be Anthropic's.
func IsItem(o *jsonx.Object) bool {
	kind := o.String("type")
	switch kind {
	case itemReasoning, itemReference, itemCompaction, itemMCPTools, itemMCPRequest, itemMCPResponse:
		return true
	case itemMessage:
		return o.String("role") != "assistant" || jsonx.KindOf(o.Get("content")) == '"' || o.Has("status") || o.Has("phase")
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_output")
}
