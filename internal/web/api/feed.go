package api

import (
	"sync"
	"time"
)

// Feed wakes the listeners of a store's outbox. Each reads it from the database, at its own pace from its own
// position: there is no queue per listener.
type Feed struct {
	Pulse  time.Duration // between two heartbeats; 0: 15 s
	MaxLag int64         // events that a listener may fall behind after it was up to date; then its stream is closed; 0: 10,000

	mu        sync.Mutex
	wake      chan struct{} // closed at the next nudge
	listeners int
}

const (
	defaultPulse  = 15 * time.Second
	defaultMaxLag = 10_000
	feedPage      = 500 // events of one reading
	maxListeners  = 256
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
