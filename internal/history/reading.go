package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

const (
	// readTries is how often a source is read whose program keeps changing it meanwhile.
	readTries = 3
	// servingPause follows each commit while a daemon serves requests.
	servingPause = 5 * time.Millisecond
)

// reading is the import of one found thing.
type reading struct {
	*Importer
	source Source
	found  Found
	again  bool // this import has read and counted it before

	done Accounting
	tally
	since    Records // committed after the last cursor
	sessions int     // in the found thing, as the last cursor says
	refused  error   // by the store, which ends this reading
	failed   error   // of the store, which ends the import
	foreign  string  // the path, if the found thing is not known to be the user's own
	told     int64   // bytes of the found thing that were reported to Progress
	awaits   string  // source id of a session that the found thing comes from and that is missing
}

// decideForeign notes whether the found thing is not known to be the user's own.
func (r *reading) decideForeign(ctx context.Context) error {
	mine, err := r.isMine(ctx, r.source, r.found.Path)
	if err == nil && !mine {
		r.foreign = r.found.Path
	}
	return err
}

// readChanged is read of a thing whose cursor was looked up among others, nil if it has none: one that did not change
// since and waits for nothing is only counted.
func (r *reading) readChanged(ctx context.Context, c *Cursor) error {
	if c = cursorOf(c); !unchanged(c, r.found) || awaitedOrigin(c) != "" || r.Purged {
		return r.read(ctx)
	}
	r.countUnchanged(c)
	r.finish(nil, nil)
	return ctx.Err()
}

