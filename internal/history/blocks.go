package history

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Blocks turns a content into parts: a text, or a list of texts and blocks in the words of Anthropic, OpenAI and the
// AI SDK, which most programs use. A block of another kind is kept as it is.
func Blocks(content jsontext.Value) (parts []session.Part) {
	switch jsonx.KindOf(content) {
	case '[':
		values, _ := jsonx.ReadArray(content)
		for _, v := range values {
			parts = append(parts, Blocks(v)...)
		}
	case '"':
		if text, _ := jsonx.Text(content); text != "" {
			parts = append(parts, session.TextPart(text))
		}
	case '{':
		o, _ := jsonx.ReadFields(content)
		parts = append(parts, block(o, content))
	}
	return parts
}

// TextOf joins the texts of a content, without what the model thought and without calls and results.
func TextOf(content jsontext.Value) string {
	m := session.Message{Parts: Blocks(content)}
	return m.Text()
}

func block(o jsonx.Object, raw jsontext.Value) session.Part {
	switch o.String("type") {
	case "text", "input_text", "output_text":
		return session.TextPart(o.String("text"))
	case "thinking", "reasoning", "think":
		p := session.Part{Kind: session.PartReasoning, Text: firstText(o, "thinking", "text", "think", "content")}
		p.Extra = o.Only("signature", "encrypted").Column()
		return p
	case "redacted_thinking", "redacted-reasoning":
		return session.Part{Kind: session.PartReasoning, Extra: o.Only("data").Column()}
	case "tool_use", "tool-call":
		return CallPart(firstText(o, "id", "toolCallId"), firstText(o, "name", "toolName"), o.First("input", "args"))
	case "tool_result", "tool-result":
		failed := cmp.Or(string(o.Get("is_error")), string(o.Get("isError")))
		p := ResultPart(firstText(o, "tool_use_id", "toolCallId"), firstText(o, "name", "toolName"),
			ResultText(o.First("content", "result", "output")), nil)
		if failed == "true" || failed == "false" {
			p.IsError = new(failed == "true")
		}
		return p
	case "image", "image_url", "imageUrl", "input_image":
		return imageBlock(o, raw)
	}
	return RawPart("block", raw)
}

// imageBlock reads a picture: its bytes where they are in the block, else the block as it is.
func imageBlock(o jsonx.Object, raw jsontext.Value) session.Part {
	mime, data := firstText(o, "mediaType", "mimeType", "media_type"), o.String("data")
	if source := o.Inner("source"); source != nil {
		mime, data = cmp.Or(source.String("media_type"), mime), source.String("data")
	}
	for _, key := range []string{"image_url", "imageUrl", "image"} {
		url := cmp.Or(o.String(key), o.Inner(key).String("url"))
		if _, media, bytes, ok := wire.DataURL(url); ok {
			return BlobPart(media, bytes)
		}
		if bytes, err := hex.DecodeString(o.Inner(key).String("hex")); err == nil && len(bytes) > 0 {
			return BlobPart(cmp.Or(mime, "image/png"), bytes)
		}
		data = cmp.Or(data, url)
	}
	if bytes, ok := wire.Base64(data); ok {
		return BlobPart(cmp.Or(mime, "image/png"), bytes)
	}
	return RawPart("block", raw)
}

// BlobPart holds the bytes of a file.
func BlobPart(mime string, data []byte) session.Part {
	p := session.Part{Kind: MediaKind(mime)}
	wire.Attach(&p, wire.Blob(Plain(mime), data))
	return p
}

// CallPart is a call of a tool. Arguments may be JSON, or a text that holds JSON.
func CallPart(id, name string, arguments jsontext.Value) session.Part {
	text := string(arguments)
	if jsonx.KindOf(arguments) == '"' {
		text, _ = jsonx.Text(arguments)
	}
	return session.Part{Kind: session.PartToolCall, CallID: id, ToolName: name, Arguments: text}
}

// ResultPart is the result of a call; failed is nil where that is not known.
func ResultPart(id, name, text string, failed *bool) session.Part {
	return session.Part{Kind: session.PartToolResult, CallID: id, ToolName: name, Text: text, IsError: failed}
}

// ResultText returns what a result says: a text, the texts of blocks, else the JSON as it is.
func ResultText(v jsontext.Value) string {
	switch jsonx.KindOf(v) {
	case '"':
		text, _ := jsonx.Text(v)
		return text
	case '[':
		var texts []string
		for _, p := range Blocks(v) {
			if p.Kind != session.PartText {
				return string(v)
			}
			texts = append(texts, p.Text)
		}
		return strings.Join(texts, "\n")
	}
	if jsonx.IsNull(v) {
		return ""
	}
	return string(v)
}

func firstText(o jsonx.Object, keys ...string) string {
	for _, key := range keys {
		if text := o.String(key); text != "" {
			return text
		}
	}
	return ""
}
