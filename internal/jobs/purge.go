package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// PurgeStore deletes sessions for good.
type PurgeStore interface {
	BeginPurge(ctx context.Context, in store.PurgeRequest) (p *store.Purge, deleted int64, err error)
	RememberPurged(ctx context.Context, idem *store.Idempotency, deleted int64) error
	ResumePurge(ctx context.Context, id session.ID) (*store.Purge, error)
	Purging(ctx context.Context) ([]session.ID, error)
	Unscrubbed(ctx context.Context) (*session.Time, error)
	Scrub(ctx context.Context) error
	CopiesHolding(ctx context.Context, id session.ID, folders ...string) ([]string, error)
	File() string
}

// PurgeIndex forgets what is deleted.
type PurgeIndex interface {
	CatchUp(ctx context.Context) (int, error)
	Forget(ctx context.Context, rows []int64) error
	Scrub(ctx context.Context) error
}

// Purger deletes sessions out of the store and the index together, for the daemon and for
// commands alike.
type Purger struct {
	Store     PurgeStore
	Index     PurgeIndex
	BackupDir string // is looked through for copies that still hold the text; "": only the database's folder is
	Log       zerolog.Logger
	Purged    func() // a session is hidden for good: whoever remembers messages forgets them; nil: nobody

	turn sync.Mutex // one deletion at a time
}

// Purge deletes a session for good; with scrub, no byte of it is left in the two files when it
// returns. It outlives ctx once the session is hidden: what is half deleted comes from nowhere
// back. Codes: NotFound, PreconditionFailed, Busy (scrubbing: a reader holds a log).
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
		if err = p.resume(ctx); err == nil { // of one that a daemon before broke off
			err = p.scrub(ctx)
		}
		done.Scrubbed = err == nil
	}
	return done, err
}

// Resume ends deletions that were broken off. It is called before the index is caught up.
func (p *Purger) Resume(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.resume(ctx)
}

func (p *Purger) resume(ctx context.Context) error {
	ids, err := p.Store.Purging(ctx)
	if err != nil {
		return fmt.Errorf("unfinished purges: %w", err)
	}
	return p.finish(ctx, ids)
}

// finish goes on with deletions that were begun.
func (p *Purger) finish(ctx context.Context, ids []session.ID) error {
	for _, id := range ids {
		work, err := p.Store.ResumePurge(ctx, id)
		if err == nil {
			_, err = p.delete(ctx, work)
		}
		if err != nil {
			return fmt.Errorf("finish the purge of %s: %w", id, err)
		}
	}
	return nil
}

// Scrub rewrites both files if they may hold bytes of what was purged, and tells whether they did.
func (p *Purger) Scrub(ctx context.Context) (bool, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := p.resume(ctx); err != nil { // it may be what there is to scrub
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
	return p.Store.Scrub(ctx) // last: it notes that all is clean
}

func (p *Purger) delete(ctx context.Context, work *store.Purge) (messages int64, err error) {
	// From here on nobody indexes a message of it anew.
	if _, err := p.Index.CatchUp(ctx); err != nil {
		return 0, fmt.Errorf("catch up the search index before the purge: %w", err)
	}
	for {
		rows, err := work.Doomed(ctx)
		if err != nil {
			return messages, err
		}
		if len(rows) == 0 {
			break
		}
		if err := errors.Join(p.Index.Forget(ctx, rows), ctx.Err()); err != nil {
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
	folders := []string{filepath.Dir(p.Store.File())}
	if p.BackupDir != "" && p.BackupDir != folders[0] {
		folders = append(folders, p.BackupDir)
	}
	return folders
}
