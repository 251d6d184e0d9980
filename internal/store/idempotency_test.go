package store

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestARetryAnswersTheSameAndWritesNothing(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	in := Append{
		Session: sess.ID, Messages: []session.Message{says(session.User, "a"), calls("x"), results("x")},
		Idem: &Idempotency{Key: "k", Route: "POST /a", Body: []byte("1")},
	}
	first := testkit.Must(s.Append(ctx, in))(t)
	mustAppend(t, s, sess.ID, says(session.User, "later"))
	rows := `SELECT (SELECT COUNT(*) FROM messages) * 10000 + (SELECT COUNT(*) FROM events) * 100 + (SELECT COUNT(*) FROM idempotency_keys)`
	before := count(t, s, rows)
	again := testkit.Must(s.Append(ctx, in))(t)
	if !again.Replayed || count(t, s, rows) != before {
		t.Errorf("replayed %v, %d rows, not %d", again.Replayed, count(t, s, rows), before)
	}
	testkit.Equal(t, first.Messages, again.Messages)
	if *first.Head != *again.Head || first.Revision != again.Revision || first.ContextTokens != again.ContextTokens {
		t.Errorf("%+v, not %+v", again, first)
	}
	in.Idem.Body = []byte("2")
	_, err := s.Append(ctx, in)
	wants(t, err, session.Invalid, "another body")
	in.Idem.Route = "POST /b"
	if out := testkit.Must(s.Append(ctx, in))(t); out.Replayed {
		t.Error("another route is another request")
	}
	mustBeHealthy(t, s)
}

func TestARefusedRequestDoesNotUseItsKeyUp(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	in := Append{
		Session: sess.ID, Messages: []session.Message{says(session.User, "a")},
		ExpectHead: &ExpectHead{Ref: ref(sess.ID, 9)}, Idem: &Idempotency{Key: "k"},
	}
	_, err := s.Append(ctx, in)
	wants(t, err, session.Conflict, "")
	in.ExpectHead = nil
	if out := testkit.Must(s.Append(ctx, in))(t); out.Replayed {
		t.Error("replayed what was refused")
	}
}

func TestOfManyEqualRequestsAtOnceOneIsStored(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	other := testkit.Must(Open(ctx, s.File(), s.opt))(t)
	defer other.Close()
	sess := mustCreate(t, s, NewSession{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored, heads := 0, map[session.MessageRef]bool{}
	for i := range 40 {
		wg.Go(func() {
			out, err := []*Store{s, other}[i%2].Append(ctx, Append{
				Session:  sess.ID,
				Messages: []session.Message{says(session.User, "once")}, Idem: &Idempotency{Key: "k", Body: []byte("b")},
			})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			heads[*out.Head] = true
			if !out.Replayed {
				stored++
			}
		})
	}
	wg.Wait()
	if n := count(t, s, `SELECT COUNT(*) FROM messages`); stored != 1 || n != 1 || len(heads) != 1 {
		t.Errorf("stored %d times, %d messages, heads %v", stored, n, heads)
	}
}

func TestSessionsAreMadeAndChangedOncePerKey(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	in := NewSession{Title: "one", Idem: &Idempotency{Key: "k", Body: []byte("b")}}
	a, b := mustCreate(t, s, in), mustCreate(t, s, in)
	testkit.Equal(t, a, b)
	title, stale := "two", int64(99)
	patch := SessionPatch{Title: &title, Idem: &Idempotency{Key: "p"}}
	first := testkit.Must(s.PatchSession(ctx, a.ID, patch))(t)
	second := testkit.Must(s.PatchSession(ctx, a.ID, patch))(t)
	if first.Revision != a.Revision+1 || second.Revision != first.Revision || second.Title != "two" {
		t.Errorf("revisions %d, %d, %d", a.Revision, first.Revision, second.Revision)
	}
	_, err := s.PatchSession(ctx, a.ID, SessionPatch{Title: &title, IfRevision: &stale})
	wants(t, err, session.PreconditionFailed, "at revision 2, not 99")
	_, err = s.SetTrash(ctx, a.ID, true, &stale, nil)
	wants(t, err, session.PreconditionFailed, "")
	if got := testkit.Must(s.SetTrash(ctx, a.ID, true, &first.Revision, nil))(t); got.DeletedAt == nil {
		t.Error("not in the trash")
	}
	if got := testkit.Must(s.SetTrash(ctx, a.ID, false, nil, nil))(t); got.DeletedAt != nil {
		t.Error("still in the trash")
	}
}

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
	first := testkit.Must(s.AddCall(ctx, call))(t)
	made := testkit.Must(s.AddCompaction(ctx, overlay))(t)
	before := testkit.Must(s.Session(ctx, sess.ID))(t)
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

func TestOnlyTheKeysOfAWeekAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	now := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	opt := Options{Now: func() time.Time { return now }, Zone: time.UTC}
	s := testkit.Must(Open(t.Context(), path, opt))(t)
	id := mustCreate(t, s, NewSession{}).ID
	for _, key := range []string{"b", "c", "a"} {
		testkit.Must(s.Append(t.Context(), Append{
			Session: id, Messages: []session.Message{says(session.User, key)},
			Idem: &Idempotency{Key: key, Route: "r"},
		}))(t)
		now = now.Add(24 * time.Hour)
	}
	now = now.Add(5*24*time.Hour - time.Minute) // b is older than a week, c a minute younger
	defer s.Close()
	testkit.Check(t, s.ForgetKeys(t.Context(), now))
	if n := count(t, s, `SELECT COUNT(*) FROM idempotency_keys`); n != 2 {
		t.Errorf("%d keys are there, not 2", n)
	}
	if out := testkit.Must(s.Append(t.Context(), Append{
		Session: id, Messages: []session.Message{says(session.User, "c")},
		Idem: &Idempotency{Key: "c", Route: "r"},
	}))(t); !out.Replayed {
		t.Error("a key that is younger than a week was forgotten")
	}
}

// A clock that leapt ahead for a while stamped a key with a year to come: the keys behind it are
// forgotten when they are old, it with them, and none before its time.
func TestAKeyFromTheFutureHoldsBackNobody(t *testing.T) {
	start := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	day := func(n float64) time.Time { return start.Add(time.Duration(n * float64(24*time.Hour))) }
	const leap = 400
	for _, c := range []struct {
		name  string
		asked []float64 // days on which keys came
		now   float64
		left  int64
	}{
		{"the last is of this week", []float64{0, leap, 1, 9}, 10, 1},
		{"it came between this week's", []float64{0, 8, leap, 9}, 10, 3},
		{"all others are old", []float64{0, leap, 1}, 10, 0},
		{"it came last, perhaps an hour ago", []float64{0, 1, leap}, 10, 1},
		{"there is no other", []float64{leap}, 10, 1},
		{"its day has come and gone", []float64{0, leap}, leap + 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			now := start
			opt := Options{Now: func() time.Time { return now }, Zone: time.UTC}
			s := testkit.Must(Open(t.Context(), path, opt))(t)
			id := mustCreate(t, s, NewSession{}).ID
			for i, at := range c.asked {
				now = day(at)
				testkit.Must(s.Append(t.Context(), Append{
					Session: id, Messages: []session.Message{says(session.User, "x")},
					Idem: &Idempotency{Key: strconv.Itoa(i), Route: "r"},
				}))(t)
			}
			defer s.Close()
			testkit.Check(t, s.ForgetKeys(t.Context(), day(c.now)))
			if n := count(t, s, `SELECT COUNT(*) FROM idempotency_keys`); n != c.left {
				t.Errorf("%d keys are left, not %d", n, c.left)
			}
		})
	}
}

