package pi

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for pi, with its usual place from the environment.
func NewTarget(env func(string) string) history.Target {
	return history.Target{
		Source: session.SourcePi, MediaType: "application/x-ndjson", Extension: ".pi.jsonl",
		NewID: history.TimedUUID,
		Path: func(d *history.Draft) string {
			dir := sessionsOf(env)
			if dir == "" {
				home := homeOf(env)
				if home == "" {
					return ""
				}
				dir = filepath.Join(home, "sessions", folderOf(d.Directory))
			}
			at := strings.NewReplacer(":", "-", ".", "-").Replace(history.ISOTime(d.CreatedAt))
			return filepath.Join(dir, at+"_"+d.ID+".jsonl")
		},
		Write: Write,
	}
}

// folderOf returns the name of the folder in which pi keeps the sessions of a directory.
func folderOf(directory string) string {
	return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(
		strings.TrimLeft(folders.Resolved(directory), `/\`)) + "--"
}

// Write writes a conversation as pi's version 3: the header, an entry per message and per result, the labels and the
// name.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	var labelled [][2]string // ids of entries with their labels
	at := history.ISOTime(d.CreatedAt)
	if err := w.Line("type", lineSession, "version", history.Int(3), "id", d.ID, "timestamp", at, "cwd", d.Directory,
		history.HandoverKey, d.Origin()); err != nil {
		return err
	}
	if err := d.Each(func(m *session.Message) error {
		err := w.message(m)
		if label := d.Labels[m.ID]; label != "" {
			labelled = append(labelled, [2]string{w.last, label})
		}
		return err
	}); err != nil {
		return err
	}
	for _, l := range labelled {
		if err := w.entry(at, string(d.Handover.Session), lineLabel, "targetId", l[0], "label", l[1]); err != nil {
			return err
		}
	}
	if err := w.entry(at, string(d.Handover.Session), lineInfo, "name", d.Title); err != nil {
		return err
	}
	return w.Flush()
}

type writer struct {
	*history.Draft
	*history.LineWriter
	entries int
	last    string // id of the last entry
}

// entry writes an entry behind the last one.
func (w *writer) entry(at, mark, kind string, fields ...any) error {
	parent := jsontext.Value("null")
	if w.last != "" {
		parent = jsonx.Quote(w.last)
	}
	w.entries++
	w.last = fmt.Sprintf("%08x", w.entries)
	return w.Line(append([]any{"type", kind, "id", w.last, "parentId", parent, "timestamp", at, history.HandoverKey, mark},
		fields...)...)
}

// message writes the entries of a message.
func (w *writer) message(m *session.Message) error {
	at := history.Int(m.CreatedAt.UnixMilli())
	one := func(o jsonx.Object) error {
		o.Add("timestamp", at)
		return w.entry(history.ISOTime(m.CreatedAt), w.MarkOf(m), lineMessage, "message", o.Value())
	}
	switch m.Role {
	case session.Tool:
		var err error
		history.EachResult(m, func(p *session.Part, pictures []session.Part) {
			if err == nil {
				failed := p.Failed()
				err = one(jsonx.NewObject("role", "toolResult", "toolCallId", p.CallID, "toolName", p.ToolName,
					"content", append([]jsontext.Value{history.TextBlock(p.Content())}, blocks(pictures)...), "isError", &failed))
			}
		})
		return err
	case session.Assistant:
		stop := "stop"
		if len(m.Calls()) > 0 {
			stop = "toolUse"
		}
		zero := history.Int(0)
		cost := jsonx.Encode("input", zero, "output", zero, "cacheRead", zero, "cacheWrite", zero, "total", zero)
		return one(jsonx.NewObject("role", "assistant", "content", blocks(m.Parts), "api", "openai-completions",
			"provider", cmp.Or(m.Provider, history.UnknownName), "model", cmp.Or(m.Model, history.UnknownName),
			"usage", jsonx.Encode("input", zero, "output", zero, "cacheRead", zero, "cacheWrite", zero,
				"totalTokens", zero, "cost", cost),
			"stopReason", stop))
	}
	return one(jsonx.NewObject("role", "user", "content", blocks(m.Parts)))
}

// blocks writes parts as pi's blocks.
func blocks(parts []session.Part) []jsontext.Value {
	list := []jsontext.Value{}
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case session.PartToolCall:
			list = append(list, jsonx.Encode("type", "toolCall", "id", p.CallID, "name", p.ToolName,
				"arguments", history.ArgumentsOf(p)))
		case session.PartImage:
			list = append(list, history.ImageBlock(p.Blob))
		default:
			list = append(list, history.TextBlock(p.Content()))
		}
	}
	return list
}
