package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"sessiond/internal/engine"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Purger deletes sessions from the store and the index, for the daemon and for commands.
type Purger struct {
	Store     *store.Store
	Index     *search.Index // nil: the database has none
	BackupDir string        // searched for copies that still contain the text, beside the database's folder; "": none
	Log       zerolog.Logger
	Purged    func() // called after a session was hidden, to clear caches of messages; may be nil

	turn sync.Mutex // one deletion at a time
}

// Purge deletes a session for good. With scrub, the two files contain no byte of it afterwards. It
// ignores the end of ctx once the session is hidden, because a half deleted session cannot be restored.
// Codes: NotFound, PreconditionFailed, Busy (scrubbing: a reader uses a log).
func (p *Purger) Purge(ctx context.Context, in store.PurgeRequest) (session.Purged, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	done := session.Purged{ID: in.Session, Backups: []string{}}
	work, deleted, err := p.Store.BeginPurge(ctx, in)
	if err != nil {
		return done, err
	}
	ctx = context.WithoutCancel(ctx)
	if p.Purged != nil {
		p.Purged()
	}
	if done.Messages = deleted; work != nil {
		if done.Messages, err = p.delete(ctx, work); err != nil {
			return done, err
		}
		done.Shared = work.Shared()
		if in.Idem != nil {
			if err := p.Store.RememberPurged(ctx, in.Idem, done.Messages); err != nil {
				return done, err
			}
		}
	}
	if done.Backups, err = p.Store.CopiesHolding(ctx, in.Session, p.folders()...); err != nil {
		return done, err
	}
	if in.Scrub {
		if err = p.resume(ctx); err == nil { // an earlier daemon may have stopped during a purge
			err = p.scrub(ctx)
		}
		done.Scrubbed = err == nil
	}
	return done, err
}

// PurgeAgain purges in a restored database what the replaced one had purged, by that one's tombstones, and returns
// the ids. It keeps tombstones of sessions that are not here. With keep, sessions that are here stay and have none.
func (p *Purger) PurgeAgain(ctx context.Context, purged []store.PurgedSource, keep bool) ([]session.ID, error) {
	named, err := p.Store.AddTombstones(ctx, purged)
	if err != nil || keep {
		return nil, err
	}
	for _, id := range named {
		if _, err := p.Purge(ctx, store.PurgeRequest{Session: id}); err != nil {
			return nil, fmt.Errorf("purge %s again: %w", id, err)
		}
	}
	return named, nil
}

// Resume finishes interrupted purges. Call it before the index catches up.
func (p *Purger) Resume(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.resume(ctx)
}

func (p *Purger) resume(ctx context.Context) error {
	ids, err := p.Store.Purging(ctx)
	if err != nil {
		return fmt.Errorf("list unfinished purges: %w", err)
	}
	return p.finish(ctx, ids)
}

// finish finishes interrupted purges. One that fails does not keep the others from their end.
func (p *Purger) finish(ctx context.Context, ids []session.ID) error {
	var failed []error
	for _, id := range ids {
		if ctx.Err() != nil {
			failed = append(failed, ctx.Err())
			break
		}
		work, err := p.Store.ResumePurge(ctx, id)
		if err == nil {
			_, err = p.delete(ctx, work)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("finish the purge of %s: %w", id, err))
		}
	}
	return errors.Join(failed...)
}

// Scrub rewrites both files if they may contain purged bytes, and reports whether it did.
func (p *Purger) Scrub(ctx context.Context) (bool, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := p.resume(ctx); err != nil { // an interrupted purge leaves bytes to scrub
		return false, err
	}
	since, err := p.Store.Unscrubbed(ctx)
	if err != nil || since == nil {
		return false, err
	}
	return true, p.scrub(ctx)
}

func (p *Purger) scrub(ctx context.Context) error {
	if err := p.Index.Scrub(ctx); err != nil {
		return err
	}
	return p.Store.Scrub(ctx) // last: it records that both files are clean
}

func (p *Purger) delete(ctx context.Context, work *store.Purge) (messages int64, err error) {
	forget := func(context.Context, []int64) error { return nil }
	if p.Index != nil {
		// After this catch-up no process indexes a message of the session again.
		if _, err := p.Index.CatchUp(ctx); err != nil {
			return 0, fmt.Errorf("catch up the search index before the purge: %w", err)
		}
		forget = p.Index.Forget
	}
	for {
		rows, err := work.Doomed(ctx)
		if err != nil {
			return messages, err
		}
		if len(rows) == 0 {
			break
		}
		if err := errors.Join(forget(ctx, rows), ctx.Err()); err != nil {
			return messages, err
		}
		if err := work.Delete(ctx, rows); err != nil {
			return messages, err
		}
		messages += int64(len(rows))
	}
	shells, err := work.Finish(ctx)
	if err != nil {
		return messages, err
	}
	return messages, p.finish(ctx, shells)
}

func (p *Purger) folders() []string {
	if engine.IsPostgres(p.Store.File()) {
		return []string{p.BackupDir}
	}
	folders := []string{filepath.Dir(p.Store.File())}
	if p.BackupDir != "" && p.BackupDir != folders[0] {
		folders = append(folders, p.BackupDir)
	}
	return folders
}
