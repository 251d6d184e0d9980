package export

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// reading is a session to write: its record, masked, and its path, which is read in pages.
type reading struct {
	session.Session
	store       *store.Store
	opt         *Options
	compactions []session.Compaction
	spans       store.Ranges // of the path
}

// read reads a session without its messages.
func read(ctx context.Context, s *store.Store, id session.ID, opt *Options) (*reading, error) {
	r := &reading{store: s, opt: opt}
	var err error
	if r.Session, err = s.Session(ctx, id); err != nil {
		return nil, err
	}
	if r.HeadID != nil {
		if r.spans, err = s.Spans(ctx, *r.HeadID); err != nil {
			return nil, fmt.Errorf("path of %s: %w", id, err)
		}
		slices.Reverse(r.spans)
	}
	if r.compactions, err = s.Compactions(ctx, id); err != nil {
		return nil, err
	}
	opt.Mask.Session(&r.Session)
	for i := range r.compactions {
		opt.Mask.Compaction(&r.compactions[i])
	}
	return r, nil
}

// eachOnPath yields the messages of the path, oldest first.
func (r *reading) eachOnPath(ctx context.Context, yield func(*session.Message) error) error {
	if r.HeadID == nil {
		return nil
	}
	return r.purgedOr(ctx, r.store.EachOnPath(ctx, *r.HeadID, func(m *session.Message) error {
		r.opt.Mask.Message(m)
		return yield(m)
	}))
}

// labels returns the first tags of messages, masked.
func (r *reading) labels(ctx context.Context) (map[session.MessageRef]string, error) {
	all := map[session.MessageRef]string{}
	marks, err := r.store.Marks(ctx, r.ID)
	for i := range marks {
		m := &marks[i]
		if m.Kind != store.MarkTag || m.Message == nil {
			continue
		}
		if _, later := all[*m.Message]; !later {
			all[*m.Message] = r.opt.Mask.Text(m.Text)
		}
	}
	return all, r.purgedOr(ctx, err)
}

// purgedOr returns the error of reading, or that the session was purged meanwhile, which may be its
// cause.
func (r *reading) purgedOr(ctx context.Context, err error) error {
	if gone := r.store.CheckNotPurged(ctx, r.ID); err == nil || session.CodeOf(gone) == session.Busy {
		return gone
	}
	return err
}

// transcriptOf returns a function that writes sessions as transcripts.
func transcriptOf(newWriter func(io.Writer, transcript.Heading,
	*Options) transcript.Writer,
) func(context.Context, io.Writer, *store.Store, []session.ID, *Options) (Report, error) {
	return func(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
		ids, err := idsOrAll(ctx, s, ids)
		if err != nil {
			return Report{}, err
		}
		report := Report{Sessions: ids}
		for i, id := range ids {
			r, err := read(ctx, s, id, opt)
			if err != nil {
				return report, err
			}
			if i > 0 {
				if _, err := io.WriteString(out, "\n"); err != nil {
					return report, err
				}
			}
			said, err := s.SaidOnPath(ctx, r.spans, id)
			if err != nil {
				return report, err
			}
			w := newWriter(out, transcript.HeadingOf(&r.Session, said, opt.Zone), opt)
			items := transcript.NewStream(r.Session, r.compactions, w.Item)
			if err := r.eachOnPath(ctx, func(m *session.Message) error {
				report.Messages++
				return items.Message(m)
			}); err != nil {
				return report, err
			}
			if err := items.Close(); err != nil {
				return report, err
			}
			if err := w.Close(); err != nil {
				return report, err
			}
		}
		return report, nil
	}
}

// idsOrAll returns the ids, or those of every session, oldest first.
func idsOrAll(ctx context.Context, s *store.Store, ids []session.ID) ([]session.ID, error) {
	if len(ids) > 0 {
		return ids, nil
	}
	return sessiond.Order(ctx, s, nil)
}
