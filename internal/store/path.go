package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Span is a run of consecutive messages of one session on a path.
type Span struct {
	Session  session.ID
	From, To int64 // seqs, inclusive

	first int64 // row of the first message; 0: none before it is on the path
}

func (sp Span) holds(ref session.MessageRef) bool {
	return sp.Session == ref.Session && sp.From <= ref.Seq && ref.Seq <= sp.To
}

// pathSpans gives the path from a head to its root as spans, the newest first. It reads a
// row per jump and none of what lies between, so a million messages in a line cost as much
// as one.
func pathSpans(ctx context.Context, q engine.Queryer, head *int64) ([]Span, error) {
	var spans []Span
	err := eachSpan(ctx, q, head, func(sp Span) error {
		spans = append(spans, sp)
		return nil
	})
	return spans, err
}

// eachSpan yields the spans of a path, the newest first, until yield returns errEnough. The
// database keeps parents older than their children (CHECK), so no path is a cycle.
func eachSpan(ctx context.Context, q engine.Queryer, head *int64, yield func(Span) error) error {
	if head == nil {
		return nil
	}
	none := true
	err := q.Read(ctx, intoSpans(func(sp Span) error {
		none = false
		return yield(sp)
	}, *head))
	if err == nil && none {
		return missingRow(*head)
	}
	return session.Wrap(err, "path of row %d", *head)
}

func intoSpans(yield func(Span) error, head int64) engine.Reading {
	return engine.NewReading(spansOfPath, []any{head}, func(row *sqlx.Rows) error {
		var sp Span
		if err := row.Scan(&sp.Session, &sp.From, &sp.To, &sp.first); err != nil {
			return err
		}
		return yield(sp)
	})
}

// jumpBefore is the row of the jump that begins the run of messages that m ends.
const jumpBefore = `(SELECT j.id FROM messages j WHERE j.session_id = m.session_id AND j.jump = 1 AND j.seq <= m.seq ORDER BY j.seq DESC LIMIT 1)`

const spansOfPath = `
	WITH RECURSIVE span (session_id, upto, jump_id) AS (
		SELECT m.session_id, m.seq, ` + jumpBefore + ` FROM messages m WHERE m.id = ?
		UNION ALL
		SELECT m.session_id, m.seq, ` + jumpBefore + `
		FROM span s JOIN messages f ON f.id = s.jump_id JOIN messages m ON m.id = f.parent_id)
	SELECT s.session_id, COALESCE((SELECT f.seq FROM messages f WHERE f.id = s.jump_id), 1), s.upto, COALESCE(s.jump_id, 0) FROM span s`

// spansAfter cuts a path to what comes after a message, or with it if from is true; all where it is
// not on the path.
func spansAfter(spans []Span, ref session.MessageRef, from bool) []Span {
	for i, sp := range spans {
		if !sp.holds(ref) {
			continue
		}
		if !from {
			ref.Seq++
		}
		if ref.Seq > sp.To {
			return spans[:i]
		}
		sp.From = ref.Seq
		return append(slices.Clone(spans[:i]), sp)
	}
	return spans
}

// Spans gives the path to head as spans, the newest first, without reading its content.
func (s *Store) Spans(ctx context.Context, head int64) ([]Span, error) {
	return pathSpans(ctx, s, &head)
}

// Root gives the first run of messages of the path to head: its root and the last message
// that follows it in a line.
func (s *Store) Root(ctx context.Context, head int64) (first, last session.MessageRef, err error) {
	var root Span
	err = eachSpan(ctx, s, &head, func(sp Span) error {
		root = sp
		return nil
	})
	return session.MessageRef{Session: root.Session, Seq: root.From},
		session.MessageRef{Session: root.Session, Seq: root.To}, err
}

// spanTo finds the run of messages that ends at a row, and the parent before it.
func spanTo(ctx context.Context, q engine.Queryer, last int64) (run Span, parent *int64, err error) {
	none := true
	err = q.Read(ctx, engine.NewReading(spanToRow, []any{last}, func(row *sqlx.Rows) error {
		none = false
		return row.Scan(&run.Session, &run.From, &run.To, &parent)
	}))
	if err == nil && none {
		err = missingRow(last)
	}
	return run, parent, err
}

const spanToRow = `
	SELECT m.session_id, COALESCE(f.seq, 1), m.seq, f.parent_id
	FROM messages m LEFT JOIN messages f ON f.id = ` + jumpBefore + ` WHERE m.id = ?`

