package goose

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond exports for Goose. Nothing is handed over to it: it gives an imported session an id
// of its own.
func NewTarget() history.Target {
	return history.Target{
		Source: session.SourceGoose, MediaType: "application/json", Extension: ".goose.json",
		NewID: func(at session.Time, seed string) string {
			return at.Format("20060102") + "_" + history.UUID(seed)[:8]
		},
		Write: Write,
	}
}

// Write writes a conversation as `goose session export --format json` does: one object with the messages.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, out: bufio.NewWriter(out)}
	at := d.CreatedAt.UTC().Format(time.RFC3339)
	named, none := true, jsontext.Value("null")
	zero := jsontext.Value("0")
	usage := jsonx.Encode("input_tokens", zero, "output_tokens", zero, "total_tokens", zero,
		"cache_read_input_tokens", zero, "cache_write_input_tokens", zero)
	w.print(`{` + string(trimmed(jsonx.Encode("id", d.ID, "name", d.Title, "user_set_name", &named, "session_type", "user",
		"working_dir", d.Directory, "created_at", at, "updated_at", at,
		"extension_data", jsonx.Encode(history.HandoverKey, d.Origin()), "usage", usage, "accumulated_usage", usage,
		"accumulated_cost", none, "provider_name", none))) + `,"conversation":[`)
	if err := d.Each(w.message); err != nil {
		return err
	}
	w.print(`],"message_count":` + strconv.Itoa(w.entries) + "}\n")
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// trimmed returns an object without its braces.
func trimmed(object jsontext.Value) jsontext.Value { return object[1 : len(object)-1] }

type writer struct {
	*history.Draft
	out     *bufio.Writer
	err     error
	entries int // written
}

func (w *writer) print(text string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(text)
	}
}

// message writes a message; results stand in the user's role.
func (w *writer) message(m *session.Message) error {
	if w.entries++; w.entries > 1 {
		w.print(",")
	}
	role, yes := "user", true
	metadata := jsonx.NewObject("userVisible", &yes, "agentVisible", &yes)
	if m.Role == session.Assistant {
		role = "assistant"
		metadata.Add("inference", jsonx.Encode("provider", cmp.Or(m.Provider, unknown),
			"requestedModel", cmp.Or(m.Model, unknown)))
	}
	w.print(string(jsonx.Encode("id", fmt.Sprintf("msg_%s_%d", w.MarkOf(m), w.entries), "role", role,
		"created", jsontext.Value(strconv.FormatInt(m.CreatedAt.Unix(), 10)), "content", contentOf(m),
		"metadata", metadata.Value())))
	return w.err
}

// unknown stands for a name that Goose requires and nobody knows.
const unknown = "unknown"

func contentOf(m *session.Message) []jsontext.Value {
	blocks := []jsontext.Value{}
	if m.Role == session.Tool {
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			content := []jsontext.Value{textBlock(p.Content())}
			for i := range pictures {
				content = append(content, imageBlock(pictures[i].Blob))
			}
			failed := p.IsError != nil && *p.IsError
			blocks = append(blocks, jsonx.Encode("type", "toolResponse", "id", p.CallID, "toolResult",
				jsonx.Encode("status", "success", "value", jsonx.Encode("content", content, "isError", &failed))))
		})
		return blocks
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartToolCall:
			blocks = append(blocks, jsonx.Encode("type", "toolRequest", "id", p.CallID, "toolCall", jsonx.Encode(
				"status", "success", "value", jsonx.Encode("name", p.ToolName, "arguments", history.ArgumentsOf(p)))))
		case session.PartImage:
			blocks = append(blocks, imageBlock(p.Blob))
		default:
			blocks = append(blocks, textBlock(p.Content()))
		}
	}
	return blocks
}

func textBlock(text string) jsontext.Value { return jsonx.Encode("type", "text", "text", text) }

func imageBlock(b *session.Blob) jsontext.Value {
	return jsonx.Encode("type", "image", "data", base64.StdEncoding.EncodeToString(b.Data), "mimeType", b.MediaType)
}
