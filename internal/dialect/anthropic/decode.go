// Package anthropic is the wire form of Anthropic's Messages API.
//
// An entry of `messages` is one session.Message and each of its blocks one part, in order;
// only an entry that mixes results with other blocks is two, a tool's and a user's, that
// share extra.wire.entry. A result's own content stands behind it, under its call id: the
// first text is the result's. The fields that no column holds are in extra.rest, and win over the
// columns on export.
package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Name is the dialect's name.
const Name = "anthropic"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{
		Name: Name, Decode: Decode, Export: Export, Send: Send, Rules: rules,
		CacheReach: cacheReach,
	}
}

// shapeText is the shape of a call's input that is a string, and of a document's source that is
// plain text.
const shapeText = "text"

// Types of a source.
const (
	sourceBase64  = "base64"
	sourceText    = "text"
	sourceContent = "content"
	sourceURL     = "url"
	sourceFile    = "file"
)

// Types of blocks. The tools that the provider runs itself have types of their own, which
// end alike: see isServerCall and isServerResult.
const (
	typeText            = "text"
	typeImage           = "image"
	typeDocument        = "document"
	typeSearchResult    = "search_result"
	typeContainerUpload = "container_upload"
	typeThinking        = "thinking"
	typeRedacted        = "redacted_thinking"
	typeCompaction      = "compaction"
	typeToolUse         = "tool_use"
	typeToolResult      = "tool_result"
	typeToolReference   = "tool_reference"
	typeServerToolUse   = "server_tool_use"
	typeMCPToolUse      = "mcp_tool_use"
	typeMCPToolResult   = "mcp_tool_result"
	typeWebSearchResult = "web_search_tool_result"
	typeWebFetchResult  = "web_fetch_tool_result"
)

// isServerCall reports whether a block calls a tool that the provider runs.
func isServerCall(kind string) bool {
	return kind != typeToolUse && strings.HasSuffix(kind, "_tool_use")
}

// isServerResult reports whether a block is the result of a tool that the provider ran.
func isServerResult(kind string) bool {
	return kind != typeToolResult && strings.HasSuffix(kind, "_tool_result")
}

// Decode reads entries of a request's messages, or whole replies {id, type: "message", role,
// model, content, stop_reason, usage}. Codes: Malformed, Invalid, TooLarge.
func Decode(raw []jsontext.Value) (wire.Decoded, error) {
	var d decoder
	return d.Read(raw, d.entry)
}

type decoder struct{ wire.Reader }

// entry decodes an entry into the message, or the two, that it becomes. Source: Anthropic's API
// reference, messages.
func (d *decoder) entry(path string, raw jsontext.Value) error {
	o, err := jsonx.ParseObject(path, raw)
	if err != nil {
		return err
	}
	m, err := d.role(path, &o)
	if err != nil {
		return err
	}
	m.X.ID, m.X.StopReason, m.X.Usage = o.Get("id"), o.Get("stop_reason"), o.Get("usage")
	if m.Role == session.Assistant {
		m.Model = o.String("model") // stays in rest, too: the append may say another one
		m.Finish = finish(o.String("stop_reason"))
	}
	groups, err := d.content(path, o.Get("content"), &m)
	if err != nil {
		return err
	}
	user := split(&m, groups, raw)
	large, err := m.Keep(path, o, encode(&m, user))
	if err != nil {
		return err
	}
	m.Parts = append(large, m.Parts...) // first: behind a result they would belong to it
	d.Messages = append(d.Messages, m)
	if user != nil { // it has fewer blocks than the entry, each of them one part
		d.Messages = append(d.Messages, *user)
	}
	return wire.Holds(path, len(m.Parts))
}

func (d *decoder) role(path string, o *jsonx.Object) (wire.Message, error) {
	role, err := d.StringOf(path, "role", o.Get("role"))
	if err != nil {
		return wire.Message{}, err
	}
	switch role {
	case roleUser:
		return wire.NewMessage(Name, session.User, session.Person), nil
	case roleAssistant:
		return wire.NewMessage(Name, session.Assistant, session.Model), nil
	case roleSystem: // in the middle of a conversation, newer models take it
		return wire.NewMessage(Name, session.System, session.Program), nil
	}
	return wire.Message{}, jsonx.Errorf(session.Invalid, jsonx.Join(path, "role"),
		"is %q: it must be one of user, assistant, system", jsonx.Clip(role))
}

// finish translates a stop_reason.
func finish(reason string) session.Finish {
	switch reason {
	case "end_turn", "stop_sequence":
		return session.FinishStop
	case "tool_use":
		return session.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return session.FinishLength
	case "refusal":
		return session.FinishRefusal
	case "pause_turn", "compaction":
		return session.FinishPaused
	}
	return ""
}

// group is the parts that one block became: a result has its content behind it.
type group []wire.Part

func (g group) isResult() bool { return g[0].Kind == session.PartToolResult }

