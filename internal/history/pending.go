package history

import (
	"sync"

	"sessiond/internal/session"
)

// pending is what was given to the store and is not there yet, by the names under which a
// source may ask for it. What is not among it can be looked up at once, so that the next
// file is read while the last one is still being stored.
type pending struct {
	mu       sync.Mutex
	nameless int                // batches of which the session is known by neither name
	sessions map[string]int     // by their ids in the source
	ids      map[session.ID]int // by their own
	paths    map[string]int     // of cursors
	calls    map[string]int     // by their external ids
}

func newPending() *pending {
	return &pending{sessions: map[string]int{}, ids: map[session.ID]int{}, paths: map[string]int{}, calls: map[string]int{}}
}

func (p *pending) given(b *Batch)   { p.note(b, 1) }
func (p *pending) settled(b *Batch) { p.note(b, -1) }

func (p *pending) note(b *Batch, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(p.ids, b.ID, n)
	add(p.sessions, b.Session.SourceID, n)
	if b.ID == "" && b.Session.SourceID == "" && (b.Session.Source != "" || len(b.Messages) > 0) {
		p.nameless += n
	}
	if b.Cursor != nil {
		add(p.paths, b.Cursor.Path, n)
	}
	for i := range b.Calls {
		add(p.calls, b.Calls[i].ExternalID, n)
	}
}

func add[K ~string](counts map[K]int, key K, n int) {
	if key == "" {
		return
	}
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

func (p *pending) session(sourceID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nameless > 0 || p.sessions[sourceID] > 0
}

func (p *pending) id(id session.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nameless > 0 || p.ids[id] > 0
}

func (p *pending) path(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paths[path] > 0
}

func (p *pending) call(externalID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[externalID] > 0
}
