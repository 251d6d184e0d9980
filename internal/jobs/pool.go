package jobs

import (
	"slices"

	"sessiond/internal/session"
)

// pool is a queue of sessions and the goroutines that work on them: several at once, one per session.
// A waiting session is not queued again. The Runner's mutex guards it.
type pool struct {
	limit   int // goroutines
	work    func(id session.ID)
	waiting []session.ID
	busy    map[session.ID]bool
}

// add queues a session.
func (r *Runner) add(p *pool, id session.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(p.waiting, id) {
		p.waiting = append(p.waiting, id)
	}
	r.fill(p)
}

// fill starts goroutines up to the limit. The caller holds the mutex.
func (r *Runner) fill(p *pool) {
	for !r.stopped && len(p.busy) < p.limit {
		i := slices.IndexFunc(p.waiting, func(id session.ID) bool { return !p.busy[id] })
		if i < 0 {
			return
		}
		id := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.busy[id] = true
		r.wg.Go(func() {
			defer func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(p.busy, id)
				r.fill(p)
			}()
			p.work(id)
		})
	}
}

// contains reports whether a session waits or is in work. The caller holds the mutex.
func (p *pool) contains(id session.ID) bool { return p.busy[id] || slices.Contains(p.waiting, id) }