// content decodes the content of an entry, block by block.
func (d *decoder) content(path string, raw jsontext.Value, m *wire.Message) ([]group, error) {
	shape, text, err := d.Content(path, "content", raw)
	switch m.X.Shape = shape; {
	case shape == wire.ShapeString:
		m.X.Shape = ""
		return []group{{{Part: session.TextPart(text)}}}, err
	case err != nil || shape != wire.ShapeArray:
		return nil, err
	}
	blocks, err := wire.Each(jsonx.Join(path, "content"), raw, wire.ParseBlock)
	if err != nil {
		return nil, err
	}
	groups := make([]group, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		if b.Kind == typeToolResult && m.Role == session.User {
			groups[i], err = d.result(b)
		} else {
			groups[i], err = d.spoken(b, blocks, m.Role)
		}
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// spoken decodes a block that is no result.
func (d *decoder) spoken(b *wire.Block, entry []wire.Block, role session.Role) (group, error) {
	switch {
	case b.Kind == typeToolResult:
		return nil, jsonx.Errorf(session.Invalid, b.Path,
			"is a tool_result in an entry of role %s: results stand in a user's", role)
	case b.Kind == typeToolUse && role != session.Assistant:
		return nil, jsonx.Errorf(session.Invalid, b.Path,
			"is a tool_use in an entry of role %s: only an assistant calls tools", role)
	case isServerCall(b.Kind) && role == session.Assistant && !answered(b, entry):
		return group{wire.Data(b.Raw, wire.Extra{Type: b.Kind})}, nil // the provider answers it
	}
	p, err := d.block(b, role)
	return group{p}, err
}

// answered reports whether an entry holds the result of a call that the provider ran.
func answered(call *wire.Block, entry []wire.Block) bool {
	return slices.ContainsFunc(entry, func(b wire.Block) bool {
		return isServerResult(b.Kind) && string(b.Get("tool_use_id")) == string(call.Get("id"))
	})
}

// nested is the role of a block in a result's content.
const nested session.Role = ""

// block decodes one block. A type that is not known, or not known in an entry of that role, is
// kept whole as data.
func (d *decoder) block(b *wire.Block, role session.Role) (p wire.Part, err error) {
	reply := role == session.Assistant
	switch {
	case b.Kind == typeText:
		p.Kind = session.PartText
		p.Text, err = d.TextOf(b, "text")
	case b.Kind == typeImage, b.Kind == typeDocument:
		p.Kind = session.PartImage
		if b.Kind == typeDocument {
			p.Kind = session.PartFile
		}
		err = source(b, &p)
	case b.Kind == typeSearchResult:
		p.Kind, p.X.Type = session.PartText, b.Kind
		p.Text = readable(&b.Object)
	case b.Kind == typeContainerUpload:
		p.Kind, p.X.Type = session.PartFile, b.Kind
		p.X.FileID = b.Text("file_id")
	case b.Kind == typeThinking && reply:
		p.Kind, p.X.Signature = session.PartReasoning, b.Get("signature")
		p.Text, err = d.TextOf(b, "thinking")
	case b.Kind == typeRedacted && reply:
		p.Kind, p.X.Type, p.X.Data = session.PartReasoning, b.Kind, b.Get("data")
	case b.Kind == typeToolUse && reply, isServerCall(b.Kind) && reply:
		err = d.call(b, &p)
	case isServerResult(b.Kind) && reply:
		err = d.serverResult(b, &p)
	case b.Kind == typeToolReference && role == nested, b.Kind == typeCompaction && reply:
		return wire.Data(b.Raw, wire.Extra{Type: b.Kind}), nil
	default:
		d.Warn(b.Path, "has the type %q, which is not known here: kept for export, not sent", jsonx.Clip(b.Kind))
		return wire.Data(b.Raw, wire.Extra{Type: b.Kind}), nil
	}
	if err != nil {
		return p, err
	}
	return p, p.Keep(b.Path, b.Raw, &b.Object, encodeBlock(&p))
}

// source decodes the source of an image or a document. Bytes, and the text of a document that is
// plain text, become the part's blob where that gives them back exactly.
func source(b *wire.Block, p *wire.Part) error {
	o, err := jsonx.ParseObject(jsonx.Join(b.Path, "source"), b.Get("source"))
	if err != nil {
		return err
	}
	p.X.MediaType, p.X.Name = o.Text("media_type"), b.Text("title")
	switch o.String("type") {
	case sourceBase64:
		wire.AttachBase64(p, o.Get("data"))
	case sourceText:
		if text := o.Text("data"); text != "" {
			wire.Attach(&p.Part, wire.Blob(p.X.MediaType, []byte(text)))
			p.X.Shape = shapeText
		}
	case sourceContent:
		if text := readable(&o); len(text) <= session.BlobThreshold { // the blob is for bytes
			p.Text = text
		}
	case sourceURL:
		p.X.URL = o.Text("url")
	case sourceFile:
		p.X.FileID = o.Text("file_id")
	}
	return nil
}

// call decodes {id, name, input}. The bytes of an input are the arguments as they came.
func (d *decoder) call(b *wire.Block, p *wire.Part) (err error) {
	p.Kind = session.PartToolCall
	if b.Kind != typeToolUse {
		p.X.Type = b.Kind
	}
	if p.CallID, err = d.TextOf(b, "id"); err != nil {
		return err
	}
	if p.ToolName, err = d.TextOf(b, "name"); err != nil {
		return err
	}
	switch input := b.Get("input"); jsonx.KindOf(input) {
	case 'n':
	case '"': // of a stream that was not put together
		p.X.Shape = shapeText
		p.Arguments, err = d.TextOf(b, "input")
	default:
		p.Arguments = string(input)
	}
	return err
}

// serverResult decodes the result of a tool that the provider ran. Its content differs from
// tool to tool and stays as it came; the text is for reading and searching.
func (d *decoder) serverResult(b *wire.Block, p *wire.Part) (err error) {
	p.Kind, p.X.Type = session.PartToolResult, b.Kind
	if p.CallID, err = d.TextOf(b, "tool_use_id"); err != nil {
		return err
	}
	failed := string(b.Get("is_error")) == "true"
	if o, err := jsonx.ParseObject("content", b.Get("content")); err == nil {
		failed = failed || strings.HasSuffix(o.String("type"), "_error")
	}
	if failed {
		p.IsError = &failed
	}
	p.Text = readable(&b.Object)
	return nil
}

// result decodes a tool_result: its first text is the result's, the other elements of its
// content follow under the same call id.
func (d *decoder) result(b *wire.Block) (group, error) {
	p := wire.Part{Part: session.Part{Kind: session.PartToolResult}}
	var err error
	if p.CallID, err = d.TextOf(b, "tool_use_id"); err != nil {
		return nil, err
	}
	switch kind := jsonx.KindOf(b.Get("is_error")); kind {
	case 't', 'f':
		p.IsError = new(kind == 't')
	case 'n':
	default:
		return nil, jsonx.Errorf(session.Invalid, jsonx.Join(b.Path, "is_error"), "must be true or false, not %s",
			jsonx.Describe(b.Get("is_error")))
	}
	content := b.Get("content")
	if p.X.Shape, p.Text, err = d.Content(b.Path, "content", content); err != nil {
		return nil, err
	}
	g := group{p}
	switch p.X.Shape {
	case wire.ShapeString, wire.ShapeEmpty:
		g[0].X.Shape = ""
	case wire.ShapeArray:
		blocks, err := wire.Each(jsonx.Join(b.Path, "content"), content, wire.ParseBlock)
		if err != nil {
			return nil, err
		}
		elements := make(group, len(blocks))
		for i := range blocks {
			if elements[i], err = d.block(&blocks[i], nested); err != nil {
				return nil, err
			}
		}
		text := slices.IndexFunc(blocks, func(b wire.Block) bool { return b.Kind == typeText })
		g = wire.ResultFirst(p, elements, text, true)
		g[0].X.Text, g[0].X.Rest, g[0].X.Raw = g[0].X.Rest, jsonx.Object{}, nil
	}
	return g, g[0].Keep(b.Path, b.Raw, &b.Object, encodeResult(g))
}

// split sorts the results of a user's entry into a tool's message and the rest into a user's,
// which it returns. For any other entry all of it stays in the message.
func split(m *wire.Message, groups []group, raw jsontext.Value) (user *wire.Message) {
	var at []int
	size := 0
	for i, g := range groups {
		if size += len(g); g.isResult() && m.Role == session.User {
			at = append(at, i)
		}
	}
	if len(at) > 0 {
		m.Role, m.Origin = session.Tool, session.ByTool
	}
	if len(at) > 0 && len(at) < len(groups) {
		sum := sha256.Sum256(raw)
		id := jsonx.Quote(hex.EncodeToString(sum[:8]))
		other := wire.NewMessage(Name, session.User, session.Person)
		other.X.Shape, other.X.Wire = wire.ShapeArray, &wire.Entry{Entry: id}
		m.X.Wire = &wire.Entry{Entry: id, At: at}
		user = &other
	}
	for _, g := range groups {
		if user != nil && !g.isResult() {
			user.Parts = append(user.Parts, g...)
		} else {
			m.Parts = append(slices.Grow(m.Parts, size), g...)
		}
	}
	return user
}

// readable returns the texts of a value for people to read, one under the other: what a search
// found, what a program printed. Ids, encrypted contents and bytes are none.
func readable(o *jsonx.Object) string {
	var lines []string
	collect(o, &lines)
	return strings.Join(lines, "\n")
}

func collect(o *jsonx.Object, lines *[]string) {
	if kind := o.String("type"); kind == "base64" {
		return
	}
	for _, m := range *o {
		switch m.Key {
		case "title", "url", "source", "text", "stdout", "stderr", "error_code", "error_message", "data", "tool_name",
			"content", "tool_references", "lines":
			collectValue(jsontext.Value(m.Value), lines)
		}
	}
}

func collectValue(raw jsontext.Value, lines *[]string) {
	switch jsonx.KindOf(raw) {
	case '"':
		if text, _ := jsonx.Text(raw); text != "" {
			*lines = append(*lines, text)
		}
	case '{':
		if o, err := jsonx.ParseObject("", raw); err == nil {
			collect(&o, lines)
		}
	case '[':
		list, _ := jsonx.ParseArray("", raw)
		for _, e := range list {
			collectValue(e, lines)
		}
	}
}
