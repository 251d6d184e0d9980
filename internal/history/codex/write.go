package codex

import (
	"io"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for Codex, with its usual place from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourceCodex, MediaType: "application/x-ndjson", Extension: ".codex.jsonl",
		NewID: history.TimedUUID,
		Path: func(d *history.Draft) string {
			home := homeOf(env)
			if home == "" {
				return ""
			}
			at := d.CreatedAt.Local()
			return filepath.Join(home, "sessions", at.Format("2006"), at.Format("01"), at.Format("02"),
				"rollout-"+at.Format("2006-01-02T15-04-05")+"-"+d.ID+plainEnding)
		},
		Write: Write,
	}
}

// madeBy is what the header of a rollout names as its program and version. Codex does not open one without them.
const (
	madeBy      = "sessiond"
	madeVersion = "0.0.0"
)

// Write writes a conversation as a rollout: the header, then the items that the model is sent, with the events of
// which Codex shows the conversation.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	at := history.ISOTime(d.CreatedAt)
	if err := w.Line("timestamp", at, "type", typeMeta, "payload", jsonx.Encode("id", d.ID, "timestamp", at,
		"cwd", d.Directory, "originator", madeBy, "cli_version", madeVersion, "source", "cli",
		"model_provider", jsonx.Maybe(d.Provider), history.HandoverKey, d.Origin())); err != nil {
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
}

// message writes the records of a message.
func (w *writer) message(m *session.Message) error {
	line := func(kind string, payload jsontext.Value) error {
		return w.Line("timestamp", history.ISOTime(m.CreatedAt), "type", kind, "payload", payload,
			history.HandoverKey, w.MarkOf(m))
	}
	var err error
	switch m.Role {
	case session.Tool:
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			if err == nil {
				err = line(typeItem, jsonx.Encode("type", "function_call_output", "call_id", p.CallID,
					"output", outputOf(p, pictures)))
			}
		})
		return err
	case session.Assistant:
		return w.reply(m, line)
	}
	if err := line(typeItem, jsonx.Encode("type", "message", "role", "user", "content", contentOf(m))); err != nil {
		return err
	}
	if m.ID == (session.MessageRef{}) { // nobody said it, and Codex makes a title of the first one that it shows
		return nil
	}
	return line(typeEvent, jsonx.Encode("type", "user_message", "message", m.Text()))
}

// reply writes an item for each call, and one for the texts before it.
func (w *writer) reply(m *session.Message, line func(kind string, payload jsontext.Value) error) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		var err error
		switch p.Kind {
		case session.PartToolCall:
			err = line(typeItem, jsonx.Encode("type", "function_call", "name", p.ToolName,
				"arguments", string(history.ArgumentsOf(p)), "call_id", p.CallID))
		case session.PartText:
			err = line(typeItem, jsonx.Encode("type", "message", "role", "assistant", "content",
				[]jsontext.Value{jsonx.Encode("type", "output_text", "text", p.Content())}))
			if err == nil {
				err = line(typeEvent, jsonx.Encode("type", "agent_message", "message", p.Content()))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contentOf writes the texts and pictures of a user's message.
func contentOf(m *session.Message) []jsontext.Value {
	content := []jsontext.Value{}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == session.PartImage {
			content = append(content, jsonx.Encode("type", "input_image", "image_url", history.DataURL(p.Blob)))
		} else {
			content = append(content, jsonx.Encode("type", "input_text", "text", p.Content()))
		}
	}
	return content
}

// outputOf writes a result: its text, with pictures a list.
func outputOf(p *session.Part, pictures []session.Part) jsontext.Value {
	if len(pictures) == 0 {
		return jsonx.Quote(p.Content())
	}
	content := []jsontext.Value{jsonx.Encode("type", "input_text", "text", p.Content())}
	for i := range pictures {
		content = append(content, jsonx.Encode("type", "input_image", "image_url", history.DataURL(pictures[i].Blob)))
	}
	return jsonx.Array(content)
}
