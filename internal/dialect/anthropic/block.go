package anthropic

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// block is a block of content, its type and all of it as it came.
type block struct {
	wire.Fields
	kind string
	raw  json.RawMessage
}

func open(e wire.Value) (block, error) {
	o, err := e.Fields()
	if err != nil {
		return block{}, err
	}
	kind, exact := wire.TextOf(o.Get("type"))
	if kind == "" {
		return block{}, o.Field("type").Errorf(session.Invalid, "must say what the block is, not be %s", wire.Describe(o.Get("type")))
	}
	if exact {
		o.Drop("type")
	}
	return block{o, kind, e.Raw}, nil
}

// nested is the role of what stands in a result's content.
const nested session.Role = ""

// read reads one block. A type that is not known, or not known in an entry of that role, is
// kept whole as data.
func (b *block) read(role session.Role) (session.Part, error) {
	var p session.Part
	var x partExtra
	var err error
	reply := role == session.Assistant
	switch {
	case b.kind == typeText:
		p.Kind = session.PartText
		p.Text, err = b.Take(typeText)
	case b.kind == typeImage, b.kind == typeDocument:
		p.Kind = session.PartImage
		if b.kind == typeDocument {
			p.Kind = session.PartFile
		}
		err = b.source(&p, &x)
	case b.kind == typeSearchResult:
		p.Kind, x.Type = session.PartText, b.kind
		p.Text = readable(&b.Object)
	case b.kind == typeContainerUpload:
		p.Kind, x.Type = session.PartFile, b.kind
		x.FileID = exactText(&b.Object, "file_id")
	case b.kind == typeThinking && reply:
		p.Kind = session.PartReasoning
		p.Text, err = b.Take(typeThinking)
	case b.kind == typeRedacted && reply:
		p.Kind, x.Type = session.PartReasoning, b.kind
	case b.kind == typeToolUse && reply, isServerCall(b.kind) && reply:
		p.Kind = session.PartToolCall
		err = b.call(&p, &x)
	case isServerResult(b.kind) && reply:
		p.Kind, x.Type = session.PartToolResult, b.kind
		err = b.serverResult(&p)
	case b.kind == typeToolReference && role == nested:
		return dataPart(b.raw, partExtra{Type: b.kind}), nil
	default:
		b.Warn("has the type %q, which is not known here: kept for export, not sent", wire.Clip(b.kind))
		return dataPart(b.raw, partExtra{Type: b.kind}), nil
	}
	if err == nil {
		err = b.Fits()
	}
	if err != nil {
		return p, err
	}
	x.Fields = b.Object
	x.store(&p)
	return p, nil
}

// call reads {id, name, input}. The bytes of an input are the arguments as they came.
func (b *block) call(p *session.Part, x *partExtra) (err error) {
	if b.kind != typeToolUse {
		x.Type = b.kind
	}
	if p.CallID, err = b.Take("id"); err != nil {
		return err
	}
	if p.ToolName, err = b.Take("name"); err != nil {
		return err
	}
	input := b.Value("input")
	switch input.Kind() {
	case '{':
		p.Arguments = string(input.Raw)
		b.Drop("input")
	case '"': // of a stream that was not put together
		text, exact := input.Text()
		if p.Arguments = text; exact {
			x.Shape = shapeText
			b.Drop("input")
		}
	case 'n':
		if input.Raw == nil {
			x.Shape = shapeAbsent
		}
	default:
		p.Arguments = string(input.Raw) // stays raw, too
	}
	return nil
}

