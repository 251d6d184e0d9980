package geminicli

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for Gemini CLI, with its usual place from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourceGeminiCLI, MediaType: "application/x-ndjson", Extension: ".gemini-cli.jsonl",
		NewID: func(_ session.Time, seed string) string { return history.UUID(seed) },
		Path: func(d *history.Draft) string {
			home := homeOf(env)
			if home == "" {
				return ""
			}
			// Gemini CLI 0.61 ends the name with the first characters of the id. With those it would delete the session:
			// a session that is resumed begins a second file, the next start deletes that, and all of its ending.
			name := "session-" + d.CreatedAt.UTC().Format("2006-01-02T15-04") + "-" + d.ID[len(d.ID)-8:] + ".jsonl"
			return filepath.Join(home, "tmp", projectIn(home, folders.Resolved(d.Directory)), "chats", name)
		},
		Prepare: claim, TidyUp: release, Write: Write,
	}
}

// Write writes a conversation as a file of generation 2: the header, then a line per message. The results of calls
// stand with the calls.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	at := history.ISOTime(d.CreatedAt)
	if err := w.Line("sessionId", d.ID, "projectHash", hashOf(folders.Resolved(d.Directory)), "startTime", at,
		"lastUpdated", at, "kind", "main", "summary", d.Title, history.HandoverKey, d.Origin()); err != nil {
		return err
	}
	if err := d.Each(w.message); err != nil {
		return err
	}
	if err := w.writeOpen(); err != nil {
		return err
	}
	return w.Flush()
}

type writer struct {
	*history.Draft
	*history.LineWriter
	lines int
	reply *session.Message // that waits for results
	ended map[string]ended // of its calls
}

// ended is the result of a call.
type ended struct {
	status string
	parts  []jsontext.Value
}

// message takes a message; a reply is written when its results are here.
func (w *writer) message(m *session.Message) error {
	if m.Role == session.Tool && w.reply != nil {
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			status := "success"
			if p.Failed() {
				status = "error"
			}
			w.ended[p.CallID] = ended{status, EncodeResult(p, pictures)}
		})
		return nil
	}
	if err := w.writeOpen(); err != nil {
		return err
	}
	if m.Role == session.Assistant {
		reply := *m
		w.reply, w.ended = &reply, map[string]ended{}
		return nil
	}
	content := EncodeParts(m.Parts)
	if isIgnored(m) {
		content = slices.Insert(content, 0, EncodeParts([]session.Part{session.TextPart(said)})...)
	}
	return w.line(m, "user", "content", content)
}

// said stands before a text that Gemini CLI takes for a command or for its own when it resumes a session, and leaves
// out.
const said = "User: "

func isIgnored(m *session.Message) bool {
	text := strings.TrimSpace(m.Text())
	return slices.ContainsFunc([]string{"/", "?", "<session_context>", "<hook_context>"}, func(begins string) bool {
		return strings.HasPrefix(text, begins)
	})
}

// line writes the line of a message.
func (w *writer) line(m *session.Message, kind string, more ...any) error {
	w.lines++
	return w.Line(append([]any{
		"id", history.UUID(fmt.Sprintf("%s line %d", w.ID, w.lines)), "timestamp", history.ISOTime(m.CreatedAt),
		"type", kind, history.HandoverKey, w.MarkOf(m),
	}, more...)...)
}

// writeOpen writes the reply that waits.
func (w *writer) writeOpen() error {
	m := w.reply
	if w.reply = nil; m == nil {
		return nil
	}
	var calls []jsontext.Value
	for _, p := range m.Calls() {
		result := w.ended[p.CallID]
		calls = append(calls, jsonx.Encode("id", p.CallID, "name", p.ToolName, "args", history.ArgumentsOf(p),
			"result", result.parts, "status", cmp.Or(result.status, "cancelled"),
			"timestamp", history.ISOTime(m.CreatedAt)))
	}
	texts := slices.DeleteFunc(slices.Clone(m.Parts), func(p session.Part) bool { return p.Kind == session.PartToolCall })
	return w.line(m, "gemini", "content", EncodeParts(texts), "model", cmp.Or(m.Model, history.UnknownName),
		"toolCalls", calls)
}

// EncodeParts writes texts, calls and pictures as parts of @google/genai.
func EncodeParts(parts []session.Part) []jsontext.Value {
	encoded := []jsontext.Value{}
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case session.PartToolCall:
			encoded = append(encoded, jsonx.Encode("functionCall", jsonx.Encode("id", p.CallID, "name", p.ToolName,
				"args", history.ArgumentsOf(p))))
		case session.PartImage:
			encoded = append(encoded, jsonx.Encode("inlineData", jsonx.Encode("mimeType", p.Blob.MediaType,
				"data", base64.StdEncoding.EncodeToString(p.Blob.Data))))
		default:
			encoded = append(encoded, jsonx.Encode("text", p.Content()))
		}
	}
	return encoded
}

// EncodeResult writes a result of a call, with its pictures behind it.
func EncodeResult(p *session.Part, pictures []session.Part) []jsontext.Value {
	key := "output"
	if p.Failed() {
		key = "error"
	}
	return append([]jsontext.Value{jsonx.Encode("functionResponse", jsonx.Encode("id", p.CallID, "name", p.ToolName,
		"response", jsonx.Encode(key, p.Content())))}, EncodeParts(pictures)...)
}
