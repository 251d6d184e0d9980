package export

import (
	"context"
	"fmt"
	"io"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// path reads a session with the path to its head, and the compactions on it, masked.
func path(ctx context.Context, s *store.Store, id session.ID, opt *Options) (session.Session, []session.Message, []session.Compaction, error) {
	sess, err := s.Session(ctx, id)
	if err != nil {
		return sess, nil, nil, err
	}
	var msgs []session.Message
	if sess.HeadID != nil {
		if msgs, err = s.Path(ctx, *sess.HeadID, 0); err != nil {
			return sess, nil, nil, fmt.Errorf("path of %s: %w", id, err)
		}
	}
	compactions, err := s.Compactions(ctx, id)
	if err != nil {
		return sess, nil, nil, err
	}
	opt.Mask.Session(&sess)
	for i := range msgs {
		opt.Mask.Message(&msgs[i])
	}
	for i := range compactions {
		opt.Mask.Compaction(&compactions[i])
	}
	return sess, msgs, compactions, nil
}

// transcriptOf writes sessions by a form of their transcript.
func transcriptOf(write func(io.Writer, transcript.Heading, []transcript.Item, *Options) error) func(context.Context, io.Writer, *store.Store, []session.ID, *Options) (Report, error) {
	return func(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
		ids, err := named(ctx, s, ids)
		if err != nil {
			return Report{}, err
		}
		report := Report{Sessions: ids}
		for i, id := range ids {
			sess, msgs, compactions, err := path(ctx, s, id, opt)
			if err != nil {
				return report, err
			}
			if i > 0 {
				if _, err := io.WriteString(out, "\n"); err != nil {
					return report, err
				}
			}
			report.Messages += len(msgs)
			if err := write(out, transcript.HeadingOf(&sess, msgs, opt.Zone), transcript.Build(sess, msgs, compactions), opt); err != nil {
				return report, err
			}
		}
		return report, nil
	}
}

// named gives the ids, or those of every session, oldest first.
func named(ctx context.Context, s *store.Store, ids []session.ID) ([]session.ID, error) {
	if len(ids) > 0 {
		return ids, nil
	}
	return ordered(ctx, s, nil)
}
