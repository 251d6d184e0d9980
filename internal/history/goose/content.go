package goose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// The types of blocks. Rule: Goose, conversation/message.rs.
const (
	blockText         = "text"
	blockImage        = "image"
	blockDocument     = "document"
	blockRequest      = "toolRequest"
	blockFrontend     = "frontendToolRequest"
	blockResponse     = "toolResponse"
	blockThinking     = "thinking"
	blockRedacted     = "redactedThinking"
	blockReasoning    = "reasoning"
	blockNotification = "systemNotification"
	blockError        = "error"
)

// partsOf decodes blocks, one part for each; the images and files of a result follow it.
func partsOf(blocks []raw) []session.Part {
	var parts []session.Part
	for i, block := range blocks {
		made := partOf(block)
		if len(parts)+len(made) > session.MaxParts-1 && (i < len(blocks)-1 || len(parts)+len(made) > session.MaxParts) {
			return append(parts, history.RawPart("blocks", jsonx.Array(blocks[i:])))
		}
		parts = append(parts, made...)
	}
	return parts
}

// partOf decodes one block. What the columns of a part do not store exactly stays in extra.
func partOf(block []byte) []session.Part {
	o, ok := jsonx.ReadFields(block)
	if !ok {
		return []session.Part{history.RawPart("block", block)}
	}
	rest := history.Taker{Object: o}
	var part session.Part
	kind := rest.String("type")
	switch kind {
	case blockText:
		part = session.Part{Kind: session.PartText, Text: rest.Text("text")}
		if !forModel(o) {
			part.Kind = session.PartData // only people see it
		}
	case blockThinking:
		part = session.Part{Kind: session.PartReasoning, Text: rest.Text("thinking")}
	case blockReasoning:
		part = session.Part{Kind: session.PartReasoning, Text: rest.Text("text")}
	case blockRedacted:
		part = session.Part{Kind: session.PartReasoning}
	case blockImage, blockDocument:
		data, ok := rest.Base64("data")
		if !ok {
			return []session.Part{history.RawPart("block", block)}
		}
		part = session.Part{
			Kind: session.PartImage,
			Blob: &session.Blob{MediaType: rest.Text("mimeType"), Data: data, Size: int64(len(data))},
		}
		if kind == blockDocument {
			part.Kind = session.PartFile
		}
	case blockRequest, blockFrontend:
		part = request(&rest)
	case blockResponse:
		return response(&rest)
	default:
		part = history.RawPart("block", block)
		part.Text = notice(o)
		return []session.Part{part}
	}
	if kind == blockText || kind == blockThinking || kind == blockImage || kind == blockDocument || kind == blockRequest {
		rest.Take("type")
	}
	part.Extra = rest.Column()
	return []session.Part{part}
}

// notice returns the text of a block for people.
func notice(o jsonx.Object) string {
	return cmp.Or(o.String("msg"), o.String("message"), o.String("prompt"), o.Inner("data").String("message"))
}

// forModel reports whether a model sees a text: its audience, if it has one, names it.
func forModel(o jsonx.Object) bool {
	audience, ok := jsonx.ReadArray(o.Inner("annotations").Get("audience"))
	return !ok || slices.ContainsFunc(audience, func(who raw) bool { return string(who) == `"assistant"` })
}

// request turns a call into a part. One that could not be read has an error, and no name.
func request(rest *history.Taker) session.Part {
	part := session.Part{Kind: session.PartToolCall, CallID: rest.Text("id")}
	envelope := rest.Inner("toolCall")
	if envelope.String("status") == "error" {
		failed := true
		part.IsError, part.Text = &failed, envelope.String("error")
		return part
	}
	value, ok := jsonx.ReadFields(envelope.Get("value"))
	if !ok {
		return part
	}
	call := history.Taker{Object: value}
	part.ToolName, part.Arguments = call.Text("name"), string(call.Take("arguments"))
	keepRest(rest, "toolCall", envelope, call.Object)
	return part
}

// keepRest keeps of an envelope what its value's columns do not say.
func keepRest(rest *history.Taker, key string, envelope, value jsonx.Object) {
	if len(value) == 0 && len(envelope) == 2 && envelope.String("status") == "success" {
		rest.Take(key)
		return
	}
	envelope = envelope.Without("value")
	if len(value) > 0 {
		envelope = envelope.With("value", value.Column())
	}
	rest.Object = rest.With(key, envelope.Column())
}

