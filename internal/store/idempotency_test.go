package store

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
)

func TestARetryAnswersTheSameAndWritesNothing(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	in := Append{Session: sess.ID, Messages: []session.Message{says(session.User, "a"), calls("x"), results("x")}, Idem: &Idempotency{Key: "k", Route: "POST /a", Body: []byte("1")}}
	first := must(s.Append(ctx, in))(t)
	mustAppend(t, s, sess.ID, says(session.User, "later"))
	rows := `SELECT (SELECT COUNT(*) FROM messages) * 10000 + (SELECT COUNT(*) FROM events) * 100 + (SELECT COUNT(*) FROM idempotency_keys)`
	before := count(t, s, rows)
	again := must(s.Append(ctx, in))(t)
	if !again.Replayed || count(t, s, rows) != before {
		t.Errorf("replayed %v, %d rows, not %d", again.Replayed, count(t, s, rows), before)
	}
	if diff := cmp.Diff(first.Messages, again.Messages); diff != "" {
		t.Error(diff)
	}
	if *first.Head != *again.Head || first.Revision != again.Revision || first.ContextTokens != again.ContextTokens {
		t.Errorf("%+v, not %+v", again, first)
	}
	in.Idem.Body = []byte("2")
	_, err := s.Append(ctx, in)
	wants(t, err, session.Invalid, "another body")
	in.Idem.Route = "POST /b"
	if out := must(s.Append(ctx, in))(t); out.Replayed {
		t.Error("another route is another request")
	}
	mustBeHealthy(t, s)
}

func TestARefusedRequestDoesNotUseItsKeyUp(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	in := Append{Session: sess.ID, Messages: []session.Message{says(session.User, "a")}, ExpectHead: &ExpectHead{Ref: ref(sess.ID, 9)}, Idem: &Idempotency{Key: "k"}}
	_, err := s.Append(ctx, in)
	wants(t, err, session.Conflict, "")
	in.ExpectHead = nil
	if out := must(s.Append(ctx, in))(t); out.Replayed {
		t.Error("replayed what was refused")
	}
}

func TestOfManyEqualRequestsAtOnceOneIsStored(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	other := must(Open(ctx, s.File(), s.opt))(t)
	defer other.Close()
	sess := mustCreate(t, s, NewSession{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored, heads := 0, map[session.MessageRef]bool{}
	for i := range 40 {
		wg.Go(func() {
			out, err := []*Store{s, other}[i%2].Append(ctx, Append{Session: sess.ID, Messages: []session.Message{says(session.User, "once")}, Idem: &Idempotency{Key: "k", Body: []byte("b")}})
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
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	title, stale := "two", int64(99)
	patch := SessionPatch{Title: &title, Idem: &Idempotency{Key: "p"}}
	first := must(s.PatchSession(ctx, a.ID, patch))(t)
	second := must(s.PatchSession(ctx, a.ID, patch))(t)
	if first.Revision != a.Revision+1 || second.Revision != first.Revision || second.Title != "two" {
		t.Errorf("revisions %d, %d, %d", a.Revision, first.Revision, second.Revision)
	}
	_, err := s.PatchSession(ctx, a.ID, SessionPatch{Title: &title, IfRevision: &stale})
	wants(t, err, session.PreconditionFailed, "at revision 2, not 99")
	_, err = s.SetTrash(ctx, a.ID, true, &stale, nil)
	wants(t, err, session.PreconditionFailed, "")
	if got := must(s.SetTrash(ctx, a.ID, true, &first.Revision, nil))(t); got.DeletedAt == nil {
		t.Error("not in the trash")
	}
	if got := must(s.SetTrash(ctx, a.ID, false, nil, nil))(t); got.DeletedAt != nil {
		t.Error("still in the trash")
	}
}
