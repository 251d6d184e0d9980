package history

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Store is what an Importer needs of the store.
type Store interface {
	Known
	Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error)
	Restore(ctx context.Context, b store.RestoreBatch) (store.ImportResult, error)
	ImportIsMine(ctx context.Context, source session.Source, path string) (mine, decided bool, err error)
	SetMine(ctx context.Context, source session.Source, path string, mine bool) error
	EachImportCursor(ctx context.Context, source session.Source, first, last string, visit func(*store.ImportCursor)) error
}

// neverRead is a store as if no path was ever read.
type neverRead struct{ Known }

func (neverRead) ImportCursor(context.Context, session.Source, string) (*store.ImportCursor, error) {
	return nil, nil
}

func orNone(found session.Session, err error) (*session.Session, error) {
	if session.CodeOf(err) == session.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// Importer feeds a store from sources. The zero value of all fields but Store works.
type Importer struct {
	Store Store

	// Serving says that a daemon serves requests from the same database: a pause of 5 ms follows
	// each commit, so that a request waits for one commit at most.
	Serving bool

	// Price sets the cost of a call from the catalogue where the program reported none, or 0 though the model has a
	// price; nil: it stays as reported.
	Price func(*session.Call)

	// Purged brings back sessions that were purged here.
	Purged bool

	// Once says that this import may be the only one: it does not wait for the end of a reply.
	Once bool

	// Running reports whether the program of a source runs; nil: that is never known.
	Running func(source Source) (running, known bool)

	// Whose says whose the histories are: the user's own, or not known to be. Hooks tell nothing of sessions that are not.
	Whose Whose

	// Now is the clock; nil: time's.
	Now func() time.Time

	// Changed is called when new messages of a session were committed, with the session as it is then;
	// It may be nil.
	Changed func(session.Session)

	// Progress is called when a batch is committed, with an estimate of the bytes of the found
	// thing that it stands for. Together these are the thing's size. It may be nil.
	Progress func(found Found, bytes int64)
}

// Run imports what a source has under roots, or in its usual places without roots. What
// cannot be read is a problem of the accounting and does not stop the rest; an error means that
// the store failed or ctx ended, and the accounting has what was done until then.
func (im *Importer) Run(ctx context.Context, source Source, roots []string) (total Accounting, err error) {
	total = newAccounting(source, "")
	if len(roots) == 1 {
		total.Path = roots[0]
	}
	found, problems, err := source.Find(ctx, roots)
	total.Errors = append(total.Errors, problems...)
	if err != nil {
		return total, err
	}
	total.Errors = append(total.Errors, barren(source, roots, found, problems)...)
	if err := im.rememberRoots(ctx, source, roots, found); err != nil {
		return total, err
	}
	if err := im.decide(ctx, source, roots); err != nil {
		return total, err
	}
	var all tally
	defer func() { total.Sessions = all.sessions() }()
	before, err := im.cursors(ctx, source, found)
	if err != nil {
		return total, err
	}
	var waiting []Found
	for _, f := range found {
		r := newReading(im, source, f)
		err := r.readChanged(ctx, before[f.Path])
		total.Add(r.done)
		all.add(r.tally)
		if err != nil {
			return total, err
		}
		if r.awaits != "" {
			waiting = append(waiting, f)
		}
	}
	for _, f := range waiting { // the origin may have come after them; their records are counted
		r := newReading(im, source, f)
		r.again, r.told = true, f.Size
		err := r.read(ctx)
		total.Errors = append(total.Errors, r.done.Errors...)
		if err != nil {
			return total, err
		}
	}
	return total, ctx.Err()
}

// rememberRoots stores the folders that the user named, else the program's places: the daemon
// follows them. A file is followed because it was read.
func (im *Importer) rememberRoots(ctx context.Context, source Source, roots []string, found []Found) error {
	named, mine := len(roots) > 0, im.Whose.asked()
	if !named {
		roots = source.Places()
		if im.Whose == Undecided {
			mine = mineOf(true)
		}
	}
	for _, root := range roots {
		if real, err := realPath(root); err == nil {
			root = real
		}
		if named && !IsFolder(root) || slices.ContainsFunc(found, func(f Found) bool { return f.Path == root }) {
			continue
		}
		before, err := im.Store.ImportCursor(ctx, source.Name(), root)
		if err == nil && before == nil {
			_, err = im.Store.Import(ctx, store.ImportBatch{Cursor: &Cursor{
				Source: source.Name(), Path: root,
				State: session.JSON(store.RootState), Mine: mine,
			}})
		}
		if err != nil {
			return fmt.Errorf("remember %s: %w", root, err)
		}
	}
	return nil
}

// cursorOf returns how far a found thing was read, nil if it never was.
func cursorOf(c *Cursor) *Cursor {
	if c == nil || isRefused(c) || string(c.State) == store.RootState {
		return nil
	}
	return c
}

// one imports one found thing. awaits is the source id of the session that it comes from, while
// that is not in the store. The error is as Run's.
func (im *Importer) one(ctx context.Context, source Source, found Found, before *Cursor) (
	done Accounting, awaits string, err error,
) {
	r := newReading(im, source, found)
	err = r.readChanged(ctx, before)
	return r.done, r.awaits, err
}

func newReading(im *Importer, source Source, found Found) *reading {
	found.Last = found.Last || im.Once
	if im.Running != nil && found.transcript == 0 { // its program may run on another host
		found.Over = sync.OnceValue(func() bool {
			running, known := im.Running(source)
			return known && !running && (im.Once || im.now().Sub(found.ModifiedAt) >= overQuiet)
		})
	}
	return &reading{Importer: im, source: source, found: found, done: newAccounting(source, found.Path)}
}

// barren reports the named roots under which nothing was found.
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

func newAccounting(source Source, path string) Accounting {
	return Accounting{Source: source.Name(), Path: path, Records: Records{Skipped: map[string]int{}}, Errors: []Problem{}}
}

// unchanged reports whether a file has the size and time of its last reading.
func unchanged(c *Cursor, f Found) bool {
	return c != nil && c.Size == f.Size && c.ModifiedAt != nil && c.ModifiedAt.Equal(session.At(f.ModifiedAt).Time)
}

// counts are the sums over all readings of a path, in imports.counts.
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
