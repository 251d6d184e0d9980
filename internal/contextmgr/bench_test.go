package contextmgr_test

import (
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
)

// A context of 200 messages as turns make it: read, decided, recorded and encoded for the provider;
// beside it the store's reads alone.
func BenchmarkContextOf200Messages(b *testing.B) {
	d := newDesk(b)
	id := d.begin()
	for n := range 50 {
		d.follow(id, grow(n)...)
	}
	budget := contextmgr.Budget{Window: 200000}
	send := func(v contextmgr.View, err error) {
		if err == nil {
			_, err = dialect.Send(dialect.OpenAIChat, dialect.Request{System: v.System, Messages: v.Messages, Model: v.Model})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("turn and send", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send(d.mgr.Turn(b.Context(), id, contextmgr.TurnInput{Budget: budget}))
		}
	})
	b.Run("assemble and send", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send(d.mgr.Assemble(b.Context(), id, budget))
		}
	})
	b.Run("the path alone", func(b *testing.B) {
		b.ReportAllocs()
		sess, err := d.store.Session(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			n := 0
			if err := d.store.Walk(b.Context(), *sess.HeadID, func(session.Message) bool { n++; return true }); err != nil || n != 200 {
				b.Fatal(n, err)
			}
		}
	})
}
