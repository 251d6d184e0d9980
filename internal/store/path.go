package store

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// Span is a run of consecutive messages of one session on a path.
type Span struct {
	Session  session.ID
	From, To int64 // seqs, inclusive
}

func (sp Span) holds(ref session.MessageRef) bool {
	return sp.Session == ref.Session && sp.From <= ref.Seq && ref.Seq <= sp.To
}

// pathSpans gives the path from a head to its root as spans, the newest first. It reads a
// row per jump and none of what lies between, so a million messages in a line cost as much
// as one.
func pathSpans(ctx context.Context, q queryer, head *int64) ([]Span, error) {
	var spans []Span
	for head != nil {
		ref, err := refOf(ctx, q, *head)
		if err != nil {
			return nil, err
		}
		from, parent, err := spanStart(ctx, q, ref)
		if err != nil {
			return nil, fmt.Errorf("path of %s: %w", ref, err)
		}
		spans = append(spans, Span{Session: ref.Session, From: from, To: ref.Seq})
		head = parent
	}
	return spans, nil
}

// Spans gives the path to head as spans, the newest first, without reading its content.
func (s *Store) Spans(ctx context.Context, head int64) ([]Span, error) {
	return pathSpans(ctx, s, &head)
}

// spanStart finds where the run of messages that ends at ref begins, and the parent before
// it. The database keeps parents older than their children (CHECK), so no path is a cycle.
func spanStart(ctx context.Context, q queryer, ref session.MessageRef) (from int64, parent *int64, err error) {
	rows, err := q.query(ctx, `SELECT seq, parent_id FROM messages
		WHERE session_id = ? AND jump = 1 AND seq <= ? ORDER BY seq DESC LIMIT 1`, ref.Session, ref.Seq)
	if err != nil {
		return 0, nil, err
	}
	from = 1
	err = forEach(rows, func() error { return rows.Scan(&from, &parent) })
	return from, parent, err
}

// Walk goes from head to the root, the newest message first, until yield returns false. It
// reads in small batches that grow, so a caller that stops early has read little.
func (s *Store) Walk(ctx context.Context, head int64, yield func(session.Message) bool) error {
	batch := int64(32)
	for next := &head; next != nil; {
		ref, err := refOf(ctx, s, *next)
		if err != nil {
			return err
		}
		from, parent, err := spanStart(ctx, s, ref)
		if err != nil {
			return fmt.Errorf("path of %s: %w", ref, err)
		}
		for to := ref.Seq; to >= from; {
			lo := max(from, to-batch+1)
			msgs, err := readRange(ctx, s, ref.Session, lo, to)
			if err != nil {
				return fmt.Errorf("path of %s: %w", ref, err)
			}
			for _, m := range slices.Backward(msgs) {
				if !yield(m) {
					return nil
				}
			}
			to = lo - 1
			batch = min(2*batch, 512)
		}
		next = parent
	}
	return nil
}

// Path reads the path to head in order, from the message after the row after (0: from the
// root). Codes: NotFound when after is not on the path.
func (s *Store) Path(ctx context.Context, head, after int64) ([]session.Message, error) {
	var msgs []session.Message
	found := after == 0
	err := s.Walk(ctx, head, func(m session.Message) bool {
		if m.RowID == after {
			found = true
			return false
		}
		msgs = append(msgs, m)
		return true
	})
	if err == nil && !found {
		err = session.Errorf(session.NotFound, "message row %d is not on the path", after)
	}
	reverse(msgs)
	return msgs, err
}

// OnPath tells whether a message lies on the path to head, without reading the path.
func (s *Store) OnPath(ctx context.Context, head, message int64) (bool, error) {
	return onPath(ctx, s, head, message)
}

func onPath(ctx context.Context, q queryer, head, message int64) (bool, error) {
	ref, err := refOf(ctx, q, message)
	if err != nil {
		if session.CodeOf(err) == session.NotFound {
			return false, nil
		}
		return false, err
	}
	spans, err := pathSpans(ctx, q, &head)
	return slices.ContainsFunc(spans, func(sp Span) bool { return sp.holds(ref) }), err
}

// orderSpans puts spans, which come newest first, into reading order.
func orderSpans(spans []Span, descending bool) []Span {
	if !descending {
		reverse(spans)
	}
	return spans
}

func reverse[T any](s []T) { slices.Reverse(s) }
