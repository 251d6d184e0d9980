// Package recall looks into the search index for what a context lost to a summary or to
// pruning. It is what the context manager's Recall is in the daemon and in the commands.
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

// neighbours is how many messages on each side of a hit come with it: a price stands in a
// tool's result, what it is the price of in the question before.
const neighbours = 1

// leastRead is how many hits are read even when the time is over: the search was in vain
// otherwise.
const leastRead = 4

// Lookup implements contextmgr.Recall.
type Lookup struct {
	Index *search.Index
	Store *store.Store
}

// Recall finds hidden messages, best first, and reads them with their neighbours. The time of
// the query is that of both: a hit that was not read by then is left, and timedOut says so.
func (l Lookup) Recall(ctx context.Context, q contextmgr.RecallQuery) (hits []contextmgr.Hit, timedOut bool, err error) {
	until := time.Now().Add(q.Budget)
	path, err := l.Store.Spans(ctx, q.Head)
	if err != nil {
		return nil, false, err
	}
	kept, err := l.Store.MessageByID(ctx, q.Before)
	if err != nil {
		return nil, false, err
	}
	hidden := hiddenSpans(path, kept.ID)
	ask := search.RecallQuery{Texts: []string{q.Text}, Within: hidden, MinRare: 1, MaxHits: q.Limit, Time: q.Budget}
	if len(q.Pruned) > 0 { // they stand among what is kept
		ask.Within = spansOf(path)
		ask.Allowed = func(row int64) bool { return row < q.Before || slices.Contains(q.Pruned, row) }
	}
	found, err := l.Index.Recall(ctx, ask)
	if err != nil {
		return nil, false, err
	}
	for n, f := range found.Hits {
		if n >= leastRead && !time.Now().Before(until) {
			return hits, true, nil
		}
		hit, err := l.read(ctx, f, hidden)
		if err != nil {
			return nil, false, err
		}
		if hit.Message.RowID != 0 {
			hits = append(hits, hit)
		}
	}
	return hits, !found.Complete, nil
}

// read reads a hit and the messages right before and after it, as far as they are hidden.
func (l Lookup) read(ctx context.Context, f search.RecallHit, hidden []search.Span) (contextmgr.Hit, error) {
	hit := contextmgr.Hit{Score: f.Score}
	near, err := l.Store.MessagesAround(ctx, f.Ref, neighbours)
	if err != nil {
		return hit, err
	}
	for i := range near {
		switch m := &near[i]; {
		case m.RowID == f.RowID:
			hit.Message = *m
		case within(hidden, m.ID):
			hit.Neighbours = append(hit.Neighbours, *m)
		}
	}
	return hit, nil
}

func spansOf(path []store.Span) []search.Span {
	all := make([]search.Span, len(path))
	for i, sp := range path {
		all[i] = search.Span{Session: sp.Session, From: sp.From, Through: sp.To}
	}
	return all
}

// hiddenSpans gives the part of a path (newest span first) that lies before the first kept message.
func hiddenSpans(path []store.Span, kept session.MessageRef) []search.Span {
	var hidden []search.Span
	passed := false
	for _, sp := range path {
		to := sp.To
		if !passed {
			if sp.Session != kept.Session || kept.Seq < sp.From || kept.Seq > sp.To {
				continue
			}
			passed, to = true, kept.Seq-1
		}
		if sp.From <= to {
			hidden = append(hidden, search.Span{Session: sp.Session, From: sp.From, Through: to})
		}
	}
	return hidden
}

func within(spans []search.Span, ref session.MessageRef) bool {
	return slices.ContainsFunc(spans, func(sp search.Span) bool {
		return sp.Session == ref.Session && sp.From <= ref.Seq && ref.Seq <= sp.Through
	})
}
