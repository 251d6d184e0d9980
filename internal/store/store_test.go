package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/session"
)

// measure counts bytes: enough for tests of sums.
func measure(m *session.Message) {
	m.Tokens = 0
	for i := range m.Parts {
		m.Parts[i].Tokens = int64(len(m.Parts[i].Content()) + len(m.Parts[i].Arguments))
		m.Tokens += m.Parts[i].Tokens
	}
}

func openTest(t testing.TB, opts ...func(*Options)) *Store {
	t.Helper()
	opt := Options{Measure: measure, Zone: time.UTC}
	for _, o := range opts {
		o(&opt)
	}
	s, err := Open(context.Background(), filepath.Join(t.TempDir(), "sessions.db"), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func says(role session.Role, text string) session.Message {
	return session.Message{Role: role, InContext: true, Display: true, Parts: []session.Part{session.TextPart(text)}}
}

func mustCreate(t testing.TB, s *Store, in NewSession) session.Session {
	t.Helper()
	sess, err := s.CreateSession(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

func mustAppend(t testing.TB, s *Store, id session.ID, msgs ...session.Message) Appended {
	t.Helper()
	out, err := s.Append(context.Background(), Append{Session: id, Messages: msgs})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAppendIsReadBackInOrder(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for i := range 130 {
		mustAppend(t, s, sess.ID, says(session.User, fmt.Sprint("question ", i)), says(session.Assistant, fmt.Sprint("answer ", i)))
	}
	msgs, more, err := s.Messages(ctx, sess.ID, MessagePage{Limit: 1000})
	if err != nil || more || len(msgs) != 260 {
		t.Fatalf("%d messages, more %v, %v", len(msgs), more, err)
	}
	for i, m := range msgs {
		if m.Seq != int64(i+1) || m.Text() != fmt.Sprint([]string{"question ", "answer "}[i%2], i/2) {
			t.Fatalf("message %d is %d %q", i, m.Seq, m.Text())
		}
	}
	got, err := s.Session(ctx, sess.ID)
	if err != nil || got.MessageCount != 260 || got.Title != "question 0" {
		t.Fatalf("%+v %v", got, err)
	}
	path, err := s.Path(ctx, *got.HeadID, 0)
	if err != nil || len(path) != 260 || path[0].Seq != 1 || path[259].Seq != 260 {
		t.Fatalf("path of %d, %v", len(path), err)
	}
	checks, err := s.Doctor(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := openTest(b)
			ids := make(chan session.ID, writers)
			for range writers {
				ids <- mustCreate(b, s, NewSession{}).ID
			}
			b.SetParallelism((writers + 1) / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				id := <-ids
				for pb.Next() {
					mustAppend(b, s, id, says(session.User, "a question of some forty characters, more"))
				}
				ids <- id
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}
