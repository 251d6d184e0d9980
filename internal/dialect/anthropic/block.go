package anthropic

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// block is a block of content whose fields are read, and its type.
type block struct {
	path   string
	raw    json.RawMessage
	kind   string
	fields wire.Object
}

func (d *decoder) open(path string, raw json.RawMessage) (block, error) {
	o, err := wire.ParseObject(path, raw)
	if err != nil {
		return block{}, err
	}
	kind, exact := wire.TextOf(o.Get("type"))
	if kind == "" {
		return block{}, wire.Errorf(session.Invalid, wire.Join(path, "type"), "must say what the block is, not be %s", wire.Describe(o.Get("type")))
	}
	if exact {
		o.Drop("type")
	}
	return block{path, raw, kind, o}, nil
}

// nested is the role of what stands in a result's content.
const nested session.Role = ""

// block reads one block. A type that is not known, or not known in an entry of that role, is
// kept whole as data.
func (d *decoder) block(b *block, role session.Role) (session.Part, error) {
	var p session.Part
	var x partExtra
	var err error
	reply := role == session.Assistant
	switch {
	case b.kind == typeText:
		p.Kind = session.PartText
		p.Text, err = d.take(&b.fields, b.path, typeText)
	case b.kind == typeImage, b.kind == typeDocument:
		p.Kind = session.PartImage
		if b.kind == typeDocument {
			p.Kind = session.PartFile
		}
		err = d.source(b, &p, &x)
	case b.kind == typeSearchResult:
		p.Kind, x.Type = session.PartText, b.kind
		p.Text = readable(b.fields)
	case b.kind == typeContainerUpload:
		p.Kind, x.Type = session.PartFile, b.kind
		x.FileID = exactText(b.fields, "file_id")
	case b.kind == typeThinking && reply:
		p.Kind = session.PartReasoning
		p.Text, err = d.take(&b.fields, b.path, typeThinking)
	case b.kind == typeRedacted && reply:
		p.Kind, x.Type = session.PartReasoning, b.kind
	case b.kind == typeToolUse && reply, isServerCall(b.kind) && reply:
		p.Kind = session.PartToolCall
		err = d.call(b, &p, &x)
	case isServerResult(b.kind) && reply:
		p.Kind, x.Type = session.PartToolResult, b.kind
		err = d.serverResult(b, &p)
	case b.kind == typeToolReference && role == nested:
		return dataPart(b.raw, partExtra{Type: b.kind}), nil
	default:
		d.warn(b.path, "has the type %q, which is not known here: kept for export, not sent", wire.Clip(b.kind))
		return dataPart(b.raw, partExtra{Type: b.kind}), nil
	}
	if err == nil {
		err = wire.FitsExtra(b.path, &b.fields)
	}
	if err != nil {
		return p, err
	}
	x.Fields = b.fields
	x.store(&p)
	return p, nil
}

// call reads {id, name, input}. The bytes of an input are the arguments as they came.
func (d *decoder) call(b *block, p *session.Part, x *partExtra) (err error) {
	if b.kind != typeToolUse {
		x.Type = b.kind
	}
	if p.CallID, err = d.take(&b.fields, b.path, "id"); err != nil {
		return err
	}
	if p.ToolName, err = d.take(&b.fields, b.path, "name"); err != nil {
		return err
	}
	raw := b.fields.Get("input")
	switch wire.KindOf(raw) {
	case '{':
		p.Arguments = string(raw)
		b.fields.Drop("input")
	case '"': // of a stream that was not put together
		text, exact := d.text(wire.Join(b.path, "input"), raw)
		if p.Arguments = text; exact {
			x.Shape = shapeText
			b.fields.Drop("input")
		}
	case 'n':
		if raw == nil {
			x.Shape = shapeAbsent
		}
	default:
		p.Arguments = string(raw) // stays raw, too
	}
	return nil
}

