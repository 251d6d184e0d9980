package pi

import (
	"bytes"
	"encoding/base64"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Shapes of a content that is no list of blocks.
const (
	shapeString = "string"
	shapeNull   = "null"
	shapeAbsent = "absent"
	shapeOther  = "other"
)

// contentOf turns a message's content into parts, one for each block. shape is "" for a
// list of blocks.
func contentOf(raw []byte) (parts []session.Part, shape string) {
	switch {
	case raw == nil:
		return nil, shapeAbsent
	case string(raw) == "null":
		return nil, shapeNull
	case raw[0] == '"':
		text, exact := history.Text(raw)
		if text == "" {
			return nil, shapeString
		}
		part := session.TextPart(text)
		if !exact {
			part.Extra = history.Object{{Key: "text", Raw: raw}}.JSON()
		}
		return []session.Part{part}, shapeString
	case raw[0] != '[':
		return []session.Part{rawPart("block", raw)}, shapeOther
	}
	blocks, _ := history.Elements(raw)
	for i, block := range blocks {
		if i == session.MaxParts-1 && len(blocks) > session.MaxParts {
			return append(parts, overflow(blocks[i:])), ""
		}
		o, _ := history.Fields(block)
		parts = append(parts, partOf(block, o))
	}
	return parts, ""
}

// overflow holds the blocks that are more than a message can have.
func overflow(blocks []rawJSON) session.Part {
	list := []byte{'['}
	for i, block := range blocks {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, block...)
	}
	return rawPart("blocks", append(list, ']'))
}

func rawPart(name string, raw []byte) session.Part {
	return session.Part{Kind: session.PartData, Extra: history.Object{{Key: name, Raw: raw}}.JSON()}
}

// partOf turns one block into a part. What a column does not hold exactly stays in extra.
func partOf(block []byte, o history.Object) session.Part {
	if len(o) == 0 {
		return rawPart("block", block)
	}
	rest := take(o)
	var part session.Part
	switch o.String("type") {
	case "text":
		part = session.Part{Kind: session.PartText, Text: rest.text("text")}
	case "thinking":
		part = session.Part{Kind: session.PartReasoning, Text: rest.text("thinking")}
	case "toolCall":
		part = session.Part{
			Kind: session.PartToolCall, CallID: rest.text("id"), ToolName: rest.text("name"),
			Arguments: string(rest.take("arguments")),
		}
	case "image":
		data, ok := bytesOf(o.Get("data"))
		if !ok {
			return rawPart("block", block)
		}
		part = session.Part{Kind: session.PartImage}
		part.Blob = &session.Blob{MediaType: rest.text("mimeType"), Data: data, Size: int64(len(data))}
		rest.take("data")
	default:
		return rawPart("block", block)
	}
	rest.take("type")
	part.Extra = rest.JSON()
	return part
}

// bytesOf decodes base64 that encodes to the same text again.
func bytesOf(raw []byte) ([]byte, bool) {
	if len(raw) < 3 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return nil, false
	}
	encoded := raw[1 : len(raw)-1]
	data := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	n, err := base64.StdEncoding.Strict().Decode(data, encoded)
	return data[:n], err == nil && n > 0 && base64.StdEncoding.EncodedLen(n) == len(encoded)
}

// taker gives up the fields of an object that columns hold; the rest stays for extra.
type taker struct {
	history.Taker
	message history.Object  // the line's, where that is known already
	blocks  []history.Block // and its content's
}

func take(o history.Object) taker { return taker{Taker: history.Taker{Object: o}} }

// content takes the content of a message.
func (t *taker) content() (parts []session.Part, shape string) {
	raw := t.take("content")
	if len(t.blocks) == 0 {
		return contentOf(raw)
	}
	parts = make([]session.Part, 0, len(t.blocks))
	for _, block := range t.blocks {
		parts = append(parts, partOf(block.Raw, block.Object))
	}
	return parts, ""
}

func (t *taker) take(key string) []byte { return t.Take(key) }

// text takes a field that is a string. One that text cannot hold exactly stays as well, and
// so does an empty one, since an empty column says that there was none.
func (t *taker) text(key string) string { return t.Taker.Text(key) }

// flag takes a field that is a boolean; or is its value when it is absent or none.
func (t *taker) flag(key string, or bool) bool {
	switch string(t.Get(key)) {
	case "true":
		t.take(key)
		return true
	case "false":
		t.take(key)
		return false
	}
	return or
}
