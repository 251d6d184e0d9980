package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sessiond/internal/session"
)

// Feed hands the outbox to those who listen. They read at their own pace, each from where it
// stands; the newest events are kept in memory, so that many listeners cost one reading.
// Nothing is queued for anybody: who is slow reads from the database.
type Feed struct {
	Pulse  time.Duration // between two heartbeats; 0: 15 s
	MaxLag int64         // events that a listener who was up to date may fall behind before it is sent away; 0: 10,000

	store Outbox

	mu         sync.Mutex
	wake       chan struct{}   // closed at the next nudge
	recent     []session.Event // the events in (from, upto]
	from, upto int64
	listeners  int
}

// Outbox is where events come from: the store.
type Outbox interface {
	EventsAfter(ctx context.Context, after int64, limit int) ([]session.Event, error)
	EventRange(ctx context.Context) (epoch string, removed, last int64, err error)
}

const (
	defaultPulse  = 15 * time.Second
	defaultMaxLag = 10_000
	feedPage      = 500  // events of one reading
	feedRecent    = 4096 // events in memory
	maxListeners  = 256
)

// NewFeed makes a feed of a store's outbox.
func NewFeed(store Outbox) *Feed {
	return &Feed{store: store, wake: make(chan struct{})}
}

// Nudge tells that something may have been written. It does not block.
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

// enter counts a listener in; false: there are too many.
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

// after gives the next events after one, at most a page; none: that was the last.
func (f *Feed) after(ctx context.Context, id int64) ([]session.Event, error) {
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
