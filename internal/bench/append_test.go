package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

const writers = 16

// options are those of a store in production.
func options() store.Options {
	return store.Options{Measure: tokens.Reference().Measure, Touched: touched.Files, Zone: time.UTC}
}

// BenchmarkAppend appends in process. The baseline is the INSERT of message and part and the UPDATE
// of the session straight on the driver.
func BenchmarkAppend(b *testing.B) {
	ctx := b.Context()
	s := testkit.Must(store.Open(ctx, filepath.Join(b.TempDir(), "sessions.db"), options()))(b)
	b.Cleanup(func() { testkit.Check(b, s.Close()) })
	ids := make([]session.ID, writers)
	for i := range ids {
		ids[i] = testkit.Must(s.CreateSession(ctx, store.NewSession{Title: "A title"}))(b).ID
	}
	write := newAuthor(3)
	text := write.sentence(60)
	message := []session.Message{textMessage(session.User, session.Person, text)}
	appendTo := func(id session.ID, a store.Append) error {
		a.Session = id
		_, err := s.Append(ctx, a)
		return err
	}
	bare := openFloor(b, text)
	one := &side{name: "bare", op: bare.transaction(1)}

	b.Run("one", func(b *testing.B) {
		compare(b, 20, &side{op: func() error { return appendTo(ids[0], store.Append{Messages: message}) }}, one)
	})
	b.Run("with an idempotency key", func(b *testing.B) {
		keys := 0
		compare(b, 20, &side{op: func() error {
			keys++
			return appendTo(ids[0], store.Append{
				Messages: message,
				Idem:     &store.Idempotency{Key: fmt.Sprint(keys), Route: "POST /v1/sessions/x/messages", Body: []byte(text)},
			})
		}}, one)
	})
	b.Run("16 writers", func(b *testing.B) {
		const each = 25
		many := func() error {
			return atOnce(writers, func(i int) error {
				return repeat(each, func() error { return appendTo(ids[i], store.Append{Messages: message}) })()
			})
		}
		wall, _ := compare(b, 1, &side{op: many, per: writers * each},
			&side{name: "bare", op: repeat(each, bare.transaction(writers)), per: writers * each})
		b.ReportMetric(1/wall, "messages/s")
	})
	b.Run("a turn of 4 messages with its model call", func(b *testing.B) {
		turn := func() error {
			return appendTo(ids[1], store.Append{
				Messages: write.messages(4, 60),
				Call:     &session.Call{Provider: "openai", Model: "gpt-4o", InputTokens: 12_000, OutputTokens: 300},
			})
		}
		compare(b, 20, &side{op: turn}, &side{name: "bare", op: bare.transaction(4)})
	})
}

// BenchmarkBackup appends while a backup runs, and reports the longest append. The baseline is a bare VACUUM INTO of
// the same database, which leaves it to the kernel when the copy's pages go to disk. -large sets the size in MB.
func BenchmarkBackup(b *testing.B) {
	ctx, dir := b.Context(), b.TempDir()
	path := filepath.Join(dir, "sessions.db")
	s := testkit.Must(store.Open(ctx, path, options()))(b)
	b.Cleanup(func() { testkit.Check(b, s.Close()) })
	id := testkit.Must(s.CreateSession(ctx, store.NewSession{Title: "A title"}))(b).ID
	write := newAuthor(5)
	text := write.sentence(10_000)
	mb := *transcriptSize
	if testing.Short() {
		mb = 5
	}
	for written := 0; written < mb<<20; written += 50 * len(text) {
		msgs := make([]session.Message, 50)
		for i := range msgs {
			msgs[i] = textMessage(session.User, session.Person, text)
		}
		testkit.Must(s.Append(ctx, store.Append{Session: id, Messages: msgs}))(b)
	}
	small := []session.Message{textMessage(session.User, session.Person, write.sentence(60))}
	longestBeside := func(backup func(out string) error) time.Duration {
		out, ended := filepath.Join(b.TempDir(), "copy.db"), make(chan error, 1)
		go func() { ended <- backup(out) }()
		var longest time.Duration
		for {
			select {
			case err := <-ended:
				testkit.Check(b, err)
				testkit.Check(b, os.Remove(out))
				return longest
			default:
			}
			began := time.Now()
			testkit.Must(s.Append(ctx, store.Append{Session: id, Messages: small}))(b)
			longest = max(longest, time.Since(began))
			time.Sleep(5 * time.Millisecond)
		}
	}
	bare := openBare(b, path, nil)
	for b.Loop() {
		theirs := longestBeside(func(out string) error { return bare.exec(`VACUUM INTO ?`, out) })
		ours := longestBeside(func(out string) error { _, err := s.Backup(ctx, out); return err })
		b.ReportMetric(float64(ours.Milliseconds()), "ms-longest")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "×bare")
	}
}
