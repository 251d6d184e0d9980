package jobs

import (
	"slices"

	"sessiond/internal/session"
)

// pool works on sessions in the order in which they asked, several at once and each of them by
// one goroutine at a time. A session that waits already is not queued again. The Runner's mutex
// guards it.
type pool struct {
	limit   int // sessions at once
	work    func(id session.ID)
	waiting []session.ID
	busy    map[session.ID]bool
}

// add queues a session and works on it as soon as there is room.
func (r *Runner) add(p *pool, id session.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(p.waiting, id) {
		p.waiting = append(p.waiting, id)
	}
	r.fill(p)
}

// fill starts what there is room for; the mutex is held.
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

// holds tells whether a session waits or is worked on; the mutex is held.
func (p *pool) holds(id session.ID) bool { return p.busy[id] || slices.Contains(p.waiting, id) }