// read imports the found thing. An error means that the store failed or ctx ended; everything
// else is in r.done.
func (r *reading) read(ctx context.Context) error {
	if r.found.asOwner != nil {
		ctx = r.found.asOwner(ctx)
	}
	if err := r.decideForeign(ctx); err != nil {
		return err
	}
	problems, err := r.readTries(ctx)
	if err == nil {
		err = r.refused
	}
	r.finish(problems, err)
	switch {
	case r.failed != nil:
		return r.failed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return r.rememberRefusal(ctx, err)
}

func (r *reading) readTries(ctx context.Context) (problems []Problem, err error) {
	cursor, err := r.cursor(ctx, r.source, r.found)
	if err != nil {
		return nil, err
	}
	if cursor = cursorOf(cursor); r.Purged && !r.again { // purged records lie before the cursor
		cursor = nil
	}
	if unchanged(cursor, r.found) {
		missing, err := r.missingOrigin(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if r.awaits = missing; missing != "" || awaitedOrigin(cursor) == "" {
			r.countUnchanged(cursor)
			return nil, nil
		}
	}
	emit := func(b Batch) error { return r.emit(ctx, b) }
	known := Known(r.Store)
	if r.Purged {
		known = neverRead{known}
	}
	for range readTries {
		problems, err = r.source.Read(ctx, r.found, cursor, known, emit)
		if errors.Is(err, errMissing) && cursor != nil && cursor.Offset > 0 {
			cursor = nil // the store lacks what an earlier reading must have stored: read the whole file
			continue
		}
		if session.CodeOf(err) != session.Busy || r.refused != nil || ctx.Err() != nil {
			break
		}
	}
	return problems, err
}

// missingOrigin returns the source id of the session that a file's session was forked from or
// started by, while that is not in the store. Once it is there, the file is read again from
// where its reading ended.
func (r *reading) missingOrigin(ctx context.Context, c *Cursor) (string, error) {
	origin := awaitedOrigin(c)
	if origin == "" {
		return "", nil
	}
	here, err := orNone(r.Store.SessionBySource(ctx, c.Source, origin))
	if err != nil || here != nil {
		return "", err
	}
	return origin, nil
}

// awaitedOrigin returns the source id of the missing session that a cursor names, "" if none.
func awaitedOrigin(c *Cursor) string {
	return readCursorState(c).Awaits
}

// emit commits a batch. The source may reuse the batch's slices afterwards.
func (r *reading) emit(ctx context.Context, b Batch) error {
	if r.refused != nil {
		return r.refused
	}
	if b.Restore != nil {
		return r.restore(ctx, b)
	}
	if b.Cursor != nil {
		cursor := *b.Cursor
		b.Cursor, r.awaits = &cursor, awaitedOrigin(&cursor)
	}
	err := r.store(ctx, b)
	r.refused = err
	return err
}

// store commits a batch. The last batch of a session that was in the store before is committed
// in two steps: its cursor counts how many records the store had already, and its title, and a
// head without messages, apply only if something in it was new.
func (r *reading) store(ctx context.Context, b Batch) error {
	_, offered := r.touched[b.ID]
	if b.Cursor == nil || b.Cursor.Counts != nil || b.ID == "" || len(b.Messages)+len(b.Copied) == 0 && !offered {
		return r.commit(ctx, b)
	}
	last := Batch{ImportBatch: store.ImportBatch{
		ID: b.ID, Session: b.Session, Cursor: b.Cursor, Head: b.Head,
		HeadSession: b.HeadSession, Title: b.Title,
	}, Sessions: b.Sessions}
	if b.Cursor, b.Title = nil, nil; len(b.Messages) == 0 {
		b.Head = nil
	}
	if len(b.Messages)+len(b.Calls)+len(b.Copied)+len(b.Compactions)+len(b.Marks) == 0 {
		last.Fields, last.Records = b.Fields, b.Records
	} else if err := r.commit(ctx, b); err != nil {
		return err
	}
	if !r.touched[b.ID].changed {
		last.Head, last.Title = nil, nil
	}
	return r.commit(ctx, last)
}

// limits are the messages and bytes of one transaction. Live appends wait behind it, and a message
// takes some 60 µs.
func (r *reading) limits() (messages, bytes int) {
	if r.Serving {
		return MaxBatch / 10, MaxBatchBytes / 10
	}
	return MaxBatch, MaxBatchBytes
}

func (r *reading) commit(ctx context.Context, b Batch) error {
	if b.Cursor != nil {
		if b.Cursor.Counts = r.counts(b); r.Whose != NotAsked {
			b.Cursor.Mine = mineOf(r.foreign == "")
		}
	}
	if r.Price != nil {
		for i := range b.Calls {
			r.Price(&b.Calls[i].Call)
		}
	}
	b.Purged, b.Foreign = r.Purged, r.foreign
	if !b.Aside {
		b.Transcript = r.found.transcript
	}
	id := b.ID
	return storePieces(ctx, r, b, b.Split(r.limits()),
		func(ctx context.Context, piece store.ImportBatch) (store.ImportResult, error) {
			piece.ID = cmp.Or(piece.ID, id)
			result, err := r.Store.Import(ctx, piece)
			id = result.Session.ID
			return result, err
		})
}

// restore commits a piece of a session under its own names.
func (r *reading) restore(ctx context.Context, b Batch) error {
	b.Restore.Into.Purged, b.Restore.Foreign = r.Purged, r.foreign
	return storePieces(ctx, r, b, b.Restore.Split(r.limits()), r.Store.Restore)
}

// storePieces stores the pieces of a batch, each in a transaction, with a pause behind each.
func storePieces[P any](ctx context.Context, r *reading, b Batch, pieces []P,
	put func(context.Context, P) (store.ImportResult, error),
) error {
	var sum store.ImportResult
	for _, piece := range pieces {
		result, err := put(ctx, piece)
		if err == nil {
			err = r.pause(ctx)
		}
		if err != nil {
			return r.storeError(err)
		}
		sum.Session, sum.Purged = result.Session, result.Purged
		sum.Created = sum.Created || result.Created
		sum.Messages += result.Messages
		sum.Duplicates += result.Duplicates
		sum.Calls += result.Calls
	}
	r.count(b, sum)
	return nil
}

// pause lets those in who wait for the database.
func (r *reading) pause(ctx context.Context) error {
	if !r.Serving {
		return ctx.Err()
	}
	select {
	case <-time.After(servingPause):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// storeError remembers an error that is not the found thing's own: it ends the import.
func (r *reading) storeError(err error) error {
	err = fmt.Errorf("store what %s holds: %w", r.found.Path, err)
	switch session.CodeOf(err) {
	case session.Conflict, session.Invalid, session.TooLarge:
	default:
		r.failed = err
	}
	return err
}

// count adds up what became of a batch.
func (r *reading) count(b Batch, result store.ImportResult) {
	if result.Purged {
		b.Records.purged()
	}
	r.progress(b.estimateBytes())
	b.Records.alreadyKnown(result.Duplicates)
	r.done.Records.Add(b.Records)
	r.since.Add(b.Records)
	if b.Cursor != nil {
		r.since, r.sessions = Records{}, b.Sessions
	}
	if result.Session.ID == "" || b.Aside { // nothing of the found thing is kept, or only a name
		return
	}
	r.touch(result.Session.ID, touch{result.Created, result.Messages > 0 || result.Calls > 0})
	if r.Changed != nil && result.Messages > 0 {
		r.Changed(result.Session)
	}
}

// countUnchanged counts the sessions of a found thing that did not change.
func (r *reading) countUnchanged(c *Cursor) {
	r.others = sessionsOf(c)
	if c.SessionID != "" && r.others > 0 {
		r.touch(c.SessionID, touch{})
		r.others--
	}
}

// progress reports that some bytes more of the found thing are done.
func (r *reading) progress(bytes int64) {
	bytes = min(bytes, r.found.Size-r.told)
	if r.Progress == nil || bytes <= 0 {
		return
	}
	r.told += bytes
	r.Progress(r.found, bytes)
}

// estimateBytes estimates the bytes of the source that a batch stands for.
func (b *Batch) estimateBytes() int64 {
	const names = 300 // that programs write around a message
	sum := 0
	for i := range b.Messages {
		sum += store.SizeOf(&b.Messages[i].Message) + names
	}
	if b.Restore != nil {
		for i := range b.Restore.Messages {
			sum += store.SizeOf(&b.Restore.Messages[i].Message) + names
		}
	}
	return int64(sum)
}

// finish completes the accounting of a reading that has ended, with an error or without.
func (r *reading) finish(problems []Problem, err error) {
	r.progress(r.found.Size)
	r.others = max(r.others, r.sessions-len(r.touched))
	r.done.Sessions = r.tally.sessions()
	r.done.Errors = append(r.done.Errors, problems...)
	if err != nil && r.failed == nil {
		r.done.Errors = append(r.done.Errors, Problem{Path: r.found.Path, Error: Reason(err)})
	}
}

// counts adds up the readings of a path. Waiting records are read again and so not counted,
// and a reading from the beginning starts the sums anew.
func (r *reading) counts(b Batch) session.JSON {
	var sum counts
	if b.Cursor.Counts != nil {
		_ = json.Unmarshal(b.Cursor.Counts, &sum) // a damaged sum starts anew
	}
	sum.Add(r.since)
	sum.Add(b.Records)
	sum.Read -= sum.Waiting
	sum.Waiting = 0
	own := 0
	if b.ID != "" || b.Session.Source != "" {
		own = 1
	}
	sum.Sessions = max(len(r.touched), sum.Sessions, b.Sessions, own)
	return session.JSONOf(sum)
}