// result reads a tool_result: its first text is the result's, the other elements of its
// content follow under the same call id.
func (d *decoder) result(b *block) (group, error) {
	p := session.Part{Kind: session.PartToolResult}
	var x partExtra
	var err error
	if p.CallID, err = d.take(&b.fields, b.path, "tool_use_id"); err != nil {
		return nil, err
	}
	switch raw := b.fields.Get("is_error"); wire.KindOf(raw) {
	case 't', 'f':
		failed := wire.KindOf(raw) == 't'
		p.IsError = &failed
		b.fields.Drop("is_error")
	case 'n':
	default:
		return nil, wire.Errorf(session.Invalid, wire.Join(b.path, "is_error"), "must be true or false, not %s", wire.Describe(raw))
	}
	path, raw := wire.Join(b.path, "content"), b.fields.Get("content")
	g := group{p}
	switch wire.KindOf(raw) {
	case 'n':
		x.Shape = shapeNull
		if raw == nil {
			x.Shape = shapeAbsent
		}
		b.fields.Drop("content")
	case '"':
		text, exact := d.text(path, raw)
		if g[0].Text = text; exact {
			b.fields.Drop("content")
		}
	case '[':
		x.Shape = shapeArray
		b.fields.Drop("content")
		if g, err = d.resultContent(path, raw, g, &x); err != nil {
			return nil, err
		}
	default:
		return nil, wire.Errorf(session.Invalid, path, "must be a string or an array, not %s", wire.Describe(raw))
	}
	if err := wire.FitsExtra(b.path, &b.fields); err != nil {
		return nil, err
	}
	// The fields of the text stand beside those of the block that the part also is.
	x.Source, x.Fields = x.Fields, b.fields
	x.store(&g[0])
	return g, nil
}

// resultContent reads the content of a result. x gets the place of its text, and that text's
// own fields.
func (d *decoder) resultContent(path string, raw json.RawMessage, g group, x *partExtra) (group, error) {
	blocks, err := elements(path, raw)
	if err != nil {
		return nil, err
	}
	x.At = -1
	for i, r := range blocks {
		b, err := d.open(wire.Index(path, i), r)
		if err != nil {
			return nil, err
		}
		p, err := d.block(&b, nested)
		if err != nil {
			return nil, err
		}
		if x.At < 0 && b.kind == typeText {
			x.At, x.Fields = i, b.fields
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
func (d *decoder) serverResult(b *block, p *session.Part) (err error) {
	if p.CallID, err = d.take(&b.fields, b.path, "tool_use_id"); err != nil {
		return err
	}
	content := b.fields.Get("content")
	failed := string(b.fields.Get("is_error")) == "true"
	if o, err := wire.ParseObject(b.path, content); err == nil {
		kind, _ := wire.TextOf(o.Get("type"))
		failed = failed || strings.HasSuffix(kind, "_error")
	}
	if failed {
		p.IsError = &failed
	}
	p.Text = readable(b.fields)
	return nil
}

// answered tells whether an entry holds the result of a call that the provider ran.
func answered(call *block, entry []block) bool {
	id := string(call.fields.Get("id"))
	for i := range entry {
		if isServerResult(entry[i].kind) && string(entry[i].fields.Get("tool_use_id")) == id {
			return true
		}
	}
	return false
}

// readable gives the texts of a value for people to read, one under the other: what a search
// found, what a program printed. Ids, encrypted contents and bytes are none.
func readable(o wire.Object) string {
	var lines []string
	collect(o, &lines)
	return strings.Join(lines, "\n")
}

func collect(o wire.Object, lines *[]string) {
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
			collect(o, lines)
		}
	case '[':
		list, _ := wire.ParseArray("", raw)
		for _, e := range list {
			collectValue(e, lines)
		}
	}
}

// exactText gives a field that is a string which a column can hold, else "".
func exactText(o wire.Object, field string) string {
	text, exact := wire.TextOf(o.Get(field))
	if !exact {
		return ""
	}
	return text
}
