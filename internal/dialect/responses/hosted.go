package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// hosted reads an item of a tool that the provider ran: a call and, under its id, the result.
// The item keeps what it said; the result's text is for reading.
func (d *decoder) hosted(o *wire.Fields, kind string, spec callSpec) error {
	call := built{Part: session.Part{Kind: session.PartToolCall, ToolName: spec.tool}}
	call.CallID, _ = wire.TextOf(o.Get("id"))
	if call.CallID == "" { // Codex leaves it out; the result must find its call
		call.CallID = fmt.Sprintf("%s_%d", spec.tool, d.calls())
	}
	if err := call.nameAndArguments(o, spec); err != nil {
		return err
	}
	result := built{Part: session.Part{Kind: session.PartToolResult, ToolName: call.ToolName, CallID: call.CallID}, x: partExtra{Made: true}}
	parts := []built{call, result}
	switch kind {
	case itemWebSearchCall:
		parts[1].Text = sourcesText(json.RawMessage(call.Arguments))
	case itemFileSearchCall:
		parts[1].Text = listText(o.Get("results"), "text")
	case itemInterpreterCall:
		parts[1].Text = listText(o.Get("outputs"), "logs")
	case itemImageCall:
		if image, ok := generated(o, call.CallID); ok {
			parts = append(parts, image)
		}
	case itemMCPCall:
		parts[1].mcp(o)
	}
	return d.add(newMessage(session.Assistant, session.Model), o, parts)
}

// calls is the number of parts of the message that an item would join, to name what has no name.
func (d *decoder) calls() int {
	if last := len(d.Messages) - 1; d.open && d.Messages[last].Role == session.Assistant {
		return len(d.Messages[last].Parts)
	}
	return 0
}

// mcp reads output or error. The output is the result itself and not only for reading.
func (b *built) mcp(o *wire.Fields) {
	if raw := o.Get("error"); !wire.IsNull(raw) {
		failed := true
		b.Text, b.IsError = plainText(raw), &failed
		return
	}
	text, exact := wire.TextOf(o.Get("output"))
	b.Text = text
	if exact {
		o.Drop("output")
		b.x.Made, b.x.Field = false, "output"
	}
}

// generated takes the bytes of a generated image.
func generated(o *wire.Fields, id string) (built, bool) {
	text, exact := wire.TextOf(o.Get("result"))
	data, ok := wire.Base64(text)
	if !ok || !exact {
		return built{}, false
	}
	mediaType := "image/png"
	if format, _ := wire.TextOf(o.Get("output_format")); format != "" {
		mediaType = "image/" + format
	}
	b := built{Part: session.Part{Kind: session.PartImage, CallID: id}, x: partExtra{Field: "result", Media: wire.Media{MediaType: mediaType}}}
	wire.Attach(&b.Part, wire.Blob(mediaType, data))
	o.Drop("result")
	return b, true
}

// sourcesText gives the addresses that a search found.
func sourcesText(action json.RawMessage) string {
	o, err := wire.ParseObject("action", action)
	if err != nil {
		return ""
	}
	return listText(o.Get("sources"), "url")
}

// listText gives a text field of all objects of a list, one under the other.
func listText(list json.RawMessage, field string) string {
	if wire.KindOf(list) != '[' {
		return ""
	}
	elements, _ := wire.ParseArray(field, list)
	var texts []string
	for _, e := range elements {
		if o, err := wire.ParseObject(field, e); err == nil {
			if text, _ := wire.TextOf(o.Get(field)); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}
