package sessiond_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// BenchmarkExport writes a session of 100,000 messages as lines of JSON.
func BenchmarkExport(b *testing.B) {
	ctx := context.Background()
	s, err := store.Open(ctx, b.TempDir()+"/sessions.db", store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	sess, err := s.CreateSession(ctx, store.NewSession{Title: "long"})
	if err != nil {
		b.Fatal(err)
	}
	for range 100 {
		msgs := make([]session.Message, 1000)
		for i := range msgs {
			msgs[i] = session.Message{Role: session.User, InContext: true, Display: true, Parts: []session.Part{session.TextPart(fmt.Sprintf("step %d: which plants go into the bed, and how far apart do they stand?", i))}}
		}
		if _, err := s.Append(ctx, store.Append{Session: sess.ID, Messages: msgs}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w := own.NewWriter(io.Discard, s, nil)
		if err := w.Session(ctx, sess.ID); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
