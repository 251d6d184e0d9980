package bench_test

import (
	"context"
	"database/sql"
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
	"sessiond/internal/testkit"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/pages"
)

// addSessions adds sessions without messages, so that a list has many.
func addSessions(b *testing.B, path string, n int) {
	b.Helper()
	db := testkit.Must(sql.Open("sqlite", path))(b)
	defer db.Close()
	testkit.Must(db.ExecContext(b.Context(), `
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO sessions (id, day, title, source, project, created_at, updated_at, active_at)
		SELECT printf('2023%02d%02d_%06d', i % 12 + 1, i % 28 + 1, i), printf('2023-%02d-%02d', i % 12 + 1, i % 28 + 1), 'Talk ' || i,
		       'pi', '/home/me/p' || (i % 50), at, at, at
		FROM (SELECT i, strftime('%Y-%m-%d %H:%M:%f', '2025-01-01', i || ' minutes') AS at FROM n)`, n))(b)
	testkit.Must(db.ExecContext(b.Context(), `
		UPDATE sessions SET project = '/home/me/rare' WHERE id IN
			(SELECT id FROM sessions WHERE title LIKE 'Talk %' ORDER BY active_at LIMIT 20)`))(b)
	testkit.Must(db.ExecContext(b.Context(), `
		INSERT INTO daily_usage (day, project, source, model, purpose, sessions)
		SELECT '2025-01-01', project, 'pi', 'm', 'chat', COUNT(*) FROM sessions WHERE title LIKE 'Talk %' GROUP BY project`))(b)
}

// BenchmarkPage renders pages of a large history. The baseline is reading what they show.
func BenchmarkPage(b *testing.B) {
	ctx := b.Context()
	h := openHistory(b, sized(*historySize))
	door := guard.New(guard.Options{NoAuth: true})
	shown := pages.New(pages.Config{
		Store: h.store, Search: h.index, Contexts: h.contexts(b), Reports: analytics.New(h.store.Reader(), time.UTC),
		Guard: door, Alarm: func(context.Context) string { return "" }, Now: time.Now, Zone: time.UTC, Log: zerolog.Nop(),
	})
	door.Admit(shown)
	addSessions(b, h.path, sized(100_000))
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
		{"sessions of a project", "/?project=/home/me/p7", func() error {
			_, _, err := h.store.Sessions(ctx, store.Filter{Project: "/home/me/p7", People: true}, store.Page{Limit: 60})
			return err
		}},
		{"sessions of an old project", "/?project=/home/me/rare", func() error {
			_, _, err := h.store.Sessions(ctx, store.Filter{Project: "/home/me/rare", People: true}, store.Page{Limit: 60})
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
