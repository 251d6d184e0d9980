package api

import (
	"context"
	"sync"
	"time"

	"sessiond/internal/session"
)

// Feed wakes the listeners of a store's outbox. Each reads it from the database, at its own pace from its own
// position: there is no queue per listener.
type Feed struct {
	Pulse time.Duration // between two heartbeats; 0: 15 s
	// events that a listener may fall behind after it was up to date; then its stream is closed; 0: 10,000
	MaxLag int64

	mu        sync.Mutex
	wake      chan struct{} // closed at the next nudge
	listeners int
	byOwner   map[string]int // of named tokens
}

const (
	defaultPulse  = 15 * time.Second
	defaultMaxLag = 10_000
	feedPage      = 500 // events of one reading
	maxListeners  = 256
	maxOfToken    = 32 // of one owner's named tokens
)

// NewFeed makes a feed without listeners.
func NewFeed() *Feed { return &Feed{wake: make(chan struct{})} }

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

// enter counts a new listener. Codes: Busy (there are too many).
func (f *Feed) enter(ctx context.Context) (leave func(), err error) {
	scope, limited := session.ScopeOf(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.listeners == maxListeners:
		return nil, session.Errorf(session.Busy, "%d clients listen already, which is the limit: close one, or retry",
			maxListeners)
	case limited && f.byOwner[scope.Owner] == maxOfToken:
		return nil, session.Errorf(session.Busy,
			"%d clients listen already with the tokens of %s, which is their limit: close one, or retry", maxOfToken,
			scope.Owner)
	}
	f.listeners++
	if limited {
		if f.byOwner == nil {
			f.byOwner = map[string]int{}
		}
		f.byOwner[scope.Owner]++
	}
	return sync.OnceFunc(func() { f.leave(scope.Owner, limited) }), nil
}

func (f *Feed) leave(owner string, limited bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners--
	if !limited {
		return
	}
	if f.byOwner[owner]--; f.byOwner[owner] == 0 {
		delete(f.byOwner, owner)
	}
}

func (f *Feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners
}
