package store

import (
	"context"
	"sync"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// hides is what a session hides at its head.
func hides(t *testing.T, s *Store, id session.ID) Hidden {
	t.Helper()
	sess := testkit.Must(s.Session(context.Background(), id))(t)
	return testkit.Must(s.Hidden(context.Background(), sess.HeadID))(t)
}

func TestHiddenMessagesFollowThePath(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	id := sess.ID
	chance := says(session.User, "of this name by chance")
	chance.ExternalID = "hides nothing"
	parts := says(session.Assistant, "a")
	parts.Parts = append(parts.Parts, session.TextPart("b"), session.TextPart("c"))
	testkit.Must(s.Append(ctx, Append{Session: id, Messages: []session.Message{
		says(session.User, "1"), parts, chance, says(session.User, "4"),
	}}))(t)
	hide := func(seq int64, parts ...int) (session.Session, error) {
		return s.HideMessage(ctx, Hide{Session: id, Message: *ref(id, seq), Parts: parts})
	}
	after := testkit.Must(hide(4))(t) // the head
	testkit.Equal(t, *ref(id, 3), *after.Head)
	testkit.Equal(t, Hidden{}, hides(t, s, id))
	epoch := after.Epoch
	testkit.Must(hide(2, 1))(t)
	testkit.Must(hide(2, 2, 1))(t)
	after = testkit.Must(hide(1))(t)
	testkit.Equal(t, epoch+3, after.Epoch)
	testkit.Equal(t, Hidden{*ref(id, 1): nil, *ref(id, 2): {1, 2, 1}}, hides(t, s, id))
	for _, c := range []Hide{
		{Session: id, Message: *ref(id, 1)},
		{Session: id, Message: *ref(id, 2), Parts: []int{2}},
		{Session: id, Message: *ref(id, 4)},
		{Session: id, Message: *ref(id, 99)},
	} {
		if _, err := s.HideMessage(ctx, c); session.CodeOf(err) != session.NotFound {
			t.Errorf("%v: %v", c, err)
		}
	}
	testkit.Must(hide(2))(t) // the rest of it
	testkit.Equal(t, Hidden{*ref(id, 1): nil, *ref(id, 2): nil}, hides(t, s, id))

	// A fork inherits what was hidden where it leaves, another branch only what it holds.
	fork := testkit.Must(s.Fork(ctx, Fork{Session: id}))(t)
	early := testkit.Must(s.Fork(ctx, Fork{Session: id, At: ref(id, 6)}))(t) // after the second marker
	testkit.Must(s.MoveHead(ctx, HeadMove{Session: id, To: ref(id, 3)}))(t)
	testkit.Equal(t, Hidden{}, hides(t, s, id))
	testkit.Equal(t, Hidden{*ref(id, 1): nil, *ref(id, 2): nil}, hides(t, s, fork.ID))
	testkit.Equal(t, Hidden{*ref(id, 2): {1, 2, 1}}, hides(t, s, early.ID))
	testkit.Must(hide(1))(t)
	testkit.Equal(t, Hidden{*ref(id, 1): nil}, hides(t, s, id))
	testkit.Must(s.SetTrash(ctx, id, true, nil, nil))(t)
	if _, err := hide(2); session.CodeOf(err) != session.Conflict {
		t.Error(err)
	}
}

// Of those who hide one message at once, one does.
func TestMessageIsHiddenOnce(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	id := mustCreate(t, s, NewSession{}).ID
	testkit.Must(s.Append(ctx, Append{Session: id, Messages: []session.Message{
		says(session.User, "1"), says(session.User, "2"),
	}}))(t)
	for seq := int64(1); seq <= 2; seq++ {
		var wait sync.WaitGroup
		done := make([]error, 6)
		for i := range done {
			wait.Go(func() { _, done[i] = s.HideMessage(ctx, Hide{Session: id, Message: *ref(id, seq)}) })
		}
		wait.Wait()
		did := 0
		for _, err := range done {
			switch {
			case err == nil:
				did++
			case session.CodeOf(err) != session.NotFound:
				t.Error(err)
			}
		}
		testkit.Equal(t, 1, did)
	}
}
