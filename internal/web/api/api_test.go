package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sessiond/internal/analytics"
	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/jobs"
	"sessiond/internal/routing"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/web/api"

	"github.com/rs/zerolog"
)

// kit is a server over a real store in a folder of its own.
type kit struct {
	t       *testing.T
	store   *store.Store
	handler http.Handler
	log     *bytes.Buffer
	dir     string
}

// catalogue knows one price: a nano-dollar for each token.
type catalogue struct{}

func (catalogue) Price(c *session.Call) {
	if c.Model == "priced" {
		n := c.InputTokens + c.OutputTokens
		c.CostNanoUSD, c.PriceSource = &n, "catalogue"
	}
}

func (catalogue) Model(id string) (session.ModelInfo, bool) {
	return session.ModelInfo{ID: id, Window: 100_000}, id == "m"
}

func newKit(t *testing.T, change func(*api.Deps)) *kit {
	t.Helper()
	var ticks atomic.Int64 // each look at the clock is a millisecond later
	return newKitAt(t, func() time.Time {
		return time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC).Add(time.Duration(ticks.Add(1)) * time.Millisecond)
	}, change)
}

// newKitAt is a server that goes by a clock of the test's.
func newKitAt(t *testing.T, now func() time.Time, change func(*api.Deps)) *kit {
	t.Helper()
	t.Parallel() // most of a test's time is a disk's
	k := &kit{t: t, log: &bytes.Buffer{}, dir: t.TempDir()}
	db := storetest.New(t, filepath.Join(k.dir, "sessions.db"))
	k.store = testkit.Must(store.Open(t.Context(), db, store.Options{
		SQL: storetest.ReaderOf(t, db), Now: now, Zone: time.UTC, Log: zerolog.Nop(), Measure: tokens.Reference().Measure,
		Touched: touched.Files, Silent: routing.SilentMessage,
	}))(t)
	index := testkit.Must(search.Open(t.Context(), filepath.Join(k.dir, "search.db"), k.store))(t)
	t.Cleanup(func() {
		if err := index.Close(); err != nil {
			t.Error(err)
		}
		if err := k.store.Close(); err != nil {
			t.Error(err)
		}
	})
	deps := api.Deps{
		Store: k.store, Contexts: manager(k.store), Search: index,
		Reports:   analytics.New(k.store.Reader(), time.UTC).WithSQL(k.store.SQLReader()),
		Catalogue: catalogue{}, Purges: &jobs.Purger{Store: k.store, Index: index, Log: zerolog.Nop()},
		Log: zerolog.New(zerolog.SyncWriter(k.log)), Version: api.Version{Version: "test", Go: "go"}, Now: now,
		LineSources: []session.Source{session.SourceClaudeCode},
	}
	if change != nil {
		change(&deps)
	}
	k.handler = api.New(deps)
	return k
}

// reply is an answer with its body read as JSON.
type reply struct {
	*http.Response
	raw string
	doc any
}

type header map[string]string

// do sends a request; a body that is no string or nil is sent as JSON.
func (k *kit) do(method, path string, body any, headers ...header) reply {
	k.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		raw := testkit.Must(json.Marshal(b))(k.t)
		r = bytes.NewReader(raw)
	}
	req := httptest.NewRequestWithContext(context.Background(), method, path, r)
	for _, h := range headers {
		for name, value := range h {
			req.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, req)
	out := reply{Response: w.Result(), raw: w.Body.String()}
	if strings.Contains(out.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(w.Body.Bytes(), &out.doc); err != nil {
			k.t.Fatalf("%s %s answers no JSON: %v\n%.300s", method, path, err, out.raw)
		}
	}
	return out
}

// want fails unless the answer has this status.
func (k *kit) want(status int, r reply) reply {
	k.t.Helper()
	if r.StatusCode != status {
		k.t.Fatalf("status %d, want %d: %.600s\n%s", r.StatusCode, status, r.raw, k.errors())
	}
	return r
}

// errors returns the causes that the log holds and the answers do not.
func (k *kit) errors() string {
	var lines []string
	for line := range strings.Lines(k.log.String()) {
		if strings.Contains(line, `"level":"error"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// at reads a value of the answer by a path like data.0.title; nil where there is none.
func (r reply) at(path string) any {
	v := r.doc
	for _, step := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			i := int(step[0] - '0')
			if i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (r reply) text(path string) string {
	s, _ := r.at(path).(string)
	return s
}

// session makes a session and gives its id.
func (k *kit) session(body any) string {
	k.t.Helper()
	if body == nil {
		body = "{}"
	}
	return k.want(201, k.do("POST", "/v1/sessions", body)).text("id")
}

// say appends one message and gives its id.
func (k *kit) say(id, role, content string) string {
	k.t.Helper()
	r := k.want(201, k.do("POST", "/v1/sessions/"+id+"/messages", map[string]any{
		"messages": []any{map[string]any{"role": role, "content": content}},
	}))
	return r.text("messages.0.id")
}

// messages counts the stored messages of all sessions.
func (k *kit) messages() int64 {
	k.t.Helper()
	return k.count(`SELECT COUNT(*) FROM messages`)
}

func (k *kit) count(query string) int64 {
	k.t.Helper()
	var n int64
	testkit.Check(k.t, k.store.Reader().Get(&n, query))
	return n
}

// manager is the real one, offline: the digest alone, and a catalogue of one model.
func manager(st *store.Store) *contextmgr.Manager {
	return contextmgr.New(st, contextmgr.Config{
		Digest: digest.NewExtractive(tokens.Reference().Text),
		Models: func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Window: 128_000, Family: string(tokens.O200k)}, id == "known" || id == "gpt-4o"
		},
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Dialects:  dialect.Providers{},
		Reference: string(tokens.O200k),
		Flush:     contextmgr.FlushSettings{Enabled: true},
	})
}
