package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/usage"
)

// treeSizes are how many messages the straight session has, and how often the other one was
// left for another branch.
func (b *bench) treeSizes() (messages, branches int) {
	if b.quick {
		return 20_000, 500
	}
	return 1_000_000, 10_000
}

// fillTrees makes a session whose messages are in a line, and one in which every reply was
// made twice: its path passes a branch that was left at every other message.
func fillTrees(ctx context.Context, path string, messages, branches int) (err error) {
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	a := newAuthor(11)
	fill := func(name string, n int, parent func(int) string) error {
		batch := store.ImportBatch{Session: store.NewSession{Source: session.SourcePi, SourceID: name, Title: name}}
		for i := range n {
			m := a.message(i%2, 12)
			m.ExternalID = fmt.Sprint(name, i)
			batch.Messages = append(batch.Messages, store.ImportMessage{Message: m, ParentKey: parent(i)})
			if len(batch.Messages) < batchSize && i < n-1 {
				continue
			}
			if _, err := s.Import(ctx, batch); err != nil {
				return err
			}
			batch.Messages = batch.Messages[:0]
		}
		return nil
	}
	err = fill("line", messages, func(i int) string {
		if i == 0 {
			return ""
		}
		return fmt.Sprint("line", i-1)
	})
	if err != nil {
		return err
	}
	// Of three messages the first asks, the second answers and is left, the third answers again.
	return fill("branches", 3*branches, func(i int) string {
		switch {
		case i == 0:
			return ""
		case i%3 == 2:
			return fmt.Sprint("branches", i-2)
		}
		return fmt.Sprint("branches", i-1)
	})
}

// trees measures forks, moves of the head and trees of large sessions.
func (b *bench) trees(ctx context.Context) (err error) {
	messages, branches := b.treeSizes()
	dir := filepath.Join(b.data, fmt.Sprintf("trees-%d-%d", messages, branches))
	made, err := b.cached(dir, func(temp string) error {
		return fillTrees(ctx, filepath.Join(temp, "sessions.db"), messages, branches)
	})
	if err != nil {
		return err
	}
	if made > 0 {
		b.say("made the trees in %s", made.Round(time.Millisecond))
	}
	path := filepath.Join(b.work, "trees.db")
	if err := copyFile(filepath.Join(dir, "sessions.db"), path); err != nil {
		return err
	}
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	catalogue, err := usage.Load(nil)
	if err != nil {
		return err
	}
	line, err := s.SessionBySource(ctx, session.SourcePi, "line")
	if err != nil {
		return err
	}
	crooked, err := s.SessionBySource(ctx, session.SourcePi, "branches")
	if err != nil {
		return err
	}
	if err := b.forks(ctx, s, line, messages); err != nil {
		return err
	}
	return b.branched(ctx, s, manager(s, catalogue), line, crooked, branches)
}

func (b *bench) forks(ctx context.Context, s *store.Store, line session.Session, messages int) error {
	seq := int64(0)
	back := func() *session.MessageRef { // somewhere else each time
		seq = (seq*7919 + 13) % line.LastSeq
		return &session.MessageRef{Session: line.ID, Seq: seq + 1}
	}
	times, err := race(ctx, b.rounds, b.count(20),
		variant{name: "create", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error { _, err := s.CreateSession(ctx, store.NewSession{}); return err })
		}},
		variant{name: "fork", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error { _, err := s.Fork(ctx, store.Fork{Session: line.ID}); return err })
		}},
		variant{name: "fork in the middle", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error { _, err := s.Fork(ctx, store.Fork{Session: line.ID, At: back()}); return err })
		}},
		variant{name: "head", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				_, err := s.MoveHead(ctx, store.HeadMove{Session: line.ID, To: back()})
				return err
			})
		}})
	if err != nil {
		return err
	}
	const bare = "an empty session, made"
	b.add(row{name: "fork of a session of " + thousands(messages) + " messages, at its head", product: times[1], baseline: times[0], against: bare, aims: []aim{{atMost: float64(5 * time.Millisecond)}}})
	b.add(row{name: "… in its middle", product: times[2], baseline: times[0], against: bare, aims: []aim{{atMost: float64(5 * time.Millisecond)}}})
	b.add(row{name: "its head moved anywhere", product: times[3], baseline: times[0], against: bare, aims: []aim{{atMost: float64(5 * time.Millisecond)}}})
	_, err = s.MoveHead(ctx, store.HeadMove{Session: line.ID, To: line.Head})
	return err
}

func (b *bench) branched(ctx context.Context, s *store.Store, m *contextmgr.Manager, line, crooked session.Session, branches int) error {
	last := func(sess session.Session) variant {
		return variant{name: "last 50", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				msgs, _, err := s.Messages(ctx, sess.ID, store.MessagePage{Limit: 50, Descending: true})
				return wrong(err, len(msgs), 50)
			})
		}}
	}
	tree := func(sess session.Session, limit int) variant {
		return variant{name: "tree", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				t, err := s.Tree(ctx, sess.ID, store.TreePage{Limit: limit})
				if err == nil && len(t.Segments) == 0 {
					err = errors.New("an empty tree")
				}
				return err
			})
		}}
	}
	appending := func(sess session.Session, branch bool) variant {
		return variant{name: "append", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				in := store.Append{Session: sess.ID, Messages: []session.Message{newAuthor(1).message(0, 12)}}
				if branch {
					in.Parent = &session.MessageRef{Session: sess.ID, Seq: 1 + sess.LastSeq/2}
				}
				_, err := s.Append(ctx, in)
				return err
			})
		}}
	}
	times, err := race(ctx, b.rounds, b.count(20), last(line), last(crooked), tree(line, 50), tree(crooked, 50), appending(line, false), appending(crooked, true))
	if err != nil {
		return err
	}
	many := thousands(branches)
	if branches < 1000 {
		many = fmt.Sprint(branches)
	}
	b.add(row{name: "last 50 of a path that passes " + many + " branches", product: times[1], baseline: times[0], against: "last 50 of a line", aims: []aim{{atMost: float64(5 * time.Millisecond)}}})
	b.add(row{name: "tree of a long line", product: times[2]})
	b.add(row{name: "first 50 segments of a tree with " + many + " branches", product: times[3], baseline: times[2], against: "the tree of a line"})
	b.add(row{name: "append that branches off in it", product: times[5], baseline: times[4], against: "append to a line"})
	whole, err := race(ctx, min(b.rounds, 3), 1, tree(crooked, 0), variant{name: "context", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			_, err := m.Assemble(ctx, crooked.ID, contextmgr.Budget{Window: 10_000})
			return err
		})
	}})
	if err != nil {
		return err
	}
	b.add(row{name: "the whole tree", product: whole[0]})
	return nil
}
