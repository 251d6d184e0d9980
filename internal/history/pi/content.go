package pi

import (
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
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
		text, exact := jsonx.Text(raw)
		if text == "" {
			return nil, shapeString
		}
		part := session.TextPart(text)
		if !exact {
			part.Extra = jsonx.Object{{Key: "text", Value: raw}}.Column()
		}
		return []session.Part{part}, shapeString
	case raw[0] != '[':
		return []session.Part{history.RawPart("block", raw)}, shapeOther
	}
	blocks, _ := jsonx.ReadArray(raw)
	for i, block := range blocks {
		if i == session.MaxParts-1 && len(blocks) > session.MaxParts {
			return append(parts, history.RawPart("blocks", jsonx.Array(blocks[i:]))), ""
		}
		o, _ := jsonx.ReadFields(block)
		parts = append(parts, partOf(block, o))
	}
	return parts, ""
}

// partOf turns one block into a part. What a column does not hold exactly stays in extra.
func partOf(block []byte, o jsonx.Object) session.Part {
	if len(o) == 0 {
		return history.RawPart("block", block)
	}
	rest := history.Taker{Object: o}
	var part session.Part
	switch o.String("type") {
	case "text":
		part = session.Part{Kind: session.PartText, Text: rest.Text("text")}
	case "thinking":
		part = session.Part{Kind: session.PartReasoning, Text: rest.Text("thinking")}
	case "toolCall":
		part = session.Part{
			Kind: session.PartToolCall, CallID: rest.Text("id"), ToolName: rest.Text("name"),
			Arguments: string(rest.Take("arguments")),
		}
	case "image":
		data, ok := rest.Base64("data")
		if !ok {
			return history.RawPart("block", block)
		}
		part = session.Part{Kind: session.PartImage}
		part.Blob = &session.Blob{MediaType: rest.Text("mimeType"), Data: data, Size: int64(len(data))}
	default:
		return history.RawPart("block", block)
	}
	rest.Take("type")
	part.Extra = rest.Column()
	return part
}