// response turns a result into a part with its texts, and one for each image, sound and file
// in it. Two things can fail: the tool, or reaching it.
func response(rest *history.Taker) []session.Part {
	rest.Take("type")
	part := session.Part{Kind: session.PartToolResult, CallID: rest.Text("id")}
	envelope := rest.Inner("toolResult")
	failed := envelope.String("status") == "error"
	if failed {
		part.Text = envelope.String("error")
	}
	items, isList := jsonx.ReadArray(envelope.Get("value"))
	value, isObject := jsonx.ReadFields(envelope.Get("value"))
	left := history.Taker{Object: value}
	if isObject {
		items, isList = jsonx.ReadArray(value.Get("content"))
		failed = failed || string(left.Get("isError")) == "true"
		if is := string(left.Get("isError")); is == "true" || is == "false" {
			left.Take("isError")
		}
	}
	part.IsError = &failed
	if !isList {
		part.Extra = rest.Column()
		return []session.Part{part}
	}
	left.Take("content")
	text, layout, more := contents(items, part.CallID)
	part.Text = text
	keepRest(rest, "toolResult", envelope, left.Object)
	if !isObject {
		rest.Object = rest.With("shape", raw(`"list"`)) // as an older Goose wrote it
	}
	if layout != nil {
		rest.Object = rest.With("blocks", layout)
	}
	part.Extra = rest.Column()
	return append([]session.Part{part}, more...)
}

// contents returns the text of a result as a model reads it, its images, sounds and files as parts,
// and its layout unless it is one plain text: {bytes, rest} for a text, {part, rest} for a part
// after the result, {item} for an element that is kept as it is.
func contents(items []raw, callID string) (text string, layout []byte, more []session.Part) {
	var texts []string
	var list []raw
	plain := true
	for _, item := range items {
		o, ok := jsonx.ReadFields(item)
		rest := history.Taker{Object: o}
		var place jsonx.Object
		switch {
		case ok && o.String("type") == "text" && forModel(o):
			content := rest.String("text")
			if _, exact := jsonx.Text(rest.Get("text")); exact {
				rest.Take("text")
			}
			texts = append(texts, content)
			place = jsonx.Object{{Key: "bytes", Value: raw(strconv.Itoa(len(content)))}}
		case ok && len(more) < session.MaxParts/2:
			if part, is := attachment(&rest); is {
				more = append(more, part)
				more[len(more)-1].CallID = callID
				place = jsonx.Object{{Key: "part", Value: raw(strconv.Itoa(len(more)))}}
			}
		}
		if place == nil {
			list = append(list, raw(jsonx.Object{{Key: "item", Value: item}}.Column()))
			plain = false
			continue
		}
		rest.Take("type")
		if len(rest.Object) > 0 {
			place = append(place, jsonx.Member{Key: "rest", Value: raw(rest.Column())})
		}
		plain = plain && len(more) == 0 && len(rest.Object) == 0
		list = append(list, raw(place.Column()))
	}
	if !plain || len(texts) != 1 || texts[0] == "" {
		layout = jsonx.Array(list)
	}
	return strings.Join(texts, "\n"), layout, more
}

// attachment turns an image, a sound or a resource with bytes into a part.
func attachment(rest *history.Taker) (session.Part, bool) {
	kinds := map[string]session.PartKind{
		"image": session.PartImage, "audio": session.PartAudio,
		"resource": session.PartFile,
	}
	kind, ok := kinds[rest.String("type")]
	if !ok {
		return session.Part{}, false
	}
	from, key := rest, "data"
	if kind == session.PartFile {
		from, key = &history.Taker{Object: rest.Inner("resource")}, "blob"
	}
	data, ok := from.Base64(key)
	if !ok {
		return session.Part{}, false
	}
	part := session.Part{Kind: kind, Blob: &session.Blob{
		MediaType: from.Text("mimeType"), Data: data,
		Size: int64(len(data)),
	}}
	if kind == session.PartFile {
		rest.Object = rest.With("resource", from.Value())
	}
	return part, true
}
