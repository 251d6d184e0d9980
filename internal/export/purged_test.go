package export_test

import (
	"io"
	"strings"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// purging purges a session when it is written to for the first time.
type purging struct {
	t  *testing.T
	s  *store.Store
	id session.ID
	n  int
}

func (p *purging) Write(b []byte) (int, error) {
	if p.n++; p.n > 1 {
		return len(b), nil
	}
	going, _, err := p.s.BeginPurge(p.t.Context(), store.PurgeRequest{Session: p.id})
	testkit.Check(p.t, err)
	for {
		rows, err := going.Doomed(p.t.Context())
		if err == nil && len(rows) > 0 {
			err = going.Delete(p.t.Context(), rows)
		}
		testkit.Check(p.t, err)
		if len(rows) == 0 {
			return len(b), nil
		}
	}
}

// What was written of a session that was purged meanwhile is not taken for all of it.
func TestAPurgeEndsAnExport(t *testing.T) {
	for _, format := range export.Names() {
		t.Run(format, func(t *testing.T) {
			s := open(t)
			made := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "gone soon"}))(t)
			var msgs []session.Message
			for range 1000 {
				msgs = append(msgs, session.Message{Role: session.User, Display: true, InContext: true, Parts: []session.Part{session.TextPart(strings.Repeat("word ", 200))}})
			}
			testkit.Must(s.Append(t.Context(), store.Append{Session: made.ID, Messages: msgs}))(t)
			if report, err := export.Write(t.Context(), io.Discard, s, export.Format(format), []session.ID{made.ID}, export.Options{}); err != nil || report.Messages != len(msgs) {
				t.Fatalf("before, %d messages, %v", report.Messages, err)
			}
			report, err := export.Write(t.Context(), &purging{t: t, s: s, id: made.ID}, s, export.Format(format), []session.ID{made.ID}, export.Options{})
			if session.CodeOf(err) != session.Busy {
				t.Errorf("%d messages are all of it, it says: %v", report.Messages, err)
			}
		})
	}
}
