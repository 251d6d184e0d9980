package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// writeOpenAI writes a line {"messages": […]} for each session: its path as OpenAI's Chat
// Completions takes it, and as files of examples have it. Nothing is compacted. Calls that never
// got a result, or not within mostOpen, are answered with one that says so, and replies that
// failed lose their calls.
func writeOpenAI(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	ids, err := named(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	report := Report{Sessions: ids, LeftOut: map[string]int{}}
	for _, id := range ids {
		r, err := read(ctx, s, id, opt)
		if err != nil {
			return report, err
		}
		w := talkWriter{out: bufio.NewWriter(out), sender: openaichat.NewSender(r.Model), report: &report, open: map[string]int{}}
		w.string(`{"messages":[`)
		if err := r.eachOnPath(ctx, func(m *session.Message) error {
			if !m.InContext {
				report.LeftOut["messages that no model was given"]++
				return nil
			}
			report.Messages++
			return w.message(m)
		}); err != nil {
			return report, err
		}
		if err := w.close(); err != nil {
			return report, err
		}
		if report.LeftOut[piecesLeft] == 0 {
			delete(report.LeftOut, piecesLeft)
		}
	}
	return report, nil
}

const piecesLeft = "pieces of messages"

// mostOpen is how much may wait for the results of calls.
const (
	mostOpen      = 400 // messages
	mostOpenBytes = 4 << 20
)

// talkWriter writes a conversation as one line. It holds messages from one at which no call is
// open to the next such one, so that a result finds its call.
type talkWriter struct {
	out     *bufio.Writer
	sender  *openaichat.Sender
	report  *Report
	waiting []session.Message
	size    int            // of the waiting, bytes
	open    map[string]int // calls among them without a result, by id, else by the tool's name
	begun   bool
	err     error
}

func (w *talkWriter) string(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

func (w *talkWriter) message(m *session.Message) error {
	if m.Role != session.Tool && len(w.waiting) > 0 && (len(w.open) == 0 || len(w.waiting) >= mostOpen || w.size >= mostOpenBytes) {
		w.send()
	}
	w.waiting = append(w.waiting, *m)
	for i := range m.Parts {
		p := &m.Parts[i]
		w.size += len(p.Text) + len(p.Arguments)
		if p.Blob != nil {
			w.size += len(p.Blob.Data)
		}
		name := p.CallID
		if p.MatchedByName() {
			name = "\x00" + p.ToolName
		}
		switch {
		case p.Kind == session.PartToolCall && m.Role == session.Assistant && !m.Finish.Failed():
			w.open[name]++
		case p.Kind == session.PartToolResult:
			if w.open[name]--; w.open[name] <= 0 {
				delete(w.open, name)
			}
		}
	}
	return w.err
}

// send writes what waits.
func (w *talkWriter) send() {
	repaired := contextmgr.Repair(w.waiting, nil, true)
	w.waiting, w.size = nil, 0
	clear(w.open)
	for i := range repaired.Items {
		entries, err := w.sender.Messages(repaired.Items[i].Message)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.entries(entries)
	}
	w.report.LeftOut[piecesLeft] += len(w.sender.Losses()) + len(repaired.Losses) + len(repaired.Dropped)
}

func (w *talkWriter) entries(entries []json.RawMessage) {
	for _, entry := range entries {
		var line bytes.Buffer
		if w.begun {
			line.WriteByte(',')
		}
		w.begun = true
		if err := json.Compact(&line, entry); err != nil && w.err == nil {
			w.err = err
		}
		w.string(line.String())
	}
}

func (w *talkWriter) close() error {
	w.send()
	w.entries(w.sender.End())
	w.string("]}\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
