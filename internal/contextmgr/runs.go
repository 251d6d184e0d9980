package contextmgr

import (
	"context"
	"errors"
	"sync"

	"sessiond/internal/session"
)

// errCancelled is the cause with which a cancelled compaction stops asking its model.
var errCancelled = errors.New("the compaction was cancelled")

// runs are the compactions in progress. Callers that ask for the same one share it, and a caller
// can cancel it.
type runs struct {
	mu  sync.Mutex
	all map[*run]bool
}

// run is a compaction in progress.
type run struct {
	session session.ID
	request string          // what was asked for, as JSON; "": staged, not shared
	begun   chan struct{}   // closed when its record exists, or it ended
	done    chan struct{}   // closed when it ended
	ctx     context.Context // done when it is cancelled
	cancel  context.CancelCauseFunc

	record  int64 // its running record; 0: none; guarded by runs.mu
	outcome outcome
}

// outcome is the result of a run; until it ended, its running record.
type outcome struct {
	record  session.Compaction
	preview Preview
	err     error
}

// join returns the run that makes what is asked for. leads reports whether it is new: the caller
// then does the work.
func (rs *runs) join(id session.ID, in CompactInput) (r *run, leads bool) {
	in.Idem = nil
	request := string(session.JSONOf(in))
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for r := range rs.all {
		if r.session == id && r.request == request && r.ctx.Err() == nil {
			return r, false
		}
	}
	return rs.newRun(id, request), true
}

// newRun adds a run. The mutex must be held.
func (rs *runs) newRun(id session.ID, request string) *run {
	r := &run{session: id, request: request, begun: make(chan struct{}), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	rs.all[r] = true
	return r
}

// addStaged adds a run of a staged summary, which other callers cannot join.
func (rs *runs) addStaged(c session.Compaction) *run {
	rs.mu.Lock()
	r := rs.newRun(c.SessionID, "")
	rs.mu.Unlock()
	rs.begin(r, c, Preview{})
	return r
}

// begin sets the running record of a run.
func (rs *runs) begin(r *run, c session.Compaction, p Preview) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.record, r.outcome = c.RowID, outcome{record: c, preview: p}
	close(r.begun)
}

// end ends a run.
func (rs *runs) end(r *run, out outcome) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.outcome = out
	delete(rs.all, r)
	if r.record == 0 {
		close(r.begun)
	}
	close(r.done)
	r.cancel(nil)
}

func (rs *runs) outcomeOf(r *run) outcome {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return r.outcome
}

// withCancel returns a context that also ends when the run is cancelled.
func (r *run) withCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if r.ctx.Err() != nil {
		cancel(errCancelled)
	}
	stop := context.AfterFunc(r.ctx, func() { cancel(errCancelled) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// asksModel reports whether a model is asked for a session.
func (rs *runs) asksModel(id session.ID) bool {
	for _, running := range rs.records() {
		if running == id {
			return true
		}
	}
	return false
}

// cancel stops the run of a record.
func (rs *runs) cancel(record int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for r := range rs.all {
		if r.record == record {
			r.cancel(errCancelled)
		}
	}
}

// records returns the sessions of the running records.
func (rs *runs) records() map[int64]session.ID {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	all := map[int64]session.ID{}
	for r := range rs.all {
		if r.record > 0 {
			all[r.record] = r.session
		}
	}
	return all
}

// Cancel stops a running compaction and its call of the model. Codes: NotFound, Conflict (it does
// not run).
func (m *Manager) Cancel(ctx context.Context, id session.ID, compaction int64) (session.Compaction, error) {
	c, err := m.store.Compaction(ctx, id, compaction)
	if err != nil {
		return c, err
	}
	if c.Status != session.StatusRunning || c.SessionID != id {
		return c, session.Errorf(session.Conflict, "compaction %s is %s: only a running one can be cancelled", c.ID, c.Status)
	}
	c.Status, c.Reason = session.StatusFailed, session.ReasonCancelled
	c, err = m.store.FinishCompaction(ctx, c)
	m.running.cancel(compaction) // also if another process finished it first
	return c, err
}

// DropCancelled stops the runs whose records another process has cancelled.
func (m *Manager) DropCancelled(ctx context.Context) error {
	for record, id := range m.running.records() {
		c, err := m.store.Compaction(ctx, id, record)
		switch {
		case session.CodeOf(err) == session.NotFound,
			err == nil && c.Status == session.StatusFailed && c.Reason == session.ReasonCancelled:
			m.running.cancel(record)
		case err != nil:
			return err
		}
	}
	return nil
}
