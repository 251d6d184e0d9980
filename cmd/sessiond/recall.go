package main

import (
	"context"

	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// recallNeighbours is how many messages on each side of a hit come with it: a price stands in
// a tool's result, what it is the price of in the question before.
const recallNeighbours = 1

// recaller lets the context manager look into the search index for what an overlay hides.
type recaller struct {
	index *search.Index
	store *store.Store
}

// Recall implements contextmgr.Recall.
func (r recaller) Recall(ctx context.Context, q contextmgr.RecallQuery) (hits []contextmgr.Hit, timedOut bool, err error) {
	spans, err := r.store.Spans(ctx, q.Head)
	if err != nil {
		return nil, false, err
	}
	kept, err := r.store.MessageByID(ctx, q.Before)
	if err != nil {
		return nil, false, err
	}
	hidden := hiddenSpans(spans, kept.ID)
	found, err := r.index.Recall(ctx, search.RecallQuery{
		Texts: []string{q.Text}, Within: hidden, MinRare: 1, MaxHits: q.Limit, Time: q.Budget,
	})
	if err != nil {
		return nil, false, err
	}
	for _, f := range found.Hits {
		hit := contextmgr.Hit{Score: f.Score}
		if hit.Message, err = r.store.Message(ctx, f.Ref); err != nil {
			return nil, false, err
		}
		before, after, err := r.index.Neighbours(ctx, &hit.Message, recallNeighbours)
		if err != nil {
			return nil, false, err
		}
		for _, m := range append(before, after...) {
			if within(hidden, m.ID) {
				hit.Neighbours = append(hit.Neighbours, m)
			}
		}
		hits = append(hits, hit)
	}
	return hits, !found.Complete, nil
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
	for _, sp := range spans {
		if sp.Session == ref.Session && sp.From <= ref.Seq && ref.Seq <= sp.Through {
			return true
		}
	}
	return false
}
