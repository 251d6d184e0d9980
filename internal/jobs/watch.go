package jobs

import (
	"runtime/debug"
	"time"

	"sessiond/internal/session"
)

// watcher is the state of runWatch between two checks.
type watcher struct {
	*Runner
	version int64     // changes when another process writes
	wrote   time.Time // last known write
	emptied bool      // the log was emptied since then
	freed   bool      // memory was given back since then
	drafts  time.Time // last removal of empty drafts
	journal journal
}

func (w *watcher) look() {
	_ = w.cfg.Store.Probe(w.ctx) // the store logs what it finds
	w.logEvents(w.ctx)
	version, err := w.cfg.Store.DataVersion(w.ctx)
	if err != nil {
		return // stopping, or the database is busy: check again in a second
	}
	if version != w.version {
		w.forgetPurged(w.version)
		w.version, w.wrote, w.emptied, w.freed = version, w.cfg.Now(), false, false
		w.signalChange()
		if w.cfg.Noticed != nil {
			w.cfg.Noticed()
		}
		w.cfg.Contexts.Forget()
		if err := w.cfg.Contexts.DropCancelled(w.ctx); err != nil && w.ctx.Err() == nil {
			w.cfg.Log.Error().Err(err).Msg("cannot stop requests that another process cancelled")
		}
	}
	if last := w.lastChange(); last.After(w.wrote) {
		w.wrote, w.emptied, w.freed = last, false, false
	}
	if !w.freed && w.cfg.Now().Sub(w.wrote) >= memoryIdle {
		w.cfg.Contexts.Forget()
		debug.FreeOSMemory()
		w.freed = true
	}
	if !w.emptied && w.cfg.Now().Sub(w.wrote) >= walIdle {
		done, err := w.cfg.Store.TruncateWAL(w.ctx)
		w.emptied = done && err == nil
		if !w.emptied {
			w.wrote = w.cfg.Now() // a reader uses it: retry after another pause
		}
	}
	w.forgetDrafts()
	for _, id := range w.takeIdle() {
		_, waits, err := w.cfg.Contexts.ActivateIdle(w.ctx, id)
		if waits {
			w.watchIdle(id)
		}
		w.logError(err, id, "cannot activate a staged compaction")
	}
}

// forgetPurged cleans this host's index of what another host's daemon purged after a version, also while this
// one did not run.
func (w *watcher) forgetPurged(after int64) {
	purged, err := w.cfg.Store.PurgedElsewhere(w.ctx, after)
	if err == nil && purged {
		err = w.cfg.Index.ForgetPurged(w.ctx)
	}
	if err != nil && w.ctx.Err() == nil {
		w.cfg.Log.Error().Err(err).Msg("the search index may keep words of a session that another daemon purged; " +
			"the next start removes them")
	}
}

// Empty drafts older than draftAge are removed every draftInterval.
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
		w.cfg.Log.Error().Err(err).Msg("cannot remove empty drafts")
	}
}

// seed watches the sessions with a compaction that an earlier daemon staged. It takes effect at the
// first check if the session is idle by then.
func (r *Runner) seed() {
	staged, err := r.cfg.Store.Staged(r.ctx)
	if err != nil {
		if r.ctx.Err() == nil {
			r.cfg.Log.Error().Err(err).Msg("cannot read staged compactions; they wait for the next turns of their sessions")
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

// takeIdle returns the idle sessions and stops watching them.
func (r *Runner) takeIdle() []session.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []session.ID
	for id, at := range r.active {
		if r.cfg.Now().Sub(at) >= sessionIdle && !r.digests.contains(id) {
			ids = append(ids, id)
			delete(r.active, id)
		}
	}
	return ids
}

// watchIdle watches a session for another idle time.
func (r *Runner) watchIdle(id session.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[id] = r.cfg.Now()
}