func TestOnlyOldEmptyDraftsAndOldKeysAreForgotten(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "sessions.db")
	now := time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
	opt := Options{Now: func() time.Time { return now }, Zone: time.UTC, Measure: measure}
	s := testkit.Must(Open(ctx, path, opt))(t)
	empty := mustCreate(t, s, NewSession{Draft: true})
	begun := mustCreate(t, s, NewSession{Draft: true})
	mustAppend(t, s, begun.ID, says(session.User, "hello"))
	parent := mustCreate(t, s, NewSession{Draft: true})
	mustCreate(t, s, NewSession{ParentID: parent.ID})
	paid := mustCreate(t, s, NewSession{Draft: true})
	testkit.Must(s.AddCall(ctx, session.Call{SessionID: paid.ID}))(t)
	testkit.Must(s.Append(ctx, Append{
		Session: begun.ID, Messages: []session.Message{says(session.User, "x")},
		Idem: &Idempotency{Key: "k", Route: "r"},
	}))(t)
	now = now.Add(23 * time.Hour)
	fresh := mustCreate(t, s, NewSession{Draft: true})
	s.Close()
	for _, later := range []struct {
		wait       time.Duration
		gone, keys int64
	}{{0, 0, 1}, {2 * time.Hour, 1, 1}, {7 * 24 * time.Hour, 2, 0}} {
		now = now.Add(later.wait)
		s = testkit.Must(Open(ctx, path, opt))(t)
		if n := count(t, s, `SELECT 6 - COUNT(*) FROM sessions`); later.gone == 0 && n != 0 {
			t.Error("the start forgot a session by the clock alone")
		}
		testkit.Must(s.ForgetDrafts(ctx, now.Add(-24*time.Hour)))(t)
		testkit.Check(t, s.ForgetKeys(ctx, now))
		if n := count(t, s, `SELECT 6 - COUNT(*) FROM sessions`); n != later.gone {
			t.Errorf("after %v %d sessions are gone, not %d", later.wait, n, later.gone)
		}
		if n := count(t, s, `SELECT COUNT(*) FROM idempotency_keys`); n != later.keys {
			t.Errorf("after %v %d keys are there, not %d", later.wait, n, later.keys)
		}
		mustBeHealthy(t, s)
		s.Close()
	}
	s = testkit.Must(Open(ctx, path, opt))(t)
	defer s.Close()
	for _, gone := range []session.ID{empty.ID, fresh.ID} {
		_, err := s.Session(ctx, gone)
		wants(t, err, session.NotFound, "no session")
	}
}
