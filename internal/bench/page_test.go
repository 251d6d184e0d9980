package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/pages"
)

// BenchmarkPage renders pages of a large history. The baseline is reading what they show.
func BenchmarkPage(b *testing.B) {
	ctx := b.Context()
	h := openHistory(b, sized(*historySize))
	door := guard.New(guard.Options{NoAuth: true})
	shown := pages.New(pages.Config{
		Store: h.store, Search: h.index, Contexts: h.contexts(b), Reports: analytics.New(h.store.Reader(), time.UTC),
		Guard: door, Now: time.Now, Zone: time.UTC, Log: zerolog.Nop(),
	})
	door.Admit(shown)
	get := func(path string) func() error {
		return func() error {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
			if door.TCP(shown).ServeHTTP(w, r); w.Code != http.StatusOK {
				return fmt.Errorf("%s: %d", path, w.Code)
			}
			return nil
		}
	}
	long := h.long
	for _, page := range []struct {
		name, path string
		read       func() error
	}{
		{"sessions", "/", func() error {
			_, _, err := h.store.Sessions(ctx, store.Filter{People: true}, store.Page{Limit: 60})
			return err
		}},
		{"search", "/?q=" + knownWord, func() error {
			_, err := h.index.Search(ctx, search.Query{Text: knownWord, Group: search.GroupSession, Limit: 20})
			return err
		}},
		{"the middle of a conversation", fmt.Sprintf("/s/%s?at=%d", long.ID, long.LastSeq/2), func() error {
			return h.store.EachInRange(ctx, long.ID, long.LastSeq/2, long.LastSeq/2+150, func(*session.Message) error {
				return nil
			})
		}},
	} {
		b.Run(page.name, func(b *testing.B) {
			compare(b, 5, &side{op: get(page.path)}, &side{name: "read", op: page.read})
		})
	}
}
