package opencode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// NewTarget returns what sessiond writes for opencode, which reads it by its command import.
func NewTarget() history.Target {
	return history.Target{
		Source: session.SourceOpencode, MediaType: "application/json", Extension: ".opencode.json",
		Import: []string{"opencode", "import"}, NewID: newSessionID, Write: Write, Kept: kept(),
	}
}

// newSessionID makes an id as opencode does: newer sessions have smaller ones.
func newSessionID(at session.Time, seed string) string {
	return "ses_" + hexOf(^(uint64(at.UnixMilli()) << 12)) + randomPart(seed)
}

// hexOf writes the lower 48 bits of a number.
func hexOf(n uint64) string { return fmt.Sprintf("%012x", n&(1<<48-1)) }

// randomPart is the second half of an id.
func randomPart(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return hex.EncodeToString(sum[:7])
}

// madeVersion is the version of opencode that a session names.
const madeVersion = "1.0.0"

// Write writes a conversation as `opencode export` does: one object with the session and its messages. Calls and their
// results are one part of a reply.
func Write(out io.Writer, d *history.Draft) error {
	w := writer{Draft: d, LineWriter: history.NewLineWriter(out)}
	at := history.Int(d.CreatedAt.UnixMilli())
	w.Print(`{"info":`)
	w.Print(string(jsonx.Encode("id", d.ID, "slug", "handover-"+randomPart(d.ID)[:6], "projectID", "global",
		"directory", d.Directory, "title", d.Title, "version", madeVersion,
		"time", jsonx.Encode("created", at, "updated", at))))
	w.Print(`,"messages":[`)
	if err := d.Each(w.message); err != nil {
		return err
	}
	w.writeOpen()
	w.Print("]}\n")
	return w.Flush()
}

type writer struct {
	*history.Draft
	*history.LineWriter
	written int
	newest  uint64 // number in the newest id
	asked   string // id of the newest message of a user
	reply   *open  // that waits for results
}

// open is a message whose parts are not complete.
type open struct {
	info  jsonx.Object
	id    string
	at    session.Time
	mark  jsontext.Value
	parts []jsontext.Value
	calls map[string]int // place of each call's part, by its id
	made  map[string]*session.Part
}

// nextID makes an id that is greater than all before it: opencode sorts by them.
func (w *writer) nextID(prefix string, at session.Time) string {
	w.newest = max(w.newest+1, uint64(at.UnixMilli())<<12)
	return prefix + hexOf(w.newest) + randomPart(fmt.Sprint(w.ID, w.newest))
}

// message takes a message; a reply is written when its results are here.
func (w *writer) message(m *session.Message) error {
	if m.Role == session.Tool && w.reply != nil {
		w.results(m)
		return w.Err()
	}
	w.writeOpen()
	w.reply = w.begin(m)
	if m.Role != session.Assistant {
		w.writeOpen()
	}
	return w.Err()
}

// begin makes the message of a user or of a model.
func (w *writer) begin(m *session.Message) *open {
	o := &open{
		id: w.nextID("msg_", m.CreatedAt), at: m.CreatedAt, calls: map[string]int{}, made: map[string]*session.Part{},
		// opencode gives what stands here to the model's provider, as objects by a provider's name.
		mark: jsonx.Encode(history.HandoverKey, jsonx.Encode("message", w.MarkOf(m))),
	}
	if w.written == 0 && w.reply == nil {
		o.mark = jsonx.Encode(history.HandoverKey, w.Origin())
	}
	created := history.Int(m.CreatedAt.UnixMilli())
	if m.Role == session.Assistant {
		zero := history.Int(0)
		finish := "stop"
		if len(m.Calls()) > 0 {
			finish = "tool-calls"
		}
		o.info = jsonx.NewObject("id", o.id, "sessionID", w.ID, "role", "assistant", "parentID", jsonx.Maybe(w.asked),
			"mode", "build", "agent", "build", "path", jsonx.Encode("cwd", w.Directory, "root", "/"), "cost", zero,
			"tokens", jsonx.Encode("input", zero, "output", zero, "reasoning", zero,
				"cache", jsonx.Encode("read", zero, "write", zero)),
			"modelID", cmp.Or(m.Model, history.UnknownName), "providerID", cmp.Or(m.Provider, history.UnknownName),
			"time", jsonx.Encode("created", created, "completed", created), "finish", finish)
	} else {
		w.asked = o.id
		o.info = jsonx.NewObject("id", o.id, "sessionID", w.ID, "role", "user", "time", jsonx.Encode("created", created),
			"agent", "build", "model", jsonx.Encode("providerID", cmp.Or(w.Provider, history.UnknownName),
				"modelID", cmp.Or(w.Model, history.UnknownName)))
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartToolCall:
			o.calls[p.CallID], o.made[p.CallID] = len(o.parts), p
			o.parts = append(o.parts, w.call(o, p, nil, nil))
		case session.PartImage:
			o.parts = append(o.parts, w.part(o, "type", "file", "mime", p.Blob.MediaType, "filename", "picture",
				"url", history.DataURL(p.Blob)))
		default:
			o.parts = append(o.parts, w.part(o, "type", "text", "text", p.Content(), "metadata", o.mark))
		}
	}
	if !slices.ContainsFunc(m.Parts, func(p session.Part) bool { return p.Kind != session.PartImage }) {
		o.parts = append(o.parts, w.part(o, "type", "text", "text", "(a picture)", "metadata", o.mark))
	}
	return o
}

// part writes a part of a message.
func (w *writer) part(o *open, fields ...any) jsontext.Value {
	return jsonx.Encode(append([]any{
		"id", w.nextID("prt_", o.at), "sessionID", w.ID, "messageID", o.id,
	}, fields...)...)
}

// call writes a call with its result.
func (w *writer) call(o *open, p, result *session.Part, pictures []session.Part) jsontext.Value {
	at := history.Int(o.at.UnixMilli())
	state := jsonx.NewObject("status", "completed", "input", history.ArgumentsOf(p))
	switch {
	case result != nil && result.Failed():
		state.Add("status", "error", "error", result.Content())
	default:
		text := ""
		if result != nil {
			text = result.Content()
		}
		state.Add("output", text, "title", "", "metadata", jsontext.Value("{}"))
	}
	state.Add("time", jsonx.Encode("start", at, "end", at))
	var attached []jsontext.Value
	for i := range pictures {
		attached = append(attached, w.part(o, "type", "file", "mime", pictures[i].Blob.MediaType,
			"url", history.DataURL(pictures[i].Blob)))
	}
	state.Add("attachments", attached)
	return w.part(o, "type", "tool", "callID", p.CallID, "tool", p.ToolName, "state", state.Value(), "metadata", o.mark)
}

// results puts results into the parts of their calls.
func (w *writer) results(m *session.Message) {
	history.EachResult(m, func(p *session.Part, pictures []session.Part) {
		if at, called := w.reply.calls[p.CallID]; called {
			w.reply.parts[at] = w.call(w.reply, w.reply.made[p.CallID], p, pictures)
		}
	})
}

// writeOpen writes the open message.
func (w *writer) writeOpen() {
	o := w.reply
	if w.reply = nil; o == nil {
		return
	}
	if w.written++; w.written > 1 {
		w.Print(",")
	}
	w.Print(string(jsonx.Encode("info", o.info.Value(), "parts", o.parts)))
}
