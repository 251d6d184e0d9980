package answers_test

import (
	"context"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web/answers"
)

func TestAnswersWaitForRoomThenAreBusy(t *testing.T) {
	b := &answers.Budget{Size: 100, Patience: time.Millisecond}
	release := testkit.Must(b.Reserve(t.Context(), 60))(t)
	if _, err := b.Reserve(t.Context(), 60); session.CodeOf(err) != session.Busy {
		t.Errorf("a second answer beyond the budget: %v", err)
	}
	small := testkit.Must(b.Reserve(t.Context(), 40))(t)
	small()
	release()
	release() // counts once
	testkit.Must(b.Reserve(t.Context(), 1000))(t)()
	testkit.Must(b.Reserve(t.Context(), 100))(t)()
}

func TestWaitingAnswerGetsRoomThatIsReleased(t *testing.T) {
	b := &answers.Budget{Size: 100, Patience: time.Hour}
	release := testkit.Must(b.Reserve(t.Context(), 100))(t)
	got := make(chan error)
	for range 2 {
		go func() {
			done, err := b.Reserve(t.Context(), 50)
			if err == nil {
				defer done()
			}
			got <- err
		}()
	}
	release()
	for range 2 {
		testkit.Check(t, <-got)
	}
}

func TestClientThatLeavesWaitsNoLonger(t *testing.T) {
	b := &answers.Budget{Size: 100, Patience: time.Hour}
	release := testkit.Must(b.Reserve(t.Context(), 100))(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := b.Reserve(gone, 50); err == nil {
		t.Error("a client that left got room")
	}
	release()
	testkit.Must(b.Reserve(t.Context(), 100))(t)()
}

func TestNamedTokenGetsAtMostHalf(t *testing.T) {
	b := &answers.Budget{Size: 100, Patience: time.Millisecond}
	hers := session.WithScope(t.Context(), session.Scope{Owner: "her"})
	defer testkit.Must(b.Reserve(hers, 1000))(t)()
	if _, err := b.Reserve(hers, 1); session.CodeOf(err) != session.Busy {
		t.Errorf("more than half for one token: %v", err)
	}
	testkit.Must(b.Reserve(session.WithScope(t.Context(), session.Scope{Owner: "his"}), 50))(t)()
	testkit.Must(b.Reserve(t.Context(), 50))(t)()
}
