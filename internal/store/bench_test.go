package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"sessiond/internal/session"
)

const benchText = "a question of some forty characters, more"

// One append with everything it carries, beside the same message, part and session statements
// straight on the driver, in the same run.
func BenchmarkAppend(b *testing.B) {
	b.Run("bare", benchmarkBare)
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := openTest(b)
			ids := make([]session.ID, writers)
			for i := range ids {
				ids[i] = mustCreate(b, s, NewSession{Title: "t"}).ID
			}
			next := make(chan struct{}, b.N)
			for range b.N {
				next <- struct{}{}
			}
			close(next)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, id := range ids {
				wg.Go(func() {
					for range next {
						mustAppend(b, s, id, says(session.User, benchText))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

func benchmarkBare(b *testing.B) {
	s := openTest(b)
	id := mustCreate(b, s, NewSession{}).ID
	s.Close()
	db := must(sql.Open("sqlite", dsn(s.File(), "rw", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)", "secure_delete(1)", "wal_autocheckpoint(4000)", "cache_size(-32768)")))(b)
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	conn := must(db.Conn(ctx))(b)
	defer conn.Close()
	prepare := func(q string) *sql.Stmt { return must(conn.PrepareContext(ctx, q))(b) }
	begin, commit := prepare(`BEGIN IMMEDIATE`), prepare(`COMMIT`)
	message := prepare(`INSERT INTO messages (session_id, seq, depth, role, origin, tokens, path_tokens, day, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	part := prepare(`INSERT INTO parts (id, message_id, idx, kind, text, tokens) VALUES (?, ?, ?, ?, ?, ?)`)
	sess := prepare(`UPDATE sessions SET head_id = ?, last_seq = ?, message_count = message_count + 1, active_at = ?, updated_at = ? WHERE id = ?`)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		at := session.At(s.opt.Now()).SQL()
		must(begin.Exec())(b)
		row := must(must(message.Exec(string(id), i+1, i, "user", "person", 41, 41*i, at[:10], at))(b).LastInsertId())(b)
		must(part.Exec(row<<10, row, 0, "text", benchText, 41))(b)
		must(sess.Exec(row, i+1, at, at, string(id)))(b)
		must(commit.Exec())(b)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// What reading costs does not grow with the session.
func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1_000, 100_000} {
		s := openTest(b)
		id := mustCreate(b, s, NewSession{}).ID
		batch := make([]session.Message, 1000)
		for i := range batch {
			batch[i] = says(session.User, benchText)
		}
		for range n / len(batch) {
			mustAppend(b, s, id, batch...)
		}
		sess := must(s.Session(ctx, id))(b)
		for name, read := range map[string]func() error{
			"last50": func() error {
				_, _, err := s.Messages(ctx, id, MessagePage{Descending: true})
				return err
			},
			"walk50": func() error {
				left := 50
				return s.Walk(ctx, *sess.HeadID, func(session.Message) bool { left--; return left > 0 })
			},
			"spans":  func() error { _, err := s.Spans(ctx, *sess.HeadID); return err },
			"middle": func() error { _, _, err := s.Messages(ctx, id, MessagePage{After: int64(n / 2)}); return err },
		} {
			b.Run(fmt.Sprint(name, "/of=", n), func(b *testing.B) {
				for range b.N {
					if err := read(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		s.Close()
	}
}

func BenchmarkList(b *testing.B) {
	s := openTest(b)
	ctx := context.Background()
	for range 2000 {
		id := mustCreate(b, s, NewSession{Title: "t"}).ID
		mustAppend(b, s, id, says(session.User, "x"))
	}
	for b.Loop() {
		if data, _, err := s.Sessions(ctx, Filter{}, Page{}); err != nil || len(data) != 50 {
			b.Fatal(len(data), err)
		}
	}
}
