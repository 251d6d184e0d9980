package export

import (
	"context"

	"sessiond/internal/contextmgr"
	"sessiond/internal/handover"
	"sessiond/internal/session"
)

// Limits of the messages that wait for results of calls.
const (
	maxWaiting      = 400 // messages
	maxWaitingBytes = 4 << 20
)

// pairing repairs a path, which comes message by message: it buffers messages until every call has its result. Calls
// whose result comes after maxWaiting messages get an error as result, and failed replies lose their calls.
type pairing struct {
	emit func(contextmgr.Repaired) error

	waiting []session.Message
	size    int            // bytes waiting
	open    map[string]int // calls among them without a result, by id, else by the tool's name
}

func newPairing(emit func(contextmgr.Repaired) error) *pairing {
	return &pairing{emit: emit, open: map[string]int{}}
}

func (w *pairing) add(m *session.Message) error {
	if m.Role != session.Tool && len(w.waiting) > 0 &&
		(len(w.open) == 0 || len(w.waiting) >= maxWaiting || w.size >= maxWaitingBytes) {
		if err := w.flush(); err != nil {
			return err
		}
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
	return nil
}

// flush emits the waiting messages.
func (w *pairing) flush() error {
	repaired := contextmgr.Repair(w.waiting, nil, true)
	w.waiting, w.size = nil, 0
	clear(w.open)
	return w.emit(repaired)
}

// CarryAll yields the messages of a whole path as handover.Carrier makes them for another program.
func CarryAll(ctx context.Context, carrier *handover.Carrier,
	each func(context.Context, func(*session.Message) error) error, yield func(*session.Message) error,
) error {
	w := newPairing(func(repaired contextmgr.Repaired) error {
		for i := range repaired.Items {
			carried := carrier.Carry(&repaired.Items[i].Message, repaired.Items[i].Kind)
			for k := range carried {
				if err := yield(&carried[k]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := each(ctx, func(m *session.Message) error {
		if !m.InContext {
			return nil
		}
		return w.add(m)
	}); err != nil {
		return err
	}
	return w.flush()
}
