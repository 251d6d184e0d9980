package export

import (
	"context"
	"io"
	"slices"

	"sessiond/internal/history/goose"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// writePi writes a session with all branches as a transcript of pi.
func writePi(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	id, err := onlySession(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	r, err := read(ctx, s, id, opt)
	if err != nil {
		return Report{}, err
	}
	shared, err := r.sharedSpans(ctx)
	if err != nil {
		return Report{}, err
	}
	spent, err := r.spending(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Sessions: []session.ID{id}}
	report.LeftOut, err = pi.Write(out, &pi.Session{
		Session: r.Session, OnPath: func(ref session.MessageRef) bool {
			return r.spans.Position(ref) > 0
		}, Compactions: r.compactions, Masked: opt.Mask != nil, Spent: func(row int64) *session.Call { return spent[row] },
		Each: func(first bool, yield func(*session.Message) error) error {
			return r.eachInTree(ctx, shared, func(m *session.Message) error {
				if !first {
					opt.Mask.Message(m)
					report.Messages++
				}
				return yield(m)
			})
		},
	})
	return report, err
}

// writeGoose writes a session's path as an export of Goose.
func writeGoose(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	id, err := onlySession(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	r, err := read(ctx, s, id, opt)
	if err != nil {
		return Report{}, err
	}
	file := goose.Session{Session: r.Session, Along: func(yield func(*session.Message) error) error {
		return r.eachOnPath(ctx, yield)
	}}
	// Goose would go on with what an overlay of sessiond's shows: the conversation stays whole.
	byRow := map[int64]*session.Compaction{}
	for i := range r.compactions {
		byRow[r.compactions[i].RowID] = &r.compactions[i]
	}
	for id := r.CompactionID; id != nil && file.Overlay == nil; {
		c := byRow[*id]
		if c == nil {
			break
		}
		if id = c.PreviousID; c.Trigger == session.TriggerImport {
			file.Overlay = c
		}
	}
	written, err := goose.Write(out, &file)
	return Report{Sessions: []session.ID{id}, Messages: written.Messages, LeftOut: written.LeftOut}, err
}

// onlySession returns the only session.
func onlySession(ctx context.Context, s *store.Store, ids []session.ID) (session.ID, error) {
	ids, err := idsOrAll(ctx, s, ids)
	if err != nil {
		return "", err
	}
	if len(ids) != 1 {
		return "", session.Errorf(session.Invalid, "a file of this format holds one session, not %d", len(ids))
	}
	return ids[0], nil
}

// sharedSpans returns the beginnings of the session's branches in the sessions that it was forked
// from, parents before their children.
func (r *reading) sharedSpans(ctx context.Context) (store.Ranges, error) {
	var shared store.Ranges
	add := func(spans []store.Span) {
		for _, sp := range spans {
			at := slices.IndexFunc(shared, func(have store.Span) bool {
				return have.Session == sp.Session && have.From == sp.From
			})
			switch {
			case sp.Session == r.ID:
			case at < 0:
				shared = append(shared, sp)
			default:
				shared[at].To = max(shared[at].To, sp.To)
			}
		}
	}
	add(r.spans)
	if r.ParentID == "" {
		return shared, nil
	}
	err := r.store.EachInRange(ctx, r.ID, 1, r.LastSeq, func(m *session.Message) error {
		if m.Parent == nil || m.Parent.Session == r.ID || shared.Position(*m.Parent) > 0 {
			return nil
		}
		spans, err := r.store.Spans(ctx, *m.ParentID)
		slices.Reverse(spans)
		add(spans)
		return err
	})
	return shared, err
}

// eachInTree yields the shared messages, then the session's own: parents before their children.
func (r *reading) eachInTree(ctx context.Context, shared store.Ranges, yield func(*session.Message) error) error {
	for _, sp := range shared {
		if err := r.store.EachInRange(ctx, sp.Session, sp.From, sp.To, yield); err != nil {
			return err
		}
	}
	return r.purgedOr(ctx, r.store.EachInRange(ctx, r.ID, 1, r.LastSeq, yield))
}
