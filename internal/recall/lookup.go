// Package recall searches the hidden messages of a context: those that a summary or pruning hides.
// It implements the context manager's Recall with the search index and the store.
package recall

import (
	"context"
	"slices"

	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

const (
	hitsWithNeighbours = 4         // best hits: read with one neighbour on each side, a person's with the rest of its turn
	mostBytes          = 128 << 10 // of text: from there on no more hits are read
	turnPiece          = 8         // messages of a turn that are read at once
	mostOfTurn         = 4         // pieces
)

// Lookup implements contextmgr.Recall.
type Lookup struct {
	Index *search.Index
	Store *store.Store
}

// Recall returns hidden messages, best first. unread is the number of messages that are not yet indexed and were not
// searched.
func (l Lookup) Recall(ctx context.Context, q contextmgr.RecallQuery) (hits []contextmgr.Hit, unread int, err error) {
	cancellable := ctx
	ctx = context.WithoutCancel(ctx) // the driver starts goroutines for each query that can be cancelled
	path, err := l.Store.Spans(ctx, q.Head)
	if err != nil {
		return nil, 0, err
	}
	kept, err := l.Store.MessageByID(ctx, q.Before)
	if err != nil {
		return nil, 0, err
	}
	hidden := spansBefore(path, kept.ID)
	request := search.RecallQuery{Text: q.Text, Within: hidden, MaxHits: q.Limit, Newest: q.Before - 1}
	if len(q.Pruned) > 0 { // these are among the kept messages
		request.Within, request.Newest = toSearchSpans(path), max(q.Before-1, slices.Max(q.Pruned))
		request.Allowed = func(row int64) bool { return row < q.Before || slices.Contains(q.Pruned, row) }
	}
	found, err := l.Index.Recall(cancellable, request)
	if err != nil {
		return nil, 0, err
	}
	size := 0
	for i, f := range found.Hits {
		near := 0
		if i < hitsWithNeighbours {
			near = 1
		}
		hit, err := l.read(ctx, f, near, hidden)
		if err == nil && near > 0 && isPrompt(&hit.Message) {
			hit.Neighbours = nil
			hit.Rest, err = l.restOfTurn(ctx, f.Ref, hidden)
		}
		if err != nil {
			return nil, 0, err
		}
		if hit.Message.RowID == 0 {
			continue
		}
		hits = append(hits, hit)
		if size += len(hit.Message.Text()); size >= mostBytes {
			break
		}
	}
	return hits, found.Unread, nil
}

// read reads a hit and as many hidden messages right before and after it: a price may be in a tool's result, and the
// thing that it is the price of in the question before.
func (l Lookup) read(ctx context.Context, f search.RecallHit, beside int,
	hidden []search.Span,
) (contextmgr.Hit, error) {
	var hit contextmgr.Hit
	near, err := l.Store.MessagesAround(ctx, f.Ref, beside, beside)
	if err != nil {
		return hit, err
	}
	for i := range near {
		switch m := &near[i]; {
		case m.RowID == f.RowID:
			hit.Message = *m
		case isWithin(hidden, m.ID):
			hit.Neighbours = append(hit.Neighbours, *m)
		}
	}
	return hit, nil
}

func isPrompt(m *session.Message) bool {
	return m.Role == session.User && m.Kind == session.KindMessage
}

// restOfTurn reads the hidden messages of a turn after the person's message that began it: what a question asks for
// is in the results of the calls that followed, and in the reply.
func (l Lookup) restOfTurn(ctx context.Context, prompt session.MessageRef,
	hidden []search.Span,
) (rest []session.Message, err error) {
	last := prompt
	for range mostOfTurn {
		piece, err := l.Store.MessagesAround(ctx, last, 0, turnPiece)
		if err != nil {
			return nil, err
		}
		for i := range piece {
			m := &piece[i]
			switch {
			case m.ID == last:
				continue
			case m.Role == session.User || !isWithin(hidden, m.ID):
				return rest, nil
			case m.InContext:
				rest = append(rest, *m)
			}
		}
		if len(piece) <= turnPiece {
			break
		}
		last = piece[len(piece)-1].ID
	}
	return rest, nil
}

func isWithin(spans []search.Span, ref session.MessageRef) bool {
	return slices.ContainsFunc(spans, func(sp search.Span) bool {
		return sp.Session == ref.Session && sp.From <= ref.Seq && ref.Seq <= sp.Through
	})
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
