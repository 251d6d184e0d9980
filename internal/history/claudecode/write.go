package claudecode

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for Claude Code, with its usual places from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourceClaudeCode, MediaType: "application/x-ndjson", Extension: ".claude-code.jsonl",
		NewID: func(_ session.Time, seed string) string { return history.UUID(seed) },
		Path: func(d *history.Draft) string {
			home := homes(env)[0]
			if home == "" {
				return ""
			}
			return filepath.Join(home, history.DashedFolder(d.Directory), d.ID+ending)
		},
		Write: Write,
	}
}

// Write writes a conversation as a transcript: the title, then a row per message.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	if err := w.Line("type", "custom-title", "customTitle", d.Title, "sessionId", d.ID,
		history.HandoverKey, d.Origin()); err != nil {
		return err
	}
	if err := d.Each(w.message); err != nil {
		return err
	}
	return w.Flush()
}

type writer struct {
	*history.Draft
	*history.LineWriter
	last string // uuid of the last row
	rows int
}

// name makes an id for the next row, the same whenever the conversation is written.
func (w *writer) name(kind string) string {
	return history.UUID(fmt.Sprintf("%s %s %d", w.ID, kind, w.rows))
}

// message writes the row of a message.
func (w *writer) message(m *session.Message) error {
	kind, content := typeUser, w.content(m)
	message := jsonx.NewObject("role", kind)
	if m.Role == session.Assistant {
		kind = typeAssistant
		// It takes a reply without a model for an error of its own.
		message = jsonx.NewObject("id", "msg_"+strings.ReplaceAll(w.name("reply"), "-", ""), "type", "message",
			"role", kind, "model", cmp.Or(m.Model, history.UnknownName), "stop_reason", stopReason(m))
	}
	message.Set("content", content)
	parent := jsontext.Value("null")
	if w.last != "" {
		parent = jsonx.Quote(w.last)
	}
	w.last = w.name("row")
	w.rows++
	side := false
	return w.Line("parentUuid", parent, "isSidechain", &side, "type", kind, "message", message.Value(),
		"uuid", w.last, "timestamp", history.ISOTime(m.CreatedAt), "userType", "external",
		"cwd", jsonx.Maybe(w.Directory), "sessionId", w.ID, "gitBranch", jsonx.Maybe(w.GitBranch),
		history.HandoverKey, w.MarkOf(m))
}

func stopReason(m *session.Message) string {
	if len(m.Calls()) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// content writes the parts of a message as blocks, one text as that.
func (w *writer) content(m *session.Message) jsontext.Value {
	if len(m.Parts) == 1 && m.Parts[0].Kind == session.PartText && m.Role == session.User {
		return jsonx.Quote(m.Parts[0].Content())
	}
	blocks := []jsontext.Value{}
	if m.Role == session.Tool {
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			content := []jsontext.Value{history.TextBlock(p.Content())}
			for i := range pictures {
				content = append(content, imageBlock(pictures[i].Blob))
			}
			blocks = append(blocks, jsonx.Encode("type", "tool_result", "tool_use_id", p.CallID,
				"content", content, "is_error", p.IsError))
		})
		return jsonx.Array(blocks)
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartToolCall:
			blocks = append(blocks, jsonx.Encode("type", "tool_use", "id", p.CallID, "name", p.ToolName,
				"input", history.ArgumentsOf(p)))
		case session.PartImage:
			blocks = append(blocks, imageBlock(p.Blob))
		default:
			blocks = append(blocks, history.TextBlock(p.Content()))
		}
	}
	return jsonx.Array(blocks)
}

func imageBlock(b *session.Blob) jsontext.Value {
	return jsonx.Encode("type", "image", "source", jsonx.Encode("type", "base64", "media_type", b.MediaType,
		"data", base64.StdEncoding.EncodeToString(b.Data)))
}
