package history

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Store is what an Importer needs of the store.
type Store interface {
	Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error)
	ImportCursor(ctx context.Context, source session.Source, path string) (*store.ImportCursor, error)
	SessionBySource(ctx context.Context, source session.Source, sourceID string) (session.Session, error)
	MessageByKey(ctx context.Context, id session.ID, externalID string) (*session.MessageRef, error)
	SessionOfCall(ctx context.Context, source session.Source, externalID string) (session.ID, error)
	Messages(ctx context.Context, id session.ID, p store.MessagePage) ([]session.Message, bool, error)
}

// Importer feeds a store from sources. The zero value of all fields but Store works.
type Importer struct {
	Store Store

	// Pause is the time between two commits, so that live appends are not held up:
	// 5 ms if it is 0, none if it is negative.
	Pause time.Duration

	// Wait sleeps; nil waits on the clock. It returns early with ctx's error.
	Wait func(ctx context.Context, d time.Duration) error

	// Price gives a call that has no cost the one of the catalogue; nil: it stays unknown.
	Price func(*session.Call)

	// Progress is told after each found thing; nil: nobody.
	Progress func(done Found, a Accounting)
}

const defaultPause = 5 * time.Millisecond

// Run imports what a source has under roots, or in its usual places without roots. What
// cannot be read is told in the accounting and does not stop the rest; an error means that
// the store failed or ctx ended, and the accounting holds what was done until then.
func (im *Importer) Run(ctx context.Context, source Source, roots []string) (Accounting, error) {
	total := Accounting{Source: source.Name(), Records: Records{Skipped: map[string]int{}}, Errors: []Problem{}}
	if len(roots) == 1 {
		total.Path = roots[0]
	}
	found, problems, err := source.Find(ctx, roots)
	total.Errors = append(total.Errors, problems...)
	if err != nil {
		return total, err
	}
	for _, f := range found {
		one, err := im.One(ctx, source, f)
		total.Add(one)
		if err != nil {
			return total, err
		}
		if im.Progress != nil {
			im.Progress(f, one)
		}
	}
	return total, nil
}

// One imports one found thing. The error is as Run's.
func (im *Importer) One(ctx context.Context, source Source, found Found) (Accounting, error) {
	r := reading{
		importer: im, found: found, touched: map[session.ID]touch{},
		done: Accounting{Source: source.Name(), Path: found.Path, Records: Records{Skipped: map[string]int{}}, Errors: []Problem{}},
	}
	cursor, err := im.Store.ImportCursor(ctx, source.Name(), found.Path)
	if err != nil {
		return r.done, fmt.Errorf("look up how far %s was read: %w", found.Path, err)
	}
	if unchanged(cursor, found) {
		r.done.Sessions.Unchanged = sessionsOf(cursor)
		return r.done, nil
	}
	problems, err := r.read(ctx, source, cursor)
	for _, t := range r.touched {
		switch {
		case t.created:
			r.done.Sessions.New++
		case t.changed:
			r.done.Sessions.Updated++
		default:
			r.done.Sessions.Unchanged++
		}
	}
	if all := r.done.Sessions; r.sessions > all.New+all.Updated+all.Unchanged {
		r.done.Sessions.Unchanged = r.sessions - all.New - all.Updated
	}
	r.done.Errors = append(r.done.Errors, problems...)
	switch {
	case r.failed != nil:
		return r.done, r.failed
	case ctx.Err() != nil:
		return r.done, ctx.Err()
	case err != nil:
		r.done.Errors = append(r.done.Errors, Problem{Path: found.Path, Error: Reason(err)})
	}
	return r.done, nil
}

// readTries is how often a source is read that its program keeps changing meanwhile.
const readTries = 3

func (r *reading) read(ctx context.Context, source Source, cursor *Cursor) (problems []Problem, err error) {
	for range readTries {
		problems, err = source.Read(ctx, r.found, cursor, known{r.importer.Store}, func(b Batch) error { return r.store(ctx, b) })
		if session.CodeOf(err) != session.Busy || r.failed != nil || ctx.Err() != nil {
			break
		}
	}
	return problems, err
}

