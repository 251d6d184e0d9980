package goose

import (
	"cmp"
	"fmt"
	"io"
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
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	at := d.CreatedAt.UTC().Format(time.RFC3339)
	named, none := true, jsontext.Value("null")
	zero := jsontext.Value("0")
	usage := jsonx.Encode("input_tokens", zero, "output_tokens", zero, "total_tokens", zero,
		"cache_read_input_tokens", zero, "cache_write_input_tokens", zero)
	w.Print(`{` + string(trimmed(jsonx.Encode("id", d.ID, "name", d.Title, "user_set_name", &named, "session_type", "user",
		"working_dir", d.Directory, "created_at", at, "updated_at", at,
		"extension_data", jsonx.Encode(history.HandoverKey, d.Origin()), "usage", usage, "accumulated_usage", usage,
		"accumulated_cost", none, "provider_name", none))) + `,"conversation":[`)
	if err := d.Each(w.message); err != nil {
		return err
	}
	w.Print(`],"message_count":` + string(history.Int(int64(w.entries))) + "}\n")
	return w.Flush()
}

// trimmed returns an object without its braces.
func trimmed(object jsontext.Value) jsontext.Value { return object[1 : len(object)-1] }

type writer struct {
	*history.Draft
	*history.LineWriter
	entries int // written
}

// message writes a message; results stand in the user's role.
func (w *writer) message(m *session.Message) error {
	if w.entries++; w.entries > 1 {
		w.Print(",")
	}
	role, yes := "user", true
	metadata := jsonx.NewObject("userVisible", &yes, "agentVisible", &yes)
	if m.Role == session.Assistant {
		role = "assistant"
		metadata.Add("inference", jsonx.Encode("provider", cmp.Or(m.Provider, history.UnknownName),
			"requestedModel", cmp.Or(m.Model, history.UnknownName)))
	}
	w.Print(string(jsonx.Encode("id", fmt.Sprintf("msg_%s_%d", w.MarkOf(m), w.entries), "role", role,
		"created", history.Int(m.CreatedAt.Unix()), "content", contentOf(m),
		"metadata", metadata.Value())))
	return w.Err()
}

func contentOf(m *session.Message) []jsontext.Value {
	blocks := []jsontext.Value{}
	if m.Role == session.Tool {
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			content := []jsontext.Value{history.TextBlock(p.Content())}
			for i := range pictures {
				content = append(content, history.ImageBlock(pictures[i].Blob))
			}
			failed := p.Failed()
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
			blocks = append(blocks, history.ImageBlock(p.Blob))
		default:
			blocks = append(blocks, history.TextBlock(p.Content()))
		}
	}
	return blocks
}
