package copilotcli

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for Copilot CLI, with its usual place from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourceCopilotCLI, MediaType: "application/x-ndjson", Extension: ".copilot-cli.jsonl",
		NewID: func(_ session.Time, seed string) string { return history.UUID(seed) },
		Path: func(d *history.Draft) string {
			home := history.FolderIn(homeOf(env), sessions)
			if home == "" {
				return ""
			}
			return filepath.Join(home, d.ID, "events.jsonl")
		},
		Prepare: prepare, TidyUp: tidyUp, Write: Write,
	}
}

// prepare writes what names a session in Copilot CLI. Codes: Conflict (the session has a name).
func prepare(path string, d *history.Draft) error {
	text, err := yaml.Marshal(workspace{
		ID: d.ID, Name: history.FirstLine(d.Title), UserNamed: true, CWD: folders.Resolved(d.Directory), Branch: d.GitBranch,
		CreatedAt: history.ISOTime(d.CreatedAt), UpdatedAt: history.ISOTime(d.CreatedAt),
	})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = history.WriteNew(workspaceBeside(path), text)
	}
	if os.IsExist(err) {
		return session.Errorf(session.Conflict, "%s exists: nothing was written; try again", workspaceBeside(path))
	}
	if err != nil {
		return fmt.Errorf("name a session of Copilot CLI: %w", err)
	}
	return nil
}

// tidyUp removes what names a session whose events are gone.
func tidyUp(path string) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	_ = os.Remove(workspaceBeside(path)) // what stays is a name
	_ = os.Remove(filepath.Dir(path))    // or what Copilot CLI made there
}

// madeVersion is the version of Copilot CLI that the session names.
const madeVersion = "0.0.0"

// Write writes a conversation as a file of events: the start, then an event per message and per result.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	at := history.ISOTime(d.CreatedAt)
	if err := w.event("session.start", d.CreatedAt, d.Origin(), "sessionId", d.ID, "version", history.Int(1),
		"producer", "copilot-agent", "copilotVersion", madeVersion, "startTime", at,
		"context", jsonx.Encode("cwd", folders.Resolved(d.Directory), "branch", jsonx.Maybe(d.GitBranch))); err != nil {
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
	last   string // id of the last event
	events int
}

// event writes an event with its data. mark is what it has under HandoverKey.
func (w *writer) event(kind string, at session.Time, mark any, data ...any) error {
	parent := jsontext.Value("null")
	if w.last != "" {
		parent = jsonx.Quote(w.last)
	}
	w.last = history.UUID(fmt.Sprintf("%s event %d", w.ID, w.events))
	w.events++
	return w.Line("type", kind, "data", jsonx.Encode(data...), "id", w.last, "timestamp", history.ISOTime(at),
		"parentId", parent, history.HandoverKey, mark)
}

// message writes the event of a message, and of a result one each.
func (w *writer) message(m *session.Message) (err error) {
	mark := w.MarkOf(m)
	var seen []session.Part
	switch m.Role {
	case session.Tool:
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			if err != nil {
				return
			}
			succeeded := !p.Failed()
			data := []any{"toolCallId", p.CallID, "success", &succeeded}
			if succeeded {
				data = append(data, "result", jsonx.Encode("content", p.Content()))
			} else {
				data = append(data, "error", jsonx.Encode("message", p.Content()))
			}
			err = w.event("tool.execution_complete", m.CreatedAt, mark, data...)
			seen = append(seen, pictures...)
		})
		if err == nil && seen != nil {
			// It sends the model no pictures of a result when it resumes a session.
			err = w.event("user.message", m.CreatedAt, mark, "content", picturesOf, "source", history.HandoverKey,
				"attachments", attachmentsOf(seen))
		}
		return err
	case session.Assistant:
		requests := []jsontext.Value{}
		for _, p := range m.Calls() {
			requests = append(requests, jsonx.Encode("toolCallId", p.CallID, "name", p.ToolName,
				"arguments", history.ArgumentsOf(p), "type", "function"))
		}
		err = w.event("assistant.message", m.CreatedAt, mark, "messageId", history.UUID(w.last+" message"),
			"model", cmp.Or(m.Model, history.UnknownName), "content", m.Text(), "toolRequests", requests)
		for _, p := range m.Calls() {
			if err == nil {
				err = w.event("tool.execution_start", m.CreatedAt, mark, "toolCallId", p.CallID, "toolName", p.ToolName,
					"arguments", history.ArgumentsOf(p))
			}
		}
		return err
	}
	return w.event("user.message", m.CreatedAt, mark, "content", m.Text(), "attachments", attachmentsOf(m.Parts))
}

// picturesOf stands before the pictures of results.
const picturesOf = "The pictures of the results above:"

// attachmentsOf writes the pictures of a prompt.
func attachmentsOf(parts []session.Part) []jsontext.Value {
	attached := []jsontext.Value{}
	for i := range parts {
		if b := parts[i].Blob; b != nil {
			attached = append(attached, jsonx.Encode("type", blobType, "data", base64.StdEncoding.EncodeToString(b.Data),
				"mimeType", b.MediaType, "displayName", "picture"))
		}
	}
	return attached
}
