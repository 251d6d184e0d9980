package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
	"sessiond/internal/search"
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
	long := func(h *history) session.ID { return h.long.ID }
	wide := func(h *history) session.ID { return h.wide.ID }
	assemble := func(of func(*history) session.ID, settings contextmgr.Settings, want int) func(*history) error {
		return func(h *history) error { return h.assemble(ctx, managers[h], of(h), settings, want) }
	}

	b.Run("last 50 messages", func(b *testing.B) {
		product, other := pair(func(h *history) error {
			_, _, err := h.store.Messages(ctx, h.long.ID, store.MessagePage{Limit: 50, Descending: true})
			return err
		})
		compare(b, 20, product, bare(large.long, 50), other)
	})
	b.Run("52 messages", func(b *testing.B) {
		product, other := pair(assemble(long, silent(), keptLong+1))
		compare(b, 20, product, bare(large.long, keptLong), other)
	})
	b.Run("240 messages, a full window", func(b *testing.B) {
		product, other := pair(assemble(wide, silent(), keptWide+1))
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
			_, err := managers[h].Turn(ctx, h.long.ID, contextmgr.TurnInput{Budget: contextmgr.Budget{
				Dialect:  "openai.chat",
				Settings: silent(),
			}})
			return err
		})
		compare(b, 1, product, other, &side{name: "bare-append", op: openFloor(b, write.sentence(10)).transaction(2)})
	})
}

// silent are settings without recall.
func silent() contextmgr.Settings {
	none := int64(0)
	return contextmgr.Settings{RecallTokens: &none}
}

// assemble makes a context of a session as the API answers it, which must have want messages.
func (h *history) assemble(ctx context.Context, m *contextmgr.Manager, id session.ID, settings contextmgr.Settings,
	want int,
) error {
	view, err := m.Assemble(ctx, id, contextmgr.Budget{Dialect: "openai.chat", Settings: settings})
	if err != nil {
		return err
	}
	if len(view.Messages) != want {
		return fmt.Errorf("a context of %d messages, not %d", len(view.Messages), want)
	}
	_, err = api.Render(view)
	return err
}

// read is one way of reading a history.
type read struct {
	name string
	op   func() error
}

// reads returns the contexts, lists and pages that clients ask for most.
func (h *history) reads(ctx context.Context, tb testing.TB) []read {
	contexts, reports := h.contexts(tb), analytics.New(h.store.Reader(), time.UTC)
	list := func(f store.Filter, want int) func() error {
		return func() error {
			data, _, err := h.store.Sessions(ctx, f, store.Page{Limit: listed})
			if err == nil && (len(data) > want || len(data) == 0) {
				err = fmt.Errorf("%d sessions, not %d", len(data), want)
			}
			return err
		}
	}
	return []read{
		{"50 sessions", list(store.Filter{}, listed)},
		{"50 sessions of people", list(store.Filter{People: true}, listed)},
		{"50 sessions of a project", list(store.Filter{Project: "/home/me/project-7"}, listed)},
		{"sessions by a rare word of the title", list(store.Filter{Query: uuid(5)}, 1)},
		{"projects", func() error {
			_, err := h.store.Values(ctx, store.ColumnProject)
			return err
		}},
		{"last 50 messages", func() error {
			_, _, err := h.store.Messages(ctx, h.long.ID, store.MessagePage{Limit: 50, Descending: true})
			return err
		}},
		{"150 messages of the middle", func() error {
			return h.store.EachInRange(ctx, h.long.ID, h.long.LastSeq/2, h.long.LastSeq/2+150, func(*session.Message) error {
				return nil
			})
		}},
		{"tree", func() error {
			_, err := h.store.Tree(ctx, h.long.ID, store.TreePage{Limit: 50})
			return err
		}},
		{"prompts", func() error {
			_, _, err := h.store.Prompts(ctx, *h.long.HeadID, 1, 20)
			return err
		}},
		{"context of 52 messages", func() error { return h.assemble(ctx, contexts, h.long.ID, silent(), keptLong+1) }},
		{"context of 240 messages", func() error { return h.assemble(ctx, contexts, h.wide.ID, silent(), keptWide+1) }},
		{"context with recall", func() error {
			return h.assemble(ctx, contexts, h.long.ID, contextmgr.Settings{}, keptLong+1)
		}},
		{"search by session", func() error {
			_, err := h.index.Search(ctx, search.Query{Text: knownWord, Group: search.GroupSession, Limit: 20})
			return err
		}},
		{"usage by project", func() error {
			_, err := reports.Stats(ctx, analytics.Filter{}, analytics.ByProject)
			return err
		}},
	}
}
