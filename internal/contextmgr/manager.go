package contextmgr

import (
	"sync"
	"time"

	"sessiond/internal/session"
)

// Manager hands out contexts and makes, stages, activates and undoes overlays. It is safe
// for use by many goroutines; what changes a session's overlays goes one after the other.
type Manager struct {
	store   Store
	cfg     Config
	weights weightMemory
	images  imageMemory
	paths   pathMemory
	turns   turnLocks
	flights flights
	asked   askedMemory
}

// New makes a Manager. cfg.Digest, cfg.Counter and cfg.Models are needed.
func New(store Store, cfg Config) *Manager {
	if cfg.Mask == nil {
		cfg.Mask = func(s string) string { return s }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnSoft == nil {
		cfg.OnSoft = func(session.ID) {}
	}
	return &Manager{store: store, cfg: cfg, turns: turnLocks{busy: map[session.ID]*turnLock{}}}
}

// turnLocks lets one commit at a time into a session's overlays.
type turnLocks struct {
	mu   sync.Mutex
	busy map[session.ID]*turnLock
}

type turnLock struct {
	sync.Mutex
	users int
}

// lock waits for the session and gives what releases it.
func (t *turnLocks) lock(id session.ID) (release func()) {
	t.mu.Lock()
	l := t.busy[id]
	if l == nil {
		l = &turnLock{}
		t.busy[id] = l
	}
	l.users++
	t.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.busy, id)
		}
	}
}
