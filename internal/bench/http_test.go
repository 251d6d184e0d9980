package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/usage"
	"sessiond/internal/web/api"
)

// BenchmarkHTTP appends to a daemon in a process of its own, over kept-alive connections. The
// baselines are the bare statements: on the driver, and as text piped into the sqlite3 shell.
func BenchmarkHTTP(b *testing.B) {
	d := serve(b, binary(b), filepath.Join(b.TempDir(), "sessions.db"))
	text := newAuthor(3).sentence(60)
	clients, appends := make([]*client, writers), make([][]byte, writers)
	for i := range clients {
		clients[i] = d.dial(b)
		appends[i] = clients[i].newSession(b, text)
	}
	bare := openFloor(b, text)
	appendOne := func(name string) *side {
		return &side{name: name, op: clients[0].sends(appends[0]), cpu: d.cpu}
	}

	b.Run("append, 1 client", func(b *testing.B) {
		sides := []*side{appendOne(""), {name: "bare", op: bare.transaction(1)}}
		if _, err := exec.LookPath("sqlite3"); err == nil {
			sides = append(sides, openFloor(b, text).shell())
		}
		compare(b, 20, sides...)
	})
	b.Run("append, 16 clients", func(b *testing.B) {
		const each = 25
		many := func() error {
			return atOnce(writers, func(i int) error { return repeat(each, clients[i].sends(appends[i]))() })
		}
		wall, _ := compare(b, 1, &side{op: many, per: writers * each, cpu: d.cpu},
			&side{name: "bare", op: repeat(each, bare.transaction(writers)), per: writers * each})
		b.ReportMetric(1/wall, "messages/s")
	})
	for name, body := range map[string]object{
		"route to the session of a key": {
			"channel": "telegram", "chat_type": "group", "peer": "-100123", "text": text,
			"sender": "7",
		},
		"route with a reset, a new session": {"key": "main", "text": "/new and now something else"},
	} {
		b.Run(name, func(b *testing.B) {
			compare(b, 20, &side{op: clients[0].sends(request(b, "POST", "/v1/route", body)), cpu: d.cpu}, appendOne("append"))
		})
	}
}

// BenchmarkLines sends the lines of a transcript in batches of 50, as an SDK does, and imports sessions from them
// meanwhile.
func BenchmarkLines(b *testing.B) {
	const batch, perSession = 50, 40 // batches of a session
	d := serve(b, binary(b), filepath.Join(b.TempDir(), "sessions.db"))
	c, author, n := d.dial(b), newAuthor(3), 0
	send := func() error {
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n/batch/perSession)
		lines := make([]any, batch)
		for i := range lines {
			n++
			lines[i] = object{
				"type": "user", "uuid": fmt.Sprintf("%08x-1111-4000-8000-000000000000", n), "sessionId": id, "cwd": "/home/me/p",
				"version": "2.1.332", "timestamp": "2026-02-08T10:00:00.000Z", "parentUuid": nil,
				"message": object{"role": "user", "content": author.sentence(60)},
			}
		}
		_, err := c.send(request(b, "POST", "/v1/sources/claude-code/lines?project=p&session="+id, object{"lines": lines}))
		return err
	}
	text := author.sentence(60)
	_, cpu := compare(b, 20*batch, &side{op: send, per: batch, cpu: d.cpu},
		&side{name: "append", op: d.dial(b).sends(c.newSession(b, text)), cpu: d.cpu})
	b.ReportMetric(1/cpu, "lines/s-of-CPU")
}

// shell appends in the sqlite3 shell, in C. Our own connection stays open, so that the shell's end is
// no checkpoint.
func (f *floor) shell() *side {
	const n = 50
	return &side{name: "C", per: n, cpu: testkit.ChildrenCPUTime, op: func() error {
		cmd := exec.Command("sqlite3", "-batch", "-bail", f.path)
		cmd.Stdin = strings.NewReader(f.script(n))
		out, err := cmd.CombinedOutput()
		if err == nil && bytes.Contains(out, []byte("rror")) {
			err = errors.New(string(out))
		}
		return err
	}}
}

const listed = 50

