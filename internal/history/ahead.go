package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"sessiond/internal/session"
)

// ahead reads sources in one goroutine while what they gave before is measured and checked in
// another and stored in a third. Only a few batches wait between them, so that memory stays flat.
type ahead struct {
	*Importer
	source  Source
	given   chan step // by the reading goroutine
	steps   chan step // for the storing one
	pace    *pace
	pending *pending
	waiting []Found // read, but for an origin that is not here; of the reading goroutine

	since int           // bytes given since the last mark
	mark  chan struct{} // closed when everything before it is stored; nil: there is none
}

// step is what the reading goroutine tells the storing one.
type step struct {
	reading  *reading
	batch    *Batch        // to store; nil: the reading has ended, or
	settled  chan struct{} // closed when everything before it is stored
	answer   chan error    // of a batch whose giver waits for what the store says
	unfit    error         // what the store said to the batch before it was offered
	problems []Problem
	err      error
}

// each reads and stores the found things in their order and calls done after each, also
// after one that did not come to its end because of the error. It gives those whose origin
// was not here when they were read.
func (im *Importer) each(ctx context.Context, source Source, found []Found, done func(Found, Accounting)) (waiting []Found, err error) {
	a := ahead{Importer: im, source: source, given: make(chan step), steps: make(chan step, mostWaiting), pace: &pace{Importer: im}, pending: newPending()}
	room := takeHeadroom(!im.Polite, liveHeap)
	defer room.giveBack()
	defer func() { waiting = a.waiting }()
	var reader sync.WaitGroup
	defer reader.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	reader.Go(func() {
		defer close(a.given)
		a.read(inner, found)
	})
	reader.Go(func() {
		defer close(a.steps)
		a.prepare(inner)
	})
	var current *reading
	steps := queue{steps: a.steps}
	for {
		s, ok := steps.next()
		if !ok {
			break
		}
		if s.settled != nil {
			close(s.settled)
			continue
		}
		current = s.reading
		if s.unfit != nil && current.refused.Load() == nil {
			current.refused.Store(&s.unfit)
		}
		if s.answer != nil {
			s.answer <- current.restore(inner, *s.batch)
			if current.failed == nil {
				continue
			}
		} else if s.batch != nil {
			messages, bytes := current.pace.most() // what must be taken in pieces could be refused in the middle
			given := steps.join(&s, messages, bytes)
			err := current.take(inner, s.batch, given)
			for _, b := range given {
				a.pending.settled(b)
			}
			room.adjust()
			if err == nil {
				continue
			}
		}
		one, err := current.finish(s.problems, s.err)
		if err == nil {
			err = current.refuse(inner, current.why(s.err))
		}
		if !current.again {
			done(current.found, one)
		}
		if err != nil {
			return nil, err
		}
		current = nil
	}
	if current != nil && !current.again { // ctx ended in the middle of it
		one, _ := current.finish(nil, nil)
		done(current.found, one)
	}
	return nil, ctx.Err()
}

// take stores batches that were put together. An error ends the import; a batch that the store
// refuses ends the reading, which the source learns when it gives the next one. Those before it
// come in, whether they waited together with it or not.
func (r *reading) take(ctx context.Context, together *Batch, given []*Batch) error {
	if r.refused.Load() != nil {
		return nil
	}
	err := r.store(ctx, *together)
	if err != nil && r.failed == nil && len(given) > 1 {
		for _, b := range given {
			if err = r.store(ctx, *b); err != nil {
				break
			}
		}
	}
	if err != nil {
		r.refused.Store(&err)
	}
	return r.failed
}

func (a *ahead) read(ctx context.Context, found []Found) {
	for _, f := range found {
		r := &reading{importer: a.Importer, pace: a.pace, found: f, touched: map[session.ID]touch{}, done: newAccounting(a.source, f.Path)}
		if !a.readAll(ctx, r) {
			return
		}
	}
	if len(a.waiting) == 0 || a.settle(ctx) != nil {
		return
	}
	for _, f := range a.waiting {
		r := &reading{importer: a.Importer, pace: a.pace, found: f, touched: map[session.ID]touch{}, done: newAccounting(a.source, f.Path), again: true, told: f.Size}
		if !a.readAll(ctx, r) {
			return
		}
	}
}

func (a *ahead) readAll(ctx context.Context, r *reading) (goOn bool) {
	problems, err := a.one(ctx, r)
	return ctx.Err() == nil && a.give(ctx, step{reading: r, problems: problems, err: err})
}

// readTries is how often a source is read that its program keeps changing meanwhile.
const readTries = 3