// result reads a tool_result: its first text is the result's, the other elements of its
// content follow under the same call id.
func (b *block) result() (group, error) {
	p := session.Part{Kind: session.PartToolResult}
	var x partExtra
	var err error
	if p.CallID, err = b.Take("tool_use_id"); err != nil {
		return nil, err
	}
	switch raw := b.Get("is_error"); wire.KindOf(raw) {
	case 't', 'f':
		failed := wire.KindOf(raw) == 't'
		p.IsError = &failed
		b.Drop("is_error")
	case 'n':
	default:
		return nil, b.Value("is_error").Not("true or false")
	}
	content := b.Value("content")
	g := group{p}
	switch content.Kind() {
	case 'n':
		x.Shape = shapeNull
		if content.Raw == nil {
			x.Shape = shapeAbsent
		}
		b.Drop("content")
	case '"':
		text, exact := content.Text()
		if g[0].Text = text; exact {
			b.Drop("content")
		}
	case '[':
		x.Shape = shapeArray
		b.Drop("content")
		if g, err = resultContent(content, g, &x); err != nil {
			return nil, err
		}
	default:
		return nil, content.Not("a string or an array")
	}
	if err := b.Fits(); err != nil {
		return nil, err
	}
	// The fields of the text stand beside those of the block that the part also is.
	x.Source, x.Fields = x.Fields, b.Object
	x.store(&g[0])
	return g, nil
}

// resultContent reads the content of a result. x gets the place of its text, and that text's
// own fields.
func resultContent(content wire.Value, g group, x *partExtra) (group, error) {
	blocks, err := content.Elements()
	if err != nil {
		return nil, err
	}
	x.At = -1
	for i, e := range blocks {
		b, err := open(e)
		if err != nil {
			return nil, err
		}
		p, err := b.read(nested)
		if err != nil {
			return nil, err
		}
		if x.At < 0 && b.kind == typeText {
			x.At, x.Fields = i, b.Object
			g[0].Text = p.Text
			continue
		}
		p.CallID = g[0].CallID
		g = append(g, p)
	}
	return g, nil
}

// serverResult reads the result of a tool that the provider ran. Its content differs from
// tool to tool and stays as it came; the text is for reading and searching.
func (b *block) serverResult(p *session.Part) (err error) {
	if p.CallID, err = b.Take("tool_use_id"); err != nil {
		return err
	}
	content := b.Get("content")
	failed := string(b.Get("is_error")) == "true"
	if o, err := wire.ParseObject("content", content); err == nil {
		kind, _ := wire.TextOf(o.Get("type"))
		failed = failed || strings.HasSuffix(kind, "_error")
	}
	if failed {
		p.IsError = &failed
	}
	p.Text = readable(&b.Object)
	return nil
}

// answered tells whether an entry holds the result of a call that the provider ran.
func answered(call *block, entry []block) bool {
	id := string(call.Get("id"))
	for i := range entry {
		if isServerResult(entry[i].kind) && string(entry[i].Get("tool_use_id")) == id {
			return true
		}
	}
	return false
}

// readable gives the texts of a value for people to read, one under the other: what a search
// found, what a program printed. Ids, encrypted contents and bytes are none.
func readable(o *wire.Object) string {
	var lines []string
	collect(o, &lines)
	return strings.Join(lines, "\n")
}

func collect(o *wire.Object, lines *[]string) {
	if kind, _ := wire.TextOf(o.Get("type")); kind == "base64" {
		return
	}
	for _, m := range o.Members() {
		switch m.Key {
		case "title", "url", "source", "text", "stdout", "stderr", "error_code", "error_message", "data", "tool_name", "content", "tool_references", "lines":
		default:
			continue
		}
		collectValue(m.Value, lines)
	}
}

func collectValue(raw json.RawMessage, lines *[]string) {
	switch wire.KindOf(raw) {
	case '"':
		if text, _ := wire.Text(raw); text != "" {
			*lines = append(*lines, text)
		}
	case '{':
		if o, err := wire.ParseObject("", raw); err == nil {
			collect(&o, lines)
		}
	case '[':
		list, _ := wire.ParseArray("", raw)
		for _, e := range list {
			collectValue(e, lines)
		}
	}
}

// exactText gives a field that is a string which a column can hold, else "".
func exactText(o *wire.Object, field string) string {
	text, exact := wire.TextOf(o.Get(field))
	if !exact {
		return ""
	}
	return text
}
