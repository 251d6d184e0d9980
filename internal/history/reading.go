package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// reading is one found thing on its way into the store.
type reading struct {
	importer *Importer
	pace     *pace
	found    Found
	done     Accounting
	touched  map[session.ID]touch
	since    Records // since the last cursor
	sessions int     // in the found thing, as the last cursor said
	failed   error   // of the store, which is not the source's fault
	whole    bool    // its lines cannot be shortened
	told     int64   // bytes of the found thing that Progress knows of
	again    bool    // it was read and accounted for in this import before

	refused atomic.Pointer[error] // what the store said to a batch; the source is told when it gives the next
}

type touch struct{ created, changed bool }

func (r *reading) store(ctx context.Context, b Batch) error {
	_, offered := r.touched[b.ID]
	if b.Cursor != nil && b.Cursor.Counts == nil && b.ID != "" && (len(b.Messages) > 0 || offered) {
		// A session that is here is read anew: how many of its records it had is known only
		// after they were offered, and the cursor's counts must say it.
		// And a copy that brings nothing new does not move the head.
		last := Batch{ImportBatch: store.ImportBatch{ID: b.ID, Session: b.Session, Cursor: b.Cursor, Head: b.Head, HeadSession: b.HeadSession, Title: b.Title}, Sessions: b.Sessions}
		b.Cursor, b.Head, b.Title = nil, nil, nil
		if len(b.Messages) == 0 && len(b.Calls) == 0 && len(b.Compactions) == 0 && len(b.Marks) == 0 {
			last.Fields, last.Records = b.Fields, b.Records
		} else if err := r.commit(ctx, b); err != nil {
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
	b.Purged = r.importer.Purged
	result, err := r.write(ctx, b.ImportBatch)
	if err != nil {
		err = fmt.Errorf("store what %s holds: %w", r.found.Path, err)
		switch code := session.CodeOf(err); {
		case code == session.Conflict, code == session.Invalid, code == session.TooLarge: // of this session alone
		case errors.Is(err, errChanged): // of this reading alone
		default:
			r.failed = err
		}
		return err
	}
	r.count(b, result)
	return nil
}

// restore stores a piece of a session under its own names, in transactions that are as large
// as the pace allows. What the store refuses is no failure of the import.
func (r *reading) restore(ctx context.Context, b Batch) error {
	var sum store.ImportResult
	for _, piece := range b.Restore.Split(r.pace.most()) {
		err := r.pace.wait(ctx)
		var result store.ImportResult
		if err == nil {
			result, err = r.importer.Store.Restore(ctx, piece)
		}
		if err == nil {
			err = r.pace.committed(ctx, len(piece.Messages))
		}
		if err != nil {
			switch session.CodeOf(err) {
			case session.Conflict, session.Invalid, session.TooLarge:
			default:
				r.failed = err
			}
			return fmt.Errorf("store what %s holds: %w", r.found.Path, err)
		}
		sum.Session, sum.Created = result.Session, sum.Created || result.Created
		sum.Messages += result.Messages
		sum.Duplicates += result.Duplicates
		sum.Calls += result.Calls
	}
	r.count(b, sum)
	return nil
}

// count adds up what became of a batch.
func (r *reading) count(b Batch, result store.ImportResult) {
	if result.Purged {
		b.Records.purged()
	}
	r.progress(b.around())
	b.Records.alreadyKnown(result.Duplicates)
	r.done.Records.Add(b.Records)
	r.since.Add(b.Records)
	if b.Cursor != nil {
		r.since, r.sessions = Records{}, b.Sessions
	}
	if result.Session.ID == "" || b.Aside { // nothing of the file is kept, or only a name
		return
	}
	t := r.touched[result.Session.ID]
	t.created = t.created || result.Created
	t.changed = t.changed || result.Messages > 0 || result.Calls > 0
	r.touched[result.Session.ID] = t
}

// progress tells that some bytes more of the found thing are done.
func (r *reading) progress(bytes int64) {
	bytes = min(bytes, r.found.Size-r.told)
	if r.importer.Progress == nil || bytes <= 0 {
		return
	}
	r.told += bytes
	r.importer.Progress(r.found, bytes)
}

// around estimates the bytes of the source that a batch stands for.
func (b *Batch) around() int64 {
	const names = 300 // what programs write around a message
	sum := 0
	for i := range b.Messages {
		sum += sizeOf(&b.Messages[i].Message) + names
	}
	if b.Restore != nil {
		for i := range b.Restore.Messages {
			sum += sizeOf(&b.Restore.Messages[i].Message) + names
		}
	}
	return int64(sum)
}

// write stores a batch in transactions that are as large as the pace allows.
func (r *reading) write(ctx context.Context, b store.ImportBatch) (sum store.ImportResult, err error) {
	if err := r.importer.Store.PrepareImport(&b); err != nil {
		return sum, err
	}
	messages, bytes := r.pace.most()
	pieces := b.Split(messages, bytes)
	for done := 0; len(pieces) > 0; {
		piece := pieces[0]
		pieces = pieces[1:]
		if piece.ID == "" {
			piece.ID = sum.Session.ID
		}
		if err := r.pace.wait(ctx); err != nil {
			return sum, err
		}
		result, err := r.importer.Store.Import(ctx, piece)
		if err != nil {
			return sum, err
		}
		if err := r.pace.committed(ctx, len(piece.Messages)); err != nil {
			return sum, err
		}
		result.Created = result.Created || sum.Created
		result.Messages += sum.Messages
		result.Duplicates += sum.Duplicates
		result.Calls += sum.Calls
		sum = result
		done += len(piece.Messages)
		if most, size := r.pace.most(); len(pieces) > 0 && (most >= 2*messages || 2*most <= messages) {
			rest := b
			rest.Messages, rest.Calls = b.Messages[done:], nil
			for i := range pieces {
				rest.Calls = append(rest.Calls, pieces[i].Calls...)
			}
			messages, pieces = most, rest.Split(most, size)
		}
	}
	return sum, nil
}

// finish gives the accounting of a reading that has ended.
func (r *reading) finish(problems []Problem, err error) (Accounting, error) {
	r.progress(r.found.Size)
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
	if r.failed != nil {
		return r.done, r.failed
	}
	if err = r.why(err); err != nil {
		r.done.Errors = append(r.done.Errors, Problem{Path: r.found.Path, Error: Reason(err)})
	}
	return r.done, nil
}

// why gives what ended a reading: an error of the source, or what the store refused.
func (r *reading) why(err error) error {
	if refused := r.refused.Load(); err == nil && refused != nil {
		return *refused
	}
	return err
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