func (a *ahead) one(ctx context.Context, r *reading) (problems []Problem, err error) {
	cursor, err := a.Store.ImportCursor(ctx, a.source.Name(), r.found.Path)
	if err != nil {
		return nil, fmt.Errorf("look up how far it was read: %w", err)
	}
	if a.Purged && !r.again || isRefused(cursor) { // what was purged lies before the cursor, and nothing before a refusal's
		cursor = nil
	}
	if unchanged(cursor, r.found) {
		arrived, err := a.arrived(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if !arrived {
			a.waits(r, cursor)
			r.done.Sessions.Unchanged = sessionsOf(cursor)
			return nil, nil
		}
	}
	emit := func(b Batch) error { return a.emit(ctx, r, b) }
	found := r.found
	for range readTries {
		found.Whole = found.Whole || r.whole
		problems, err = a.source.Read(ctx, found, cursor, known{a.Store, a.pending, func() error { return a.settle(ctx) }, a.Purged}, emit)
		if session.CodeOf(err) != session.Busy || r.refused.Load() != nil || ctx.Err() != nil {
			break
		}
	}
	return problems, err
}

// arrived tells whether the session is here now that a file's session was forked from, or was
// started by, and that was missing when the file was read: then the file is read again, from
// where its reading ended, and finds it.
func (a *ahead) arrived(ctx context.Context, c *Cursor) (bool, error) {
	origin := awaited(c)
	if origin == "" {
		return false, nil
	}
	_, err := a.Store.SessionBySource(ctx, c.Source, origin)
	if session.CodeOf(err) == session.NotFound {
		return false, nil
	}
	return err == nil, err
}

// waits notes a file whose origin is not here. It may come with a later one.
func (a *ahead) waits(r *reading, c *Cursor) {
	if !r.again && awaited(c) != "" {
		a.waiting = append(a.waiting, r.found)
	}
}

// awaited gives the source id of the session that a file's session waits for, "" if none.
func awaited(c *Cursor) string {
	var state struct {
		Awaits string `json:"awaits"`
	}
	if c == nil || !bytes.Contains(c.State, []byte(`"awaits"`)) || json.Unmarshal(c.State, &state) != nil {
		return ""
	}
	return state.Awaits
}

// emit gives a batch away. The source may use the batch's own slices again. One that is much
// larger than a batch should be is waited for: two of its kind would be too many.
func (a *ahead) emit(ctx context.Context, r *reading, b Batch) error {
	if refused := r.refused.Load(); refused != nil {
		return *refused
	}
	if b.Restore != nil {
		answer := make(chan error, 1)
		if !a.give(ctx, step{reading: r, batch: &b, answer: answer}) {
			return ctx.Err()
		}
		select {
		case err := <-answer:
			return err
		case <-ctx.Done(): // nobody answers any more
			return ctx.Err()
		}
	}
	b.Messages, b.Calls = slices.Clone(b.Messages), slices.Clone(b.Calls)
	b.Compactions, b.Marks = slices.Clone(b.Compactions), slices.Clone(b.Marks)
	if b.Cursor != nil {
		cursor := *b.Cursor
		b.Cursor = &cursor
		a.waits(r, &cursor)
	}
	for i := range b.Messages { // what is mended lies elsewhere, and is measured only later
		b.bytes += Size(&b.Messages[i])
	}
	aside, err := b.Cuts.mend(&b)
	if err != nil {
		r.whole = errors.Is(err, errMangled)
		return err
	}
	a.pending.given(&b)
	if !a.give(ctx, step{reading: r, batch: &b}) {
		return ctx.Err()
	}
	if b.bytes <= 2*MaxBatchBytes && !aside {
		return a.bound(ctx, b.bytes)
	}
	if err := a.settle(ctx); err != nil {
		return err
	}
	if refused := r.refused.Load(); refused != nil && errors.Is(*refused, errChanged) {
		r.refused.Store(nil) // it was not the store that refused it: the source reads it again
		return *refused
	}
	if b.bytes <= 2*MaxBatchBytes {
		return nil
	}
	debug.FreeOSMemory() // what such a batch took is not needed for the next
	return nil
}

// bound sees to it that no more than two times half of MaxBatchBytes, and the batches with
// which these are reached, wait for the store.
func (a *ahead) bound(ctx context.Context, bytes int) error {
	if a.since += bytes; a.since < MaxBatchBytes/2 {
		return nil
	}
	before := a.mark
	a.since, a.mark = 0, make(chan struct{})
	if !a.give(ctx, step{settled: a.mark}) {
		return ctx.Err()
	}
	return reached(ctx, before)
}

// settle waits until everything that was given is stored.
func (a *ahead) settle(ctx context.Context) error {
	settled := make(chan struct{})
	if !a.give(ctx, step{settled: settled}) {
		return ctx.Err()
	}
	a.since, a.mark = 0, nil
	return reached(ctx, settled)
}

func reached(ctx context.Context, mark chan struct{}) error {
	if mark == nil {
		return nil
	}
	select {
	case <-mark:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// prepare measures and checks what was given, beside the reading of the next and the storing of
// the one before it.
func (a *ahead) prepare(ctx context.Context) {
	for s := range a.given {
		if s.batch != nil && s.answer == nil && s.reading.refused.Load() == nil {
			if err := a.Store.PrepareImport(&s.batch.ImportBatch); err != nil {
				s.unfit = fmt.Errorf("store what %s holds: %w", s.reading.found.Path, err)
			}
		}
		select {
		case a.steps <- s:
		case <-ctx.Done(): // whoever gives stops, too
			return
		}
	}
}

func (a *ahead) give(ctx context.Context, s step) bool {
	select {
	case a.given <- s:
		return true
	case <-ctx.Done():
		return false
	}
}
