package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Feed serves the outbox to its listeners. Each reads at its own pace from its own position. The
// newest events are cached, so that many listeners cost one read; a slow listener reads from the
// database. There is no queue per listener.
type Feed struct {
	Pulse  time.Duration // between two heartbeats; 0: 15 s
	MaxLag int64         // events that a listener may fall behind after it was up to date; then its stream is closed; 0: 10,000

	store *store.Store

	mu         sync.Mutex
	wake       chan struct{}   // closed at the next nudge
	recent     []session.Event // the events in (from, upto]
	from, upto int64
	listeners  int
}

const (
	defaultPulse  = 15 * time.Second
	defaultMaxLag = 10_000
	feedPage      = 500  // events of one reading
	feedRecent    = 4096 // events in memory
	maxListeners  = 256
)

// NewFeed makes a feed of a store's outbox.
func NewFeed(s *store.Store) *Feed {
	return &Feed{store: s, wake: make(chan struct{})}
}

// Nudge wakes the listeners after a possible write. It does not block.
func (f *Feed) Nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == 0 { // whoever comes reads before waiting
		return
	}
	close(f.wake)
	f.wake = make(chan struct{})
}

// next is closed at the next nudge.
func (f *Feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wake
}

// enter counts a new listener; false: there are too many.
func (f *Feed) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == maxListeners {
		return false
	}
	f.listeners++
	return true
}

func (f *Feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners
}

func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners--
}

// after returns the events after one, at most a page; none: it was the last.
func (f *Feed) after(ctx context.Context, id int64) ([]session.Event, error) {
	ctx = session.WithoutScope(ctx) // what is cached is for all listeners
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == 0 {
		f.from, f.upto = id, id
	}
	if id < f.from {
		return f.store.EventsAfter(ctx, id, feedPage)
	}
	if id >= f.upto {
		events, err := f.store.EventsAfter(ctx, f.upto, feedPage)
		if err != nil || len(events) == 0 {
			return nil, err
		}
		f.remember(events)
	}
	at, found := slices.BinarySearchFunc(f.recent, id, func(e session.Event, id int64) int { return cmp.Compare(e.RowID, id) })
	if found {
		at++
	}
	return slices.Clone(f.recent[at:min(at+feedPage, len(f.recent))]), nil
}

func (f *Feed) remember(events []session.Event) {
	f.recent = append(f.recent, events...)
	f.upto = events[len(events)-1].RowID
	if old := len(f.recent) - feedRecent; old > 0 {
		f.from = f.recent[old-1].RowID
		f.recent = slices.Clone(f.recent[old:])
	}
}
