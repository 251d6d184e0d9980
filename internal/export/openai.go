package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
		w := chatWriter{out: bufio.NewWriter(out), sender: openaichat.NewSender(r.Model), report: &report}
		paired := newPairing(w.send)
		w.string(`{"messages":[`)
		if err := r.eachOnPath(ctx, func(m *session.Message) error {
			if !m.InContext {
				report.LeftOut["messages that no model was given"]++
				return nil
			}
			report.Messages++
			return paired.add(m)
		}); err != nil {
			return report, err
		}
		if err := errors.Join(paired.flush(), w.close()); err != nil {
			return report, err
		}
		if report.LeftOut[partsLeftOut] == 0 {
			delete(report.LeftOut, partsLeftOut)
		}
	}
	return report, nil
}

const partsLeftOut = "pieces of messages"

// chatWriter writes a conversation as one line.
type chatWriter struct {
	out    *bufio.Writer
	sender *openaichat.Sender
	report *Report
	begun  bool
	err    error
}

func (w *chatWriter) string(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

// send writes repaired messages.
func (w *chatWriter) send(repaired contextmgr.Repaired) error {
	for i := range repaired.Items {
		entries, err := w.sender.Messages(repaired.Items[i].Message)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.entries(entries)
	}
	w.report.LeftOut[partsLeftOut] += len(w.sender.Losses()) + len(repaired.Losses) + len(repaired.Dropped)
	return w.err
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
	w.entries(w.sender.End())
	w.string("]}\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