// BenchmarkList lists the newest 50 of many sessions: in process, by the handler of the API, and by a command from its
// start to its end. The baselines are the SELECT of the listed columns, `sessiond version` and the sqlite3 shell.
func BenchmarkList(b *testing.B) {
	ctx, n := b.Context(), sized(100_000)
	path := filepath.Join(b.TempDir(), "sessions.db")
	s := testkit.Must(store.Open(ctx, path, options()))(b)
	b.Cleanup(func() { testkit.Check(b, s.Close()) })
	begin := time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC)
	testkit.Check(b, atOnce(128, func(w int) error { // many share a commit
		write := newAuthor(uint64(w))
		for i := w; i < n; i += 128 {
			at := session.At(begin.Add(time.Duration(i) * 10 * time.Minute))
			m := write.message(0, 20)
			m.CreatedAt = at
			if _, err := s.Import(ctx, store.ImportBatch{
				Session: store.NewSession{
					Source: session.SourcePi, SourceID: fmt.Sprintf("session-%d", i), Title: write.sentence(5), Model: "gpt-4o",
					Directory: "/home/me/project", Project: "/home/me/project", CreatedAt: &at,
				},
				Messages: []store.ImportMessage{{Message: m}},
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	query := fmt.Sprintf(`SELECT id, day, title, title_source, kind, draft, settings, key, generation, source, source_id,
		owner, host, directory, project, foreign_from, said_count, git_branch, provider, model, window, parent_id, parent_kind, head_id, last_seq,
		compaction_id, epoch, revision, message_count, total_tokens, context_tokens, compaction_count,
		input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, cost_usd,
		unpriced_calls, turn_origin, created_at, updated_at, active_at, inbound_at, archived_at, starred_at, deleted_at,
		ended_at, end_reason, metadata FROM sessions
		WHERE draft = 0 AND deleted_at IS NULL AND archived_at IS NULL ORDER BY active_at DESC, id DESC LIMIT %d`, listed+1)

	b.Run("in process", func(b *testing.B) {
		bare := openBare(b, path, readerPragmas())
		compare(b, 20, &side{op: func() error {
			data, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: listed})
			if err == nil && len(data) != listed {
				err = fmt.Errorf("%d sessions, not %d", len(data), listed)
			}
			return err
		}}, &side{name: "bare", op: func() error { return bare.read(query) }})
	})
	b.Run("over HTTP", func(b *testing.B) { // the handler, without a socket
		bare := openBare(b, path, readerPragmas())
		handler := api.New(api.Deps{Store: s, Catalogue: testkit.Must(usage.Load(nil))(b)})
		compare(b, 20, &side{op: func() error {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet,
				fmt.Sprintf("http://localhost/v1/sessions?limit=%d", listed), nil)
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
				return fmt.Errorf("%d: %s", w.Code, w.Body)
			}
			return nil
		}}, &side{name: "bare", op: func() error { return bare.read(query) }})
	})
	b.Run("sessiond ls", func(b *testing.B) {
		program := binary(b)
		of := func(name string, cmd func() *exec.Cmd) *side {
			return &side{name: name, cpu: testkit.ChildrenCPUTime, op: func() error { return run(cmd()) }}
		}
		sides := []*side{
			of("", func() *exec.Cmd { return command(program, path, "ls", "--limit", fmt.Sprint(listed)) }),
			of("version", func() *exec.Cmd { return command(program, path, "version") }),
		}
		if _, err := exec.LookPath("sqlite3"); err == nil {
			sides = append(sides, of("C", func() *exec.Cmd { return exec.Command("sqlite3", "-readonly", "-box", path, query) }))
		}
		compare(b, 3, sides...)
	})
}

// BenchmarkSearch searches a large history. The baseline is the SELECT on the index straight on the driver.
func BenchmarkSearch(b *testing.B) {
	ctx := b.Context()
	h := openHistory(b, sized(*historySize))
	bare := openBare(b, filepath.Join(filepath.Dir(h.path), "search.db"), readerPragmas())
	for _, order := range []struct {
		name      string
		order     search.Order
		statement string
	}{
		{"newest", search.OrderNewest, `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words
			FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 24) w
			CROSS JOIN docs d ON d.docid = w.rowid`},
		{"ranked", search.OrderRank, `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, -w.score
			FROM (SELECT rowid, score FROM (SELECT rowid, bm25(words, 1.0, 0.6, 0.0) AS score
				FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 5000) ORDER BY score, rowid DESC LIMIT 24) w
			CROSS JOIN docs d ON d.docid = w.rowid`},
	} {
		for _, word := range []struct{ word, about string }{
			{rareWord, "a rare word"},
			{knownWord, "a word in 0.9 %"},
			{commonWord, "a word in 20 %"},
		} {
			b.Run(order.name+", "+word.about, func(b *testing.B) {
				compare(b, 5, &side{op: func() error {
					r, err := h.index.Search(ctx, search.Query{Text: word.word, Order: order.order, Limit: 20})
					if err == nil && (len(r.Hits) == 0 || r.Pending > 0) {
						err = fmt.Errorf("%d hits, %d messages not indexed", len(r.Hits), r.Pending)
					}
					return err
				}}, &side{name: "bare", op: func() error { return bare.read(order.statement, `"`+word.word+`"`) }})
			})
		}
	}
	for _, group := range []search.Group{search.GroupMessage, search.GroupSession} {
		b.Run("question, by "+string(group), func(b *testing.B) {
			asked := &side{op: func() error {
				r, err := h.index.Search(ctx, search.Query{Text: question, Group: group, Limit: 20})
				if err == nil && len(r.Hits)+len(r.Sessions) == 0 {
					err = errors.New("nothing was found")
				}
				return err
			}}
			compare(b, 5, asked, &side{name: "bare", op: func() error {
				return bare.read(`SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, -w.score
					FROM (SELECT rowid, bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY rank LIMIT 20) w
					CROSS JOIN docs d ON d.docid = w.rowid`, `"`+rareWord+`" OR "`+knownWord+`" OR "cost"`)
			}})
			reportP95(b, asked)
		})
	}
	b.Run("recall", func(b *testing.B) {
		compare(b, 5, &side{op: func() error {
			r, err := h.index.Recall(ctx, search.RecallQuery{
				Text: question, Within: []search.Span{{Session: h.long.ID, From: 1, Through: h.long.LastSeq - keptLong}},
			})
			if err == nil && len(r.Hits) == 0 {
				err = errors.New("nothing was recalled")
			}
			return err
		}})
	})
}