// Unread tells whether found holds something that the store has not read yet.
func (im *Importer) Unread(ctx context.Context, source Source, found Found) (bool, error) {
	cursor, err := im.Store.ImportCursor(ctx, source.Name(), found.Path)
	if err != nil {
		return false, fmt.Errorf("look up how far %s was read: %w", found.Path, err)
	}
	return !unchanged(cursor, found), nil
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

// reading is one found thing on its way into the store.
type reading struct {
	importer *Importer
	found    Found
	done     Accounting
	touched  map[session.ID]touch
	since    Records // since the last cursor
	sessions int     // in the found thing, as the last cursor said
	commits  int
	failed   error // of the store, which is not the source's fault
}

type touch struct{ created, changed bool }

func (r *reading) store(ctx context.Context, b Batch) error {
	if b.Cursor != nil && b.Cursor.Counts == nil && b.ID != "" && len(b.Messages) > 0 {
		// A session that is here is read anew: how many of its records it had is known only
		// after they were offered, and the cursor's counts must say it.
		// And a copy that brings nothing new does not move the head.
		last := Batch{ImportBatch: store.ImportBatch{ID: b.ID, Session: b.Session, Cursor: b.Cursor, Head: b.Head, HeadSession: b.HeadSession, Title: b.Title}, Sessions: b.Sessions}
		b.Cursor, b.Head, b.Title = nil, nil, nil
		if err := r.commit(ctx, b); err != nil {
			return err
		}
		if !r.touched[b.ID].changed {
			last.Head, last.Title = nil, nil
		}
		return r.commit(ctx, last)
	}
	return r.commit(ctx, b)
}

func (r *reading) commit(ctx context.Context, b Batch) error {
	if r.commits > 0 {
		if err := r.importer.pause(ctx); err != nil {
			r.failed = err
			return err
		}
	}
	if b.Cursor != nil {
		b.Cursor.Counts = r.counts(b)
	}
	if r.importer.Price != nil {
		for i := range b.Calls {
			if b.Calls[i].CostNanoUSD == nil {
				r.importer.Price(&b.Calls[i].Call)
			}
		}
	}
	result, err := r.importer.Store.Import(ctx, b.ImportBatch)
	if err != nil {
		err = fmt.Errorf("store what %s holds: %w", r.found.Path, err)
		if code := session.CodeOf(err); code != session.Invalid && code != session.TooLarge {
			r.failed = err
		}
		return err
	}
	r.commits++
	b.Records.alreadyKnown(result.Duplicates)
	r.done.Records.Add(b.Records)
	r.since.Add(b.Records)
	if b.Cursor != nil {
		r.since, r.sessions = Records{}, b.Sessions
	}
	if result.Session.ID == "" || b.Aside { // nothing of the file is kept, or only a name
		return nil
	}
	t := r.touched[result.Session.ID]
	t.created = t.created || result.Created
	t.changed = t.changed || result.Messages > 0 || result.Calls > 0
	r.touched[result.Session.ID] = t
	return nil
}

// counts adds up the readings of a path. A line that was not finished is read again, and a
// reading from the beginning starts the sums anew.
func (r *reading) counts(b Batch) session.JSON {
	var sum counts
	if b.Cursor.Counts != nil {
		_ = json.Unmarshal(b.Cursor.Counts, &sum) // a damaged sum starts anew
	}
	sum.Add(r.since)
	sum.Add(b.Records)
	torn := sum.Skipped[SkipTorn]
	sum.Read -= torn
	delete(sum.Skipped, SkipTorn)
	own := 0
	if b.ID != "" || b.Session.Source != "" {
		own = 1
	}
	sum.Sessions = max(len(r.touched), sum.Sessions, b.Sessions, own)
	return session.JSONOf(sum)
}

func (im *Importer) pause(ctx context.Context) error {
	d := im.Pause
	if d == 0 {
		d = defaultPause
	}
	if d < 0 {
		return ctx.Err()
	}
	if im.Wait != nil {
		return im.Wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// known answers a source's questions from the store.
type known struct{ store Store }

func (k known) Session(ctx context.Context, source session.Source, sourceID string) (*session.Session, error) {
	found, err := k.store.SessionBySource(ctx, source, sourceID)
	if session.CodeOf(err) == session.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func (k known) Cursor(ctx context.Context, source session.Source, path string) (*Cursor, error) {
	return k.store.ImportCursor(ctx, source, path)
}

func (k known) Message(ctx context.Context, id session.ID, key string) (*session.MessageRef, error) {
	return k.store.MessageByKey(ctx, id, key)
}

func (k known) CallOwner(ctx context.Context, source session.Source, key string) (session.ID, error) {
	return k.store.SessionOfCall(ctx, source, key)
}

func (k known) Entries(ctx context.Context, id session.ID, yield func(*session.Message) bool) error {
	page := store.MessagePage{Limit: 200, All: true}
	for {
		messages, more, err := k.store.Messages(ctx, id, page)
		if err != nil {
			return err
		}
		for i := range messages {
			if !yield(&messages[i]) {
				return nil
			}
			page.After = messages[i].Seq
		}
		if !more || len(messages) == 0 {
			return nil
		}
	}
}
