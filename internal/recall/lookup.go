// Package recall searches the hidden messages of a context: those that a summary or pruning hides.
// It implements the context manager's Recall with the search index and the store.
package recall

import (
	"context"
	"slices"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

const (
	hitsWithNeighbours = 4 // best hits: read with one neighbour on each side, even after the time limit
	enoughHits         = 8 // with so many read, a timeout is not reported
	batchSize          = 10
)

// Lookup implements contextmgr.Recall.
type Lookup struct {
	Index *search.Index
	Store *store.Store
}

// Recall returns hidden messages, best first. The query's time limit covers the search and the
// reading; timedOut reports that it left out hits while only few were read.
func (l Lookup) Recall(ctx context.Context, q contextmgr.RecallQuery) (hits []contextmgr.Hit, timedOut bool, err error) {
	deadline := time.Now().Add(q.Budget)
	cancellable := ctx
	ctx = context.WithoutCancel(ctx) // the driver starts goroutines for each query that can be cancelled
	path, err := l.Store.Spans(ctx, q.Head)
	if err != nil {
		return nil, false, err
	}
	kept, err := l.Store.MessageByID(ctx, q.Before)
	if err != nil {
		return nil, false, err
	}
	hidden := spansBefore(path, kept.ID)
	request := search.RecallQuery{Text: q.Text, Within: hidden, MaxHits: q.Limit, Time: q.Budget}
	if len(q.Pruned) > 0 { // these are among the kept messages
		request.Within = toSearchSpans(path)
		request.Allowed = func(row int64) bool { return row < q.Before || slices.Contains(q.Pruned, row) }
	}
	found, err := l.Index.Recall(cancellable, request)
	if err != nil {
		return nil, false, err
	}
	best := found.Hits[:min(len(found.Hits), hitsWithNeighbours)]
	for _, f := range best {
		hit, err := l.readWithNeighbours(ctx, f, hidden)
		if err != nil {
			return nil, false, err
		}
		if hit.Message.RowID != 0 {
			hits = append(hits, hit)
		}
	}
	for batch := range slices.Chunk(found.Hits[len(best):], batchSize) {
		if !time.Now().Before(deadline) {
			return hits, !found.Complete || len(hits) < enoughHits, nil
		}
		more, err := l.read(ctx, batch)
		if err != nil {
			return nil, false, err
		}
		hits = append(hits, more...)
	}
	return hits, !found.Complete, nil
}

// read reads hits without neighbours, in their order.
func (l Lookup) read(ctx context.Context, found []search.RecallHit) ([]contextmgr.Hit, error) {
	rows := make([]int64, len(found))
	for i, f := range found {
		rows[i] = f.RowID
	}
	msgs, err := l.Store.MessagesByID(ctx, rows)
	if err != nil {
		return nil, err
	}
	var hits []contextmgr.Hit
	for _, f := range found {
		if i := slices.IndexFunc(msgs, func(m session.Message) bool { return m.RowID == f.RowID && m.ID == f.Ref }); i >= 0 {
			hits = append(hits, contextmgr.Hit{Message: msgs[i]})
		}
	}
	return hits, nil
}

// readWithNeighbours reads a hit and the hidden messages right before and after it: a price may be
// in a tool's result, and the thing that it is the price of in the question before.
func (l Lookup) readWithNeighbours(ctx context.Context, f search.RecallHit, hidden []search.Span) (contextmgr.Hit, error) {
	var hit contextmgr.Hit
	near, err := l.Store.MessagesAround(ctx, f.Ref, 1)
	if err != nil {
		return hit, err
	}
	for i := range near {
		switch m := &near[i]; {
		case m.RowID == f.RowID:
			hit.Message = *m
		case slices.ContainsFunc(hidden, func(sp search.Span) bool {
			return sp.Session == m.ID.Session && sp.From <= m.ID.Seq && m.ID.Seq <= sp.Through
		}):
			hit.Neighbours = append(hit.Neighbours, *m)
		}
	}
	return hit, nil
}

func toSearchSpans(path []store.Span) []search.Span {
	all := make([]search.Span, len(path))
	for i, sp := range path {
		all[i] = search.Span{Session: sp.Session, From: sp.From, Through: sp.To}
	}
	return all
}

// spansBefore returns the part of a path, newest span first, before the first kept message.
func spansBefore(path []store.Span, kept session.MessageRef) []search.Span {
	i := slices.IndexFunc(path, func(sp store.Span) bool {
		return sp.Session == kept.Session && sp.From <= kept.Seq && kept.Seq <= sp.To
	})
	if i < 0 {
		return nil
	}
	hidden := toSearchSpans(path[i:])
	if hidden[0].Through = kept.Seq - 1; hidden[0].Through < hidden[0].From {
		hidden = hidden[1:]
	}
	return hidden
}
