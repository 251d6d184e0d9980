package history

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Store is what an Importer needs of the store.
type Store interface {
	PrepareImport(b *store.ImportBatch) error
	Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error)
	Restore(ctx context.Context, b store.RestoreBatch) (store.ImportResult, error)
	DataVersion(ctx context.Context) (int64, error)
	Awaited() (bool, error)
	ImportCursor(ctx context.Context, source session.Source, path string) (*store.ImportCursor, error)
	SessionBySource(ctx context.Context, source session.Source, sourceID string) (session.Session, error)
	Session(ctx context.Context, id session.ID) (session.Session, error)
	MessageByKey(ctx context.Context, id session.ID, externalID string) (*session.MessageRef, error)
	SessionOfCall(ctx context.Context, source session.Source, externalID string) (session.ID, error)
	Messages(ctx context.Context, id session.ID, p store.MessagePage) ([]session.Message, bool, error)
}

// Importer feeds a store from sources. The zero value of all fields but Store works.
type Importer struct {
	Store Store

	// Pause is the time between two commits, or several short ones, so that live appends are
	// not held up: if it is 0 it is 2 ms, and 10 ms while others write or wait; none if it is negative.
	Pause time.Duration

	// Polite makes small transactions, with longer pauses between them: for an importer that
	// others in this process write beside. That other processes do is noticed.
	Polite bool

	// Wait sleeps; nil waits on the clock. It returns early with ctx's error.
	Wait func(ctx context.Context, d time.Duration) error

	// Price gives a call that has no cost the one of the catalogue; nil: it stays unknown.
	Price func(*session.Call)

	// Purged brings back sessions that were purged here; without it they stay away.
	Purged bool

	// Now is the clock; nil: time's.
	Now func() time.Time

	// Progress is told, as batches are stored, how many bytes more of a found thing are done:
	// about so many on the way, together its size; nil: nobody.
	Progress func(found Found, bytes int64)
}

// Run imports what a source has under roots, or in its usual places without roots. What
// cannot be read is told in the accounting and does not stop the rest; an error means that
// the store failed or ctx ended, and the accounting holds what was done until then.
func (im *Importer) Run(ctx context.Context, source Source, roots []string) (Accounting, error) {
	total := newAccounting(source, "")
	if len(roots) == 1 {
		total.Path = roots[0]
	}
	found, problems, err := source.Find(ctx, roots)
	total.Errors = append(total.Errors, problems...)
	if err != nil {
		return total, err
	}
	total.Errors = append(total.Errors, barren(source, roots, found, problems)...)
	_, err = im.each(ctx, source, found, func(_ Found, one Accounting) {
		total.Add(one)
	})
	return total, err
}

// barren names the roots under which nothing was found: who named them expects something.
func barren(source Source, roots []string, found []Found, problems []Problem) []Problem {
	var told []string
	for _, f := range found {
		told = append(told, f.Path)
	}
	for _, p := range problems {
		told = append(told, p.Path)
	}
	var none []Problem
	placed := map[string]bool{}
	for _, root := range roots {
		real, err := realPath(root)
		if err != nil {
			continue // a problem already
		}
		empty := true
		for _, path := range told {
			if path == root || path == real || strings.HasPrefix(path, real+string(filepath.Separator)) {
				empty, placed[path] = false, true
			}
		}
		if empty {
			none = append(none, Problem{Path: root, Error: "nothing here is a history of " + string(source.Name())})
		}
	}
	if len(placed) < len(told) {
		return nil // a link led elsewhere: it may be that root's
	}
	return none
}

// one imports one found thing. The error is as Run's. origin is the id, in its program, of the session that what was found comes from,
// while that is not here.
func (im *Importer) one(ctx context.Context, source Source, found Found) (done Accounting, origin string, err error) {
	done = newAccounting(source, found.Path)
	waiting, err := im.each(ctx, source, []Found{found}, func(_ Found, one Accounting) { done = one })
	if err != nil || len(waiting) == 0 {
		return done, "", err
	}
	cursor, err := im.Store.ImportCursor(ctx, source.Name(), found.Path)
	return done, awaited(cursor), err
}

func newAccounting(source Source, path string) Accounting {
	return Accounting{Source: source.Name(), Path: path, Records: Records{Skipped: map[string]int{}}, Errors: []Problem{}}
}

// unchanged tells whether a file is as it was when it was last read. A change that keeps
// size and time is seen when either changes next.
func unchanged(c *Cursor, f Found) bool {
	return c != nil && c.Size == f.Size && c.ModifiedAt != nil && c.ModifiedAt.Equal(session.At(f.ModifiedAt).Time)
}

// counts is what imports.counts holds: the sums over all readings of a path.
type counts struct {
	Records
	Sessions int `json:"sessions"`
}

func sessionsOf(c *Cursor) int {
	var sum counts
	if json.Unmarshal(c.Counts, &sum) == nil && sum.Sessions > 0 {
		return sum.Sessions
	}
	if c.SessionID == "" { // a file of which nothing is kept
		return 0
	}
	return 1
}
