package qwencode

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for Qwen Code, with its usual place from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourceQwenCode, MediaType: "application/x-ndjson", Extension: ".qwen-code.jsonl",
		NewID: func(_ session.Time, seed string) string { return history.UUID(seed) },
		Path: func(d *history.Draft) string {
			home := homes(env)[0]
			if home == "" {
				return ""
			}
			return filepath.Join(home, history.DashedFolder(d.Directory), "chats", d.ID+".jsonl")
		},
		Write: Write,
	}
}

// madeVersion is the version of Qwen Code that rows name.
const madeVersion = "0.0.0"

// Write writes a conversation as a file of rows: the title, then a row per message and per result. Qwen Code opens a
// session only in the folder that its first row names.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out), directory: folders.Resolved(d.Directory)}
	if err := w.row(d.CreatedAt, "system", "system", d.Origin(), "subtype", "custom_title",
		"systemPayload", jsonx.Encode("customTitle", d.Title, "titleSource", "manual")); err != nil {
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
	directory string
	last      string // uuid of the last row
	rows      int
}

// row writes a row. mark is what it has under HandoverKey.
func (w *writer) row(at session.Time, kind, by string, mark any, more ...any) error {
	parent := jsontext.Value("null")
	if w.last != "" {
		parent = jsonx.Quote(w.last)
	}
	w.last = history.UUID(fmt.Sprintf("%s row %d", w.ID, w.rows))
	w.rows++
	return w.Line(append([]any{
		"uuid", w.last, "parentUuid", parent, "sessionId", w.ID, "timestamp", history.ISOTime(at),
		"type", kind, "provenance", by, "cwd", w.directory, "version", madeVersion, "gitBranch", jsonx.Maybe(w.GitBranch),
		history.HandoverKey, mark,
	}, more...)...)
}

// message writes the row of a message, and a row for each result.
func (w *writer) message(m *session.Message) (err error) {
	mark := w.MarkOf(m)
	switch m.Role {
	case session.Tool:
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			if err != nil {
				return
			}
			status := "success"
			if p.Failed() {
				status = "error"
			}
			err = w.row(m.CreatedAt, "tool_result", "tool_result", mark,
				"message", jsonx.Encode("role", "user", "parts", geminicli.EncodeResult(p, pictures)),
				"toolCallResult", jsonx.Encode("callId", p.CallID, "status", status))
		})
		return err
	case session.Assistant:
		return w.row(m.CreatedAt, "assistant", "assistant_output", mark, "model", cmp.Or(m.Model, history.UnknownName),
			"message", jsonx.Encode("role", "model", "parts", geminicli.EncodeParts(m.Parts)))
	}
	return w.row(m.CreatedAt, "user", "real_user", mark,
		"message", jsonx.Encode("role", "user", "parts", geminicli.EncodeParts(m.Parts)))
}