// walkBatch is how many messages a walk reads at once. A caller that stops has read at most so
// many in vain; a statement costs as much as a few messages, so larger batches save little.
const walkBatch = 48

// Walk goes from head to the root, the newest message first, until yield returns false.
func (s *Store) Walk(ctx context.Context, head int64, yield func(session.Message) bool) error {
	return s.WalkDownTo(ctx, head, 0, yield)
}

// WalkDownTo is Walk no further than to the last message whose row is not below lowest, and
// reads none beyond it: rows fall along a path.
func (s *Store) WalkDownTo(ctx context.Context, head, lowest int64, yield func(session.Message) bool) error {
	for next := &head; next != nil && *next >= lowest; {
		run, parent, err := spanTo(ctx, s, *next)
		if err != nil {
			return err
		}
		for to := run.To; to >= run.From; {
			lo := max(run.From, to-walkBatch+1)
			msgs, err := readRangeDownTo(ctx, s, run.Session, lo, to, lowest)
			if err != nil {
				return fmt.Errorf("path of row %d: %w", head, err)
			}
			for i := range slices.Backward(msgs) {
				if err := readBlobs(ctx, s, &msgs[i]); err != nil { // only of messages that the caller gets
					return fmt.Errorf("path of row %d: %w", head, err)
				}
				m := msgs[i]
				if msgs[i] = (session.Message{}); !yield(m) { // the caller may drop it before the next one
					return nil
				}
			}
			if lowest > 0 && int64(len(msgs)) <= to-lo {
				return nil
			}
			to = lo - 1
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
	err := s.WalkDownTo(ctx, head, after, func(m session.Message) bool {
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

// RefsBetween names the messages of the path to head in order, from the message after the row after (0: from the
// root), without reading them. Codes: NotFound when after is not on the path.
func (s *Store) RefsBetween(ctx context.Context, head, after int64) ([]session.MessageRef, error) {
	spans, err := spansDownTo(ctx, s, head, after)
	if err != nil {
		return nil, err
	}
	if after > 0 {
		ref, err := refOf(ctx, s, after)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(spans, func(sp Span) bool { return sp.holds(ref) }) {
			return nil, session.Errorf(session.NotFound, "message row %d is not on the path", after)
		}
		spans = spansAfter(spans, ref, false)
	}
	var refs []session.MessageRef
	for _, sp := range slices.Backward(spans) {
		for seq := sp.From; seq <= sp.To; seq++ {
			refs = append(refs, session.MessageRef{Session: sp.Session, Seq: seq})
		}
	}
	return refs, nil
}

// EachOnPath yields the path to head from its root, oldest message first, as EachInRange does.
// Codes: Busy (a purge deleted some meanwhile).
func (s *Store) EachOnPath(ctx context.Context, head int64, yield func(*session.Message) error) error {
	spans, err := pathSpans(ctx, s, &head)
	if err != nil {
		return err
	}
	for _, sp := range slices.Backward(spans) {
		n, err := s.eachInRange(ctx, sp.Session, sp.From, sp.To, func(m *session.Message) error {
			if err := readCompleteBlobs(ctx, s, m); err != nil {
				return err
			}
			return yield(m)
		})
		if err == nil && n <= sp.To-sp.From {
			err = purgedMeanwhile(sp.Session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OnPath reports whether a message lies on the path to head, without reading the path.
func (s *Store) OnPath(ctx context.Context, head, message int64) (bool, error) {
	return onPath(ctx, s, head, message)
}

func onPath(ctx context.Context, q engine.Queryer, head, message int64) (bool, error) {
	if message >= head { // parents are older than their children
		return message == head, nil
	}
	var ref *session.MessageRef
	on := false
	err := q.Read(ctx, engine.IntoFirst(&ref, nameOfMessage, message), intoSpans(func(sp Span) error {
		if on = ref != nil && sp.holds(*ref); on || ref == nil || sp.first <= message && sp.first > 0 {
			return engine.ErrEnough
		}
		return nil
	}, head))
	return on, err
}

// spansDownTo returns the spans of a path that may hold the row lowest or a newer one. Rows fall
// along a path, so a place near the head is found without reading the many branches before it.
func spansDownTo(ctx context.Context, q engine.Queryer, head, lowest int64) ([]Span, error) {
	var spans []Span
	err := eachSpan(ctx, q, &head, func(sp Span) error {
		spans = append(spans, sp)
		if sp.first <= lowest && sp.first > 0 {
			return engine.ErrEnough
		}
		return nil
	})
	return spans, err
}

func reverse[T any](s []T) { slices.Reverse(s) }
