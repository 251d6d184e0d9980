package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect/openaichat"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// writeOpenAI writes a line {"messages": […]} for each session: its whole path for OpenAI's Chat
// Completions, in the form of training files. Calls without a result, or whose result comes after
// maxWaiting messages, get an error as result, and failed replies lose their calls.
func writeOpenAI(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	ids, err := idsOrAll(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	report := Report{Sessions: ids, LeftOut: map[string]int{}}
	for _, id := range ids {
		r, err := read(ctx, s, id, opt)
		if err != nil {
			return report, err
		}
		w := chatWriter{
			out: bufio.NewWriter(out), sender: openaichat.NewSender(r.Model), report: &report,
			open: map[string]int{},
		}
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
		if report.LeftOut[partsLeftOut] == 0 {
			delete(report.LeftOut, partsLeftOut)
		}
	}
	return report, nil
}

const partsLeftOut = "pieces of messages"

// Limits of the messages that wait for results of calls.
const (
	maxWaiting      = 400 // messages
	maxWaitingBytes = 4 << 20
)

// chatWriter writes a conversation as one line. It buffers messages until every call has its result.
type chatWriter struct {
	out     *bufio.Writer
	sender  *openaichat.Sender
	report  *Report
	waiting []session.Message
	size    int            // bytes waiting
	open    map[string]int // calls among them without a result, by id, else by the tool's name
	begun   bool
	err     error
}

func (w *chatWriter) string(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

func (w *chatWriter) message(m *session.Message) error {
	if m.Role != session.Tool && len(w.waiting) > 0 &&
		(len(w.open) == 0 || len(w.waiting) >= maxWaiting || w.size >= maxWaitingBytes) {
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

// send writes the waiting messages.
func (w *chatWriter) send() {
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
	w.report.LeftOut[partsLeftOut] += len(w.sender.Losses()) + len(repaired.Losses) + len(repaired.Dropped)
}

func (w *chatWriter) entries(entries []jsontext.Value) {
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

func (w *chatWriter) close() error {
	w.send()
	w.entries(w.sender.End())
	w.string("]}\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
