package export

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sessiond/internal/history/goose"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// writePi writes a session, branches and all, as a file of pi.
func writePi(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	id, err := only(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	sess, path, compactions, err := path(ctx, s, id, opt)
	if err != nil {
		return Report{}, err
	}
	file := pi.Session{Session: sess, Compactions: compactions, Path: map[int64]bool{}, Calls: map[int64]*session.Call{}}
	for i := range path {
		file.Path[path[i].RowID] = true
	}
	if file.Messages, err = tree(ctx, s, &sess, path, opt); err != nil {
		return Report{}, err
	}
	if file.Calls, err = calls(ctx, s, id); err != nil {
		return Report{}, err
	}
	leftOut, err := pi.Write(out, &file)
	return Report{Sessions: []session.ID{id}, Messages: len(file.Messages), LeftOut: leftOut}, err
}

// writeGoose writes the path of a session as Goose exports one.
func writeGoose(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	id, err := only(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	sess, path, compactions, err := path(ctx, s, id, opt)
	if err != nil {
		return Report{}, err
	}
	file := goose.Session{Session: sess, Messages: path}
	for i := range compactions {
		if sess.CompactionID != nil && compactions[i].RowID == *sess.CompactionID {
			file.Overlay = &compactions[i]
		}
	}
	written, err := goose.Write(out, &file)
	return Report{Sessions: []session.ID{id}, Messages: written.Messages, LeftOut: written.LeftOut}, err
}

// only gives the one session that there is.
func only(ctx context.Context, s *store.Store, ids []session.ID) (session.ID, error) {
	ids, err := named(ctx, s, ids)
	if err != nil {
		return "", err
	}
	if len(ids) != 1 {
		return "", session.Errorf(session.Invalid, "a file of this format holds one session, not %d", len(ids))
	}
	return ids[0], nil
}

// tree gives all messages of a session, and before them those that its branches begin with in
// the sessions that it was forked from. Parents come before their children.
func tree(ctx context.Context, s *store.Store, sess *session.Session, path []session.Message, opt *Options) ([]session.Message, error) {
	have := map[int64]bool{}
	var all []session.Message
	add := func(msgs []session.Message, mask bool) {
		for i := range msgs {
			if m := &msgs[i]; !have[m.RowID] {
				have[m.RowID] = true
				if mask {
					opt.Mask.Message(m)
				}
				all = append(all, *m)
			}
		}
	}
	for i := range path {
		if path[i].SessionID != sess.ID {
			add(path[i:i+1], false)
		}
	}
	page := store.MessagePage{All: true, Limit: 200}
	for {
		msgs, more, err := s.Messages(ctx, sess.ID, page)
		if err != nil {
			return nil, fmt.Errorf("messages of %s: %w", sess.ID, err)
		}
		for i := range msgs {
			m := &msgs[i]
			page.After = m.Seq
			if m.Parent != nil && m.Parent.Session != sess.ID && !have[*m.ParentID] {
				shared, err := s.Path(ctx, *m.ParentID, 0)
				if err != nil {
					return nil, err
				}
				add(shared, true)
			}
			add(msgs[i:i+1], true)
		}
		if !more || len(msgs) == 0 {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b session.Message) int { // rows are in the order of arrival
		return int(a.RowID - b.RowID)
	})
	return all, nil
}

// calls gives a session's calls by the replies that they made.
func calls(ctx context.Context, s *store.Store, id session.ID) (map[int64]*session.Call, error) {
	snap, err := s.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	byReply := map[int64]*session.Call{}
	err = s.EachCall(ctx, id, snap.Calls.Last, func(c *session.Call) error {
		if c.MessageID != nil && c.Purpose == session.PurposeChat {
			kept := *c
			byReply[*c.MessageID] = &kept
		}
		return nil
	})
	return byReply, err
}
