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
	back       int // how often the database went back
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

func (f *Feed) wentBack() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.back
}

func (f *Feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners
}

func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners--; f.listeners == 0 {
		f.recent = nil // no listener compares it with the database meanwhile
	}
}

// after returns the events after one, at most a page; none: it was the last. back counts how often the database
// went back, because a backup was restored or a server took over that lacks the last writes: the events that
// listeners got are not all in it then, and ids are used again.
func (f *Feed) after(ctx context.Context, id int64) (events []session.Event, back int, err error) {
	ctx = session.WithoutScope(ctx) // what is cached is for all listeners
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == 0 {
		f.from, f.upto = id, id
	}
	if id < f.from {
		events, err = f.store.EventsAfter(ctx, id, feedPage)
		return events, f.back, err
	}
	if id >= f.upto {
		if err := f.refresh(ctx); err != nil {
			return nil, f.back, err
		}
	}
	at, found := slices.BinarySearchFunc(f.recent, id, func(e session.Event, id int64) int { return cmp.Compare(e.RowID, id) })
	if found {
		at++
	}
	return slices.Clone(f.recent[at:min(at+feedPage, len(f.recent))]), f.back, nil
}

// refresh reads the events after upto. It also reads the one at upto, to notice that the database went back. That
// one may also be missing because it is old, or of a purged session.
func (f *Feed) refresh(ctx context.Context) error {
	events, err := f.store.EventsAfter(ctx, f.upto-1, feedPage)
	if err != nil {
		return err
	}
	went := false
	switch known := len(f.recent) > 0; {
	case len(events) == 0:
		if went, err = f.store.EventsWentBack(ctx, f.upto); err != nil {
			return err
		}
	case events[0].RowID == f.upto && known:
		newest := f.recent[len(f.recent)-1]
		went = events[0].SessionID != newest.SessionID || events[0].Type != newest.Type || !events[0].CreatedAt.Equal(newest.CreatedAt.Time)
		events = events[1:]
	case events[0].RowID == f.upto:
		f.from--
	}
	if went {
		f.recent = nil
		f.back++
		return nil
	}
	if len(events) > 0 {
		f.remember(events)
	}
	return nil
}

func (f *Feed) remember(events []session.Event) {
	f.recent = append(f.recent, events...)
	f.upto = events[len(events)-1].RowID
	if old := len(f.recent) - feedRecent; old > 0 {
		f.from = f.recent[old-1].RowID
		f.recent = slices.Clone(f.recent[old:])
	}
}
