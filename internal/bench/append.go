package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

const (
	writers    = 16
	bareSource = "message+part+session, straight on the driver"
)

// appendInProcess measures store.Append beside the bare statements.
func (b *bench) appendInProcess(ctx context.Context) (err error) {
	s, err := store.Open(ctx, filepath.Join(b.work, "append", "sessions.db"), options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var sessions []session.ID
	for range writers {
		made, err := s.CreateSession(ctx, store.NewSession{Title: "A title"})
		if err != nil {
			return err
		}
		sessions = append(sessions, made.ID)
	}
	bare, err := b.newFloor(ctx, "append", writerPragmas())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()

	n := b.count(200)
	message := []session.Message{textMessage(session.User, session.Person, b.text)}
	one := variant{name: "append", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			_, err := s.Append(ctx, store.Append{Session: sessions[0], Messages: message})
			return err
		})
	}}
	keys := 0
	keyed := variant{name: "append with a key", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			keys++
			_, err := s.Append(ctx, store.Append{
				Session: sessions[0], Messages: message,
				Idem: &store.Idempotency{Key: fmt.Sprint(keys), Route: "POST /v1/sessions/x/messages", Body: []byte(b.text)},
			})
			return err
		})
	}}
	times, err := race(ctx, b.rounds, n, bare.appends("bare", 1), one, keyed)
	if err != nil {
		return err
	}
	b.add(row{name: "append in process, 1 writer", product: times[1], baseline: times[0], against: bareSource, aims: []aim{{ratio: 2}}})
	b.add(row{name: "… with an idempotency key", product: times[2], baseline: times[0], against: bareSource, aims: []aim{{ratio: 2}}})

	many := variant{name: "16 writers", run: func(ctx context.Context, n int) error {
		return atOnce(writers, func(w int) error {
			return each(n/writers, func(int) error {
				_, err := s.Append(ctx, store.Append{Session: sessions[w], Messages: message})
				return err
			})
		})
	}}
	if times, err = race(ctx, b.rounds, writers*b.count(200), bare.appends("bare", writers), many); err != nil {
		return err
	}
	b.add(row{
		name: "append in process, 16 writers", product: times[1], baseline: times[0], unit: rate,
		against: "the same, 16 messages to a transaction", aims: []aim{{atLeast: 10_000}},
	})
	return b.appendTurns(ctx, s, sessions[1], bare)
}

// appendTurns measures a whole turn in one append: a question, an answer that calls a tool,
// its result, a last answer, and the model call behind it.
func (b *bench) appendTurns(ctx context.Context, s *store.Store, id session.ID, bare *floor) error {
	a := newAuthor(2)
	turn := variant{name: "turn", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			msgs := make([]session.Message, 4)
			for i := range msgs {
				msgs[i] = a.message(i, 60)
			}
			_, err := s.Append(ctx, store.Append{Session: id, Messages: msgs, Call: &session.Call{
				Provider: "openai", Model: "gpt-4o", InputTokens: 12_000, OutputTokens: 300,
			}})
			return err
		})
	}}
	base := variant{name: "bare turn", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error { return bare.transact(ctx, 4, part{}, nil) })
	}}
	times, err := race(ctx, b.rounds, b.count(200), base, turn)
	if err != nil {
		return err
	}
	b.add(row{
		name: "append a turn: 4 messages, a tool call, a model call", product: times[1], baseline: times[0],
		against: "4 × message+part+session in one transaction", aims: []aim{{ratio: 2}},
	})
	return nil
}

// each does something n times.
func each(n int, do func(i int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// atOnce does something in k goroutines and waits for all.
func atOnce(k int, do func(i int) error) error {
	errs := make([]error, k)
	var wg sync.WaitGroup
	for i := range k {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// count gives a number of operations for one round.
func (b *bench) count(n int) int {
	if b.quick {
		return max(5, n/20)
	}
	return n
}
