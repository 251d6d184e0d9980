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

const (
	withNeighbours = 4  // hits that are read with them, even when the time is over: the search was in vain otherwise
	enough         = 8  // that were read: what is left then is hardly better
	batch          = 10 // of the rest that are read between two looks at the clock
)

// Lookup implements contextmgr.Recall.
type Lookup struct {
	Index *search.Index
	Store *store.Store
}

// Recall finds hidden messages, best first, and reads them with their neighbours. The time of
// the query is that of both: hits that were not read by then are left, and timedOut says so
// where only a few were.
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
	ask := search.RecallQuery{Text: q.Text, Within: hidden, MaxHits: q.Limit, Time: q.Budget}
	if len(q.Pruned) > 0 { // they stand among what is kept
		ask.Within = spansOf(path)
		ask.Allowed = func(row int64) bool { return row < q.Before || slices.Contains(q.Pruned, row) }
	}
	found, err := l.Index.Recall(ctx, ask)
	if err != nil {
		return nil, false, err
	}
	best := found.Hits[:min(len(found.Hits), withNeighbours)]
	for _, f := range best {
		hit, err := l.read(ctx, f, hidden)
		if err != nil {
			return nil, false, err
		}
		if hit.Message.RowID != 0 {
			hits = append(hits, hit)
		}
	}
	for rest := range slices.Chunk(found.Hits[len(best):], batch) {
		if !time.Now().Before(until) {
			return hits, !found.Complete || len(hits) < enough, nil
		}
		more, err := l.readAll(ctx, rest)
		if err != nil {
			return nil, false, err
		}
		hits = append(hits, more...)
	}
	return hits, !found.Complete, nil
}

// readAll reads hits without what stands beside them, in their order.
func (l Lookup) readAll(ctx context.Context, found []search.RecallHit) ([]contextmgr.Hit, error) {
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
			hits = append(hits, contextmgr.Hit{Message: msgs[i], Score: f.Score})
		}
	}
	return hits, nil
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
