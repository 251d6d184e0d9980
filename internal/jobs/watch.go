package jobs

import (
	"time"

	"sessiond/internal/session"
)

// watcher is what watch remembers from one look to the next.
type watcher struct {
	*Runner
	version int64     // of the file as other processes write it
	wrote   time.Time // when somebody last wrote, as far as is known
	emptied bool      // the log was emptied since
	drafts  time.Time // when empty drafts were last looked for
}

func (w *watcher) look() {
	version, err := w.cfg.Store.DataVersion(w.ctx)
	if err != nil {
		return // stopping, or the database is busy: look again in a second
	}
	if version != w.version {
		w.version, w.wrote, w.emptied = version, w.cfg.Now(), false
		w.nudge(w.changed)
		if w.cfg.Noticed != nil {
			w.cfg.Noticed()
		}
		w.cfg.Contexts.Forget()
		if err := w.cfg.Contexts.DropCancelled(w.ctx); err != nil && w.ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Msg("what another process cancelled goes on")
		}
	}
	if last := w.lastChange(); last.After(w.wrote) {
		w.wrote, w.emptied = last, false
	}
	if !w.emptied && w.cfg.Now().Sub(w.wrote) >= walIdle {
		done, err := w.cfg.Store.TruncateWAL(w.ctx)
		w.emptied = done && err == nil
		if !w.emptied {
			w.wrote = w.cfg.Now() // a reader holds it: try again after another quiet while
		}
	}
	w.forgetDrafts()
	for _, id := range w.resting() {
		_, waits, err := w.cfg.Contexts.ActivateIdle(w.ctx, id)
		if waits {
			w.restAgain(id)
		}
		if err != nil && w.ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Str("session", string(id)).Msg("a staged compaction could not take effect")
		}
	}
}

// draftInterval is how often empty drafts are looked for, draftAge how old they must be.
const (
	draftInterval = time.Hour
	draftAge      = 24 * time.Hour
)

func (w *watcher) forgetDrafts() {
	now := w.cfg.Now()
	if now.Sub(w.drafts) < draftInterval {
		return
	}
	w.drafts = now
	if _, err := w.cfg.Store.ForgetDrafts(w.ctx, now.Add(-draftAge)); err != nil && w.ctx.Err() == nil {
		w.cfg.Log.Error().Err(err).Msg("empty drafts could not be removed")
	}
}

// seed goes on with what an earlier daemon had made ready: where the session has been quiet for
// long enough meanwhile, it takes effect at the first look.
func (r *Runner) seed() {
	staged, err := r.cfg.Store.Staged(r.ctx)
	if err != nil {
		if r.ctx.Err() == nil {
			r.cfg.Log.Error().Err(err).Msg("what was staged before waits for the next turns of its sessions")
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range staged {
		if _, ok := r.active[s.Session]; !ok {
			r.active[s.Session] = s.Since.Time
		}
	}
}

// resting gives the sessions that have been quiet long enough, once.
func (r *Runner) resting() []session.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []session.ID
	for id, at := range r.active {
		if r.cfg.Now().Sub(at) >= sessionIdle && !r.digests.holds(id) {
			ids = append(ids, id)
			delete(r.active, id)
		}
	}
	return ids
}

// restAgain looks at a session once more after another quiet while.
func (r *Runner) restAgain(id session.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[id] = r.cfg.Now()
}
