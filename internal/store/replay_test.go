package store

import (
	"context"
	"testing"

	"sessiond/internal/session"
)

// A retried call or compaction answers with the first one's record and writes nothing.
func TestRepeatedCallsAndCompactionsAreOne(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	head := mustAppend(t, s, sess.ID, says(session.User, "hello"), says(session.Assistant, "hi")).Messages[1].RowID
	key := func(route string) *Idempotency { return &Idempotency{Key: "k", Route: route, Body: []byte("{}")} }

	call := session.Call{SessionID: sess.ID, Model: "m", InputTokens: 10, Idem: key("calls")}
	overlay := session.Compaction{
		SessionID: sess.ID, Strategy: session.StrategyTruncate, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: &head, HiddenTokens: 7, Idem: key("compactions"),
	}
	first, err := s.AddCall(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.AddCompaction(ctx, overlay)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Session(ctx, sess.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.AddCall(ctx, call); err != nil || again.RowID != first.RowID {
		t.Errorf("the repeated call is row %d, not %d; %v", again.RowID, first.RowID, err)
	}
	if again, err := s.AddCompaction(ctx, overlay); err != nil || again.ID != made.ID {
		t.Errorf("the repeated compaction is %s, not %s; %v", again.ID, made.ID, err)
	}
	if c, err := s.ReplayedCompaction(ctx, overlay.Idem); err != nil || c == nil || c.ID != made.ID {
		t.Errorf("replayed as %v, %v", c, err)
	}
	if c, err := s.ReplayedCompaction(ctx, key("another route")); err != nil || c != nil {
		t.Errorf("another route replays %v, %v", c, err)
	}
	call.Idem.Body = []byte(`{"other":1}`)
	if _, err := s.AddCall(ctx, call); session.CodeOf(err) != session.Invalid {
		t.Errorf("another body with the same key: %v", err)
	}
	after, err := s.Session(ctx, sess.ID)
	if err != nil || after.Revision != before.Revision || after.InputTokens != 10 || after.CompactionCount != 1 {
		t.Errorf("the repetitions wrote: %+v, %v", after, err)
	}
}
