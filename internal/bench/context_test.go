package bench_test

import (
	"fmt"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/api"
)

// BenchmarkContext reads conversations of a large history as contexts for a model. The baselines are
// the SELECTs of the messages straight on the driver, and the same in a history of 1,000 messages.
func BenchmarkContext(b *testing.B) {
	ctx := b.Context()
	large, small := openHistory(b, sized(*historySize)), openHistory(b, 1000)
	readers := map[*history]*bare{large: openBare(b, large.path, readerPragmas())}
	managers := map[*history]*contextmgr.Manager{large: large.contexts(b), small: small.contexts(b)}
	bare := func(s session.Session, n int64) *side {
		return &side{name: "bare", op: func() error { return readers[large].readMessages(s.ID, s.LastSeq-n+1, s.LastSeq) }}
	}
	pair := func(op func(*history) error) (*side, *side) {
		return &side{op: func() error { return op(large) }}, &side{name: "1k", op: func() error { return op(small) }}
	}
	none := int64(0)
	assemble := func(of func(*history) session.ID, settings contextmgr.Settings, want int) func(*history) error {
		return func(h *history) error {
			view, err := managers[h].Assemble(ctx, of(h), contextmgr.Budget{Dialect: "openai.chat", Settings: settings})
			if err != nil {
				return err
			}
			if len(view.Messages) != want {
				return fmt.Errorf("a context of %d messages, not %d", len(view.Messages), want)
			}
			_, err = api.Render(view)
			return err
		}
	}
	long := func(h *history) session.ID { return h.long.ID }
	wide := func(h *history) session.ID { return h.wide.ID }
	silent := contextmgr.Settings{RecallTokens: &none}

	b.Run("last 50 messages", func(b *testing.B) {
		product, other := pair(func(h *history) error {
			_, _, err := h.store.Messages(ctx, h.long.ID, store.MessagePage{Limit: 50, Descending: true})
			return err
		})
		compare(b, 20, product, bare(large.long, 50), other)
	})
	b.Run("52 messages", func(b *testing.B) {
		product, other := pair(assemble(long, silent, keptLong+1))
		compare(b, 20, product, bare(large.long, keptLong), other)
	})
	b.Run("240 messages, a full window", func(b *testing.B) {
		product, other := pair(assemble(wide, silent, keptWide+1))
		compare(b, 5, product, bare(large.wide, keptWide), other)
	})
	b.Run("52 messages with recall", func(b *testing.B) {
		product, other := pair(assemble(long, contextmgr.Settings{}, keptLong+1))
		compare(b, 5, product, bare(large.long, keptLong), other)
	})
	b.Run("fork", func(b *testing.B) {
		product, other := pair(func(h *history) error {
			_, err := h.store.Fork(ctx, store.Fork{Session: h.long.ID})
			return err
		})
		compare(b, 5, product, &side{name: "create", op: func() error {
			_, err := large.store.CreateSession(ctx, store.NewSession{})
			return err
		}}, other)
	})
	b.Run("turn: append 2 messages, record the context", func(b *testing.B) { // last: it makes the conversation longer
		write := newAuthor(9)
		product, other := pair(func(h *history) error {
			msgs := []session.Message{write.message(3, 10), write.message(0, 10)}
			if _, err := h.store.Append(ctx, store.Append{Session: h.long.ID, Messages: msgs}); err != nil {
				return err
			}
			_, err := managers[h].Turn(ctx, h.long.ID, contextmgr.TurnInput{Budget: contextmgr.Budget{Dialect: "openai.chat", Settings: silent}})
			return err
		})
		compare(b, 1, product, other, &side{name: "bare-append", op: openFloor(b, write.sentence(10)).transaction(2)})
	})
}
