package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
)

func TestIDsGoOnPast999ADay(t *testing.T) {
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	must(raw(t, s).Exec(`INSERT INTO session_days VALUES ('2026-02-11', 997)`))(t)
	for _, want := range []session.ID{"20260211_998", "20260211_999", "20260211_1000", "20260211_1001"} {
		sess := mustCreate(t, s, NewSession{})
		if sess.ID != want || sess.Day != "2026-02-11" {
			t.Errorf("%s of %s, not %s", sess.ID, sess.Day, want)
		}
		if _, err := session.ParseID(string(sess.ID)); err != nil {
			t.Error(err)
		}
	}
}

func TestIDsGoByTheLocalDay(t *testing.T) {
	zone := time.FixedZone("far east", 9*3600)
	now := time.Date(2026, 2, 11, 14, 59, 59, 999e6, time.UTC)
	s := openTest(t, func(o *Options) { o.Now, o.Zone = func() time.Time { return now }, zone })
	before := mustCreate(t, s, NewSession{})
	now = now.Add(time.Millisecond) // midnight there
	after := mustCreate(t, s, NewSession{})
	now = now.Add(-time.Millisecond) // and the clock is set back
	again := mustCreate(t, s, NewSession{})
	imported := session.At(time.Date(2024, 12, 31, 20, 0, 0, 0, time.UTC))
	old := mustCreate(t, s, NewSession{CreatedAt: &imported})
	got := fmt.Sprint(before.ID, after.ID, again.ID, old.ID)
	if want := fmt.Sprint("20260211_001", "20260212_001", "20260211_002", "20250101_001"); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestAnIDIsNeverUsedAgain(t *testing.T) {
	s := openTest(t)
	first := mustCreate(t, s, NewSession{})
	must(raw(t, s).Exec(`DELETE FROM sessions`))(t) // an empty session may go
	if second := mustCreate(t, s, NewSession{}); second.ID == first.ID {
		t.Errorf("%s was given again", second.ID)
	}
	// A refused one uses up no number, and gives none twice.
	mustCreate(t, s, NewSession{Source: session.SourcePi, SourceID: "x"})
	_, err := s.CreateSession(context.Background(), NewSession{Source: session.SourcePi, SourceID: "x"})
	wants(t, err, session.Conflict, "source_id \"x\"")
	mustCreate(t, s, NewSession{Source: session.SourceCodex, SourceID: "x"})
}

func TestTwoHundredSessionsAtOnceGetTwoHundredIDs(t *testing.T) {
	s := openTest(t)
	other := must(Open(context.Background(), s.File(), Options{Zone: time.UTC}))(t)
	defer other.Close()
	ids := make(chan session.ID, 200)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			sess, err := []*Store{s, other}[i%2].CreateSession(context.Background(), NewSession{})
			if err != nil {
				t.Error(err)
			}
			ids <- sess.ID
		})
	}
	wg.Wait()
	close(ids)
	seen := map[session.ID]bool{}
	for id := range ids {
		seen[id] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d different ids", len(seen))
	}
	mustBeHealthy(t, s)
}
