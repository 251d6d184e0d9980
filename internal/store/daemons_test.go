package store

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// openTwo opens one database twice, as two daemons do whose clocks differ: on PostgreSQL two hosts.
func openTwo(t *testing.T, ahead time.Duration) (a, b *Store) {
	t.Helper()
	start := time.Date(2026, 2, 11, 20, 0, 0, 0, time.UTC)
	a = openTest(t, func(o *Options) { o.Now = func() time.Time { return start } })
	opt := a.opt
	opt.Now = func() time.Time { return start.Add(ahead) }
	b = testkit.Must(Open(t.Context(), a.File(), opt))(t)
	t.Cleanup(func() { testkit.Check(t, b.Close()) })
	return a, b
}

// The clocks of two daemons differ by five hours, over midnight. Ids, messages, events and keys stay in order.
func TestDaemonsWhoseClocksDifferKeepTheOrder(t *testing.T) {
	ctx := t.Context()
	a, b := openTwo(t, 5*time.Hour)
	both := []*Store{a, b}
	var ids []session.ID
	for i := range 6 {
		ids = append(ids, mustCreate(t, both[i%2], NewSession{}).ID)
	}
	if want := []session.ID{
		"20260211_001", "20260212_001", "20260211_002", "20260212_002", "20260211_003",
		"20260212_003",
	}; !slices.Equal(ids, want) {
		t.Errorf("%v", ids)
	}
	id := ids[0]
	for i := range 10 {
		mustAppend(t, both[i%2], id, says(session.User, fmt.Sprint("message ", i)))
	}
	head := testkit.Must(a.Session(ctx, id))(t)
	n := 0
	testkit.Check(t, a.EachOnPath(ctx, *head.HeadID, func(m *session.Message) error {
		if want := fmt.Sprint("message ", n); m.Text() != want || m.Seq != int64(n+1) {
			t.Errorf("%s says %q, not %q", m.ID, m.Text(), want)
		}
		n++
		return nil
	}))
	if n != 10 {
		t.Errorf("%d messages", n)
	}
	events := testkit.Must(b.EventsAfter(ctx, 0, 100))(t)
	last := int64(0)
	for _, e := range events {
		if e.Type == EventMessagesAppended {
			if *e.Seq <= last {
				t.Errorf("the event of message %d comes after that of %d", *e.Seq, last)
			}
			last = *e.Seq
		}
	}
	if last != 10 {
		t.Errorf("the last event is of message %d", last)
	}

	key := &Idempotency{Route: "/v1/sessions/" + string(id) + "/messages", Key: "k", Body: []byte("b")}
	for _, s := range []*Store{b, a, b, a} {
		if err := s.write(ctx, func(t *tx) error { return t.housekeeping() }); err != nil { // as at each start
			t.Fatal(err)
		}
		out := testkit.Must(s.Append(ctx, Append{
			Session: id, Messages: []session.Message{says(session.User, "once")},
			Idem: key,
		}))(t)
		if out.Messages[0].Seq != 11 {
			t.Errorf("stored again as %d", out.Messages[0].Seq)
		}
	}
	removed := testkit.Must(b.RemoveEvents(ctx, b.opt.Now().Add(-time.Hour)))(t)
	if rest := testkit.Must(a.EventsAfter(ctx, 0, 100))(t); removed == 0 || len(rest) == 0 ||
		rest[len(rest)-1].Type != EventMessagesAppended {
		t.Errorf("%d events were removed, %d are left", removed, len(rest))
	}
	mustBeHealthy(t, a)
}

// Eight requests with one key arrive at two daemons at once, and both do the work of a start: one message is stored.
func TestDaemonsDoTheSameAtOnce(t *testing.T) {
	ctx := t.Context()
	a, b := openTwo(t, 0)
	both := []*Store{a, b}
	sess := mustCreate(t, a, NewSession{})
	key := &Idempotency{Route: "r", Key: "k", Body: []byte("b")}
	later := func() time.Time { return time.Date(2026, 2, 13, 0, 0, 0, 0, time.UTC) }
	mustAppend(t, a, sess.ID, says(session.User, "one"), says(session.Assistant, "two"), says(session.User, "three"))
	running := testkit.Must(a.AddCompaction(ctx, overlay(t, a, sess.ID, 1, session.StatusRunning, 2)))(t)
	for range 3 {
		mustCreate(t, b, NewSession{Draft: true})
	}
	var mu sync.Mutex
	var failed, drafts int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := both[i%2]
			out, err := s.Append(ctx, Append{
				Session: sess.ID, Messages: []session.Message{says(session.User, "once")},
				Idem: key,
			})
			if err != nil || out.Messages[0].Seq != 4 {
				t.Errorf("%+v %v", out.Messages, err)
			}
			n, err := s.ForgetDrafts(ctx, later())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			drafts += n
		})
	}
	wg.Wait()
	for _, s := range both {
		s.opt.Now = later // only a start asks this clock, and both are at their start
		wg.Go(func() {
			done, err := s.FailRunning(ctx, "broken off")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			failed += int64(len(done))
		})
	}
	wg.Wait()
	if got := testkit.Must(a.Compaction(ctx, sess.ID, running.RowID))(t); failed != 1 ||
		got.Status != session.StatusFailed {
		t.Errorf("%d compactions failed; %s", failed, got.Status)
	}
	if drafts != 3 {
		t.Errorf("%d drafts were removed", drafts)
	}
	// The daemon that made it learns that it is over.
	running.Status = session.StatusDone
	if _, err := a.FinishCompaction(ctx, running); session.CodeOf(err) != session.Conflict {
		t.Error(err)
	}
	mustBeHealthy(t, a)
}

// A stream that begins while a transaction is open gets its events, and the daemon notices it when it commits.
func TestTransactionThatCommitsLateIsNoticed(t *testing.T) {
	ctx := t.Context()
	a, b := openTwo(t, 0)
	sess := mustCreate(t, a, NewSession{})
	_, _, before, err := a.EventRange(ctx)
	testkit.Check(t, err)
	wrote, commit := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- b.write(ctx, func(t *tx) error {
			defer func() { close(wrote); <-commit }()
			return t.event(sess.ID, EventSessionChanged, 0, nil)
		})
	}()
	<-wrote
	version := int64(0)
	if a.IsPostgres() {
		version = testkit.Must(a.DataVersion(ctx))(t)
	}
	_, _, last, err := a.EventRange(ctx)
	testkit.Check(t, err)
	if last != before {
		t.Errorf("a stream would begin at %d, after an event that is not there yet; the last is %d", last, before)
	}
	close(commit)
	testkit.Check(t, <-done)
	if after := testkit.Must(a.DataVersion(ctx))(t); after == version {
		t.Error("the commit is not noticed")
	}
	if events := testkit.Must(a.EventsAfter(ctx, last, 10))(t); len(events) != 1 {
		t.Errorf("%d events", len(events))
	}
}
