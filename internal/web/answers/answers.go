// Package answers bounds the memory of the answers that are being made: each reserves what it may need before it
// reads. Appends and turns reserve nothing, so they never wait here.
package answers

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"sessiond/internal/session"
)

// Defaults of a Budget.
const (
	defaultSize = 128 << 20
	patience    = 10 * time.Second
)

// Budget is the memory that all answers together may need. The zero value works.
type Budget struct {
	Size     int64         // in bytes; 0: 128 MiB
	Patience time.Duration // how long an answer waits for others to end; 0: 10 s

	mu      sync.Mutex
	held    int64
	byOwner map[string]int64 // of named tokens: one of them gets at most half
	waiting []*waiter        // in the order in which they came
}

type waiter struct {
	bytes   int64
	owner   string
	limited bool
	ready   chan struct{} // closed once the bytes are reserved
}

// Reserve reserves memory for an answer. An answer that needs more than there is gets all of it. The caller calls
// release once the answer is written. Codes: Busy (others do not end in time).
func (b *Budget) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	w := &waiter{ready: make(chan struct{})}
	var scope session.Scope
	scope, w.limited = session.ScopeOf(ctx)
	w.owner = scope.Owner
	b.mu.Lock()
	if w.bytes = min(bytes, b.size()); w.limited {
		w.bytes = min(bytes, b.size()/2)
	}
	b.waiting = append(b.waiting, w)
	b.admit()
	b.mu.Unlock()
	timer := time.NewTimer(b.patience())
	defer timer.Stop()
	select {
	case <-w.ready:
		return sync.OnceFunc(func() { b.release(w) }), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = session.Errorf(session.Busy, "other large answers are being written: try again soon")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.admit() // those behind it
		return nil, err
	}
	return sync.OnceFunc(func() { b.release(w) }), nil // it was admitted just now
}

// admit reserves for those that wait as far as there is room, in their order. A token that has its share lets
// others pass. The mutex must be held.
func (b *Budget) admit() {
	for i := 0; i < len(b.waiting); {
		w := b.waiting[i]
		if w.limited && b.byOwner[w.owner]+w.bytes > b.size()/2 {
			i++
			continue
		}
		if b.held+w.bytes > b.size() {
			return
		}
		b.add(w, w.bytes)
		b.waiting = slices.Delete(b.waiting, i, i+1)
		close(w.ready)
	}
}

func (b *Budget) release(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(w, -w.bytes)
	b.admit()
}

func (b *Budget) add(w *waiter, bytes int64) {
	b.held += bytes
	if !w.limited {
		return
	}
	if b.byOwner == nil {
		b.byOwner = map[string]int64{}
	}
	if b.byOwner[w.owner] += bytes; b.byOwner[w.owner] == 0 {
		delete(b.byOwner, w.owner)
	}
}

func (b *Budget) size() int64 {
	if b.Size > 0 {
		return b.Size
	}
	return defaultSize
}

func (b *Budget) patience() time.Duration {
	if b.Patience > 0 {
		return b.Patience
	}
	return patience
}

// writePatience is how long one write of a long answer may take.
const writePatience = 2 * time.Minute

// Patient returns a writer of a long answer: it limits the time of each write, not of the whole answer.
func Patient(w http.ResponseWriter) io.Writer { return patient{w, http.NewResponseController(w)} }

type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writePatience)) // fails only without deadlines
	return p.ResponseWriter.Write(b)
}
