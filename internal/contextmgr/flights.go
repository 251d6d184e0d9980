package contextmgr

import (
	"context"
	"errors"
	"sync"

	"sessiond/internal/session"
)

// errCancelled is why the asking of a model ends when its compaction is cancelled.
var errCancelled = errors.New("the compaction was cancelled")

// flights are the compactions that are being made, so that who asks for the same gets the same,
// and so that they can be cancelled.
type flights struct {
	mu  sync.Mutex
	all map[*flight]bool
}

// flight is one of them.
type flight struct {
	session session.ID
	key     string        // what was asked for; "": staged, nobody else's
	begun   chan struct{} // closed once its record stands, or it ended
	done    chan struct{} // closed once it ended

	// under the mutex of flights
	out    outcome
	record int64 // its running record; 0: none
	cancel context.CancelCauseFunc
	gone   bool // cancelled
}

// outcome is what became of a flight.
type outcome struct {
	record  session.Compaction
	preview Preview
	err     error
}

// join gives the flight that makes what is asked for; leads tells that it is a new one, whose
// work the caller does.
func (fs *flights) join(id session.ID, in CompactInput) (f *flight, leads bool) {
	in.Idem = nil
	key := string(session.JSONOf(in))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.all {
		if f.session == id && f.key == key && !f.gone {
			return f, false
		}
	}
	return fs.add(id, key), true
}

// add must be called with the mutex held.
func (fs *flights) add(id session.ID, key string) *flight {
	f := &flight{session: id, key: key, begun: make(chan struct{}), done: make(chan struct{})}
	if fs.all == nil {
		fs.all = map[*flight]bool{}
	}
	fs.all[f] = true
	return f
}

// stage adds a flight that nobody joins.
func (fs *flights) stage(c session.Compaction) *flight {
	fs.mu.Lock()
	f := fs.add(c.SessionID, "")
	fs.mu.Unlock()
	fs.took(f, c, Preview{})
	return f
}

// took notes the running record of a flight.
func (fs *flights) took(f *flight, c session.Compaction, p Preview) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.record, f.out = c.RowID, outcome{record: c, preview: p}
	close(f.begun)
}

// enter gives the context under which a model is asked, and what ends the flight.
func (fs *flights) enter(ctx context.Context, f *flight) (asked context.Context, end func(outcome)) {
	asked, cancel := context.WithCancelCause(ctx)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.cancel = cancel; f.gone {
		cancel(errCancelled)
	}
	return asked, func(out outcome) {
		cancel(nil)
		fs.land(f, out)
	}
}

// land ends a flight.
func (fs *flights) land(f *flight, out outcome) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.out = out
	delete(fs.all, f)
	if f.record == 0 {
		close(f.begun)
	}
	close(f.done)
}

func (fs *flights) at(f *flight) outcome {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return f.out
}

// flying tells whether a model is being asked for a session.
func (fs *flights) flying(id session.ID) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.all {
		if f.session == id && f.record > 0 {
			return true
		}
	}
	return false
}

// drop ends the asking for a record.
func (fs *flights) drop(record int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.all {
		if f.record != record {
			continue
		}
		if f.gone = true; f.cancel != nil {
			f.cancel(errCancelled)
		}
	}
}

// records gives the running records by session.
func (fs *flights) records() map[int64]session.ID {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	all := map[int64]session.ID{}
	for f := range fs.all {
		if f.record > 0 {
			all[f.record] = f.session
		}
	}
	return all
}

// Cancel gives up a compaction that runs: its record says so, and the model is no longer
// waited for. Codes: NotFound, Conflict (it does not run).
func (m *Manager) Cancel(ctx context.Context, id session.ID, compaction int64) (session.Compaction, error) {
	c, err := m.store.Compaction(ctx, id, compaction)
	if err != nil {
		return c, err
	}
	if c.Status != session.StatusRunning || c.SessionID != id {
		return c, session.Errorf(session.Conflict, "compaction %s is %s: only one that runs can be cancelled", c.ID, c.Status)
	}
	c.Status, c.Reason = session.StatusFailed, session.ReasonCancelled
	c, err = m.store.FinishCompaction(ctx, c)
	m.flights.drop(compaction) // also where another process was quicker
	return c, err
}

// DropCancelled stops asking for records that another process has cancelled.
func (m *Manager) DropCancelled(ctx context.Context) error {
	for record, id := range m.flights.records() {
		c, err := m.store.Compaction(ctx, id, record)
		switch {
		case session.CodeOf(err) == session.NotFound, err == nil && c.Status == session.StatusFailed && c.Reason == session.ReasonCancelled:
			m.flights.drop(record)
		case err != nil:
			return err
		}
	}
	return nil
}
