package store

import (
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// A database of an earlier version has a tombstone of the source's id alone. It holds for exports, too.
func TestATombstoneOfASourceKeepsItsExportAway(t *testing.T) {
	s := openTest(t)
	old := PurgedSource{Source: session.SourceCodex, IDHash: hash([]byte("thread")), PurgedAt: session.At(time.Now())}
	if named := testkit.Must(s.AddTombstones(t.Context(), []PurgedSource{old}))(t); len(named) != 0 {
		t.Error(named)
	}
	file := session.Session{
		ID: "20200101_001", Day: "2020-01-01", Source: session.SourceCodex, SourceID: "thread", Revision: 3,
		CreatedAt: session.At(time.Date(2020, 1, 1, 9, 0, 0, 0, time.UTC)),
	}
	restore := func(in Restoring, change func(*session.Session)) ImportResult {
		t.Helper()
		one := file
		change(&one)
		in.now = restoringSession{}
		return testkit.Must(s.Restore(t.Context(),
			RestoreBatch{Into: &in, Begin: true, End: true, Session: SavedSession{Session: one}}))(t)
	}
	same := func(*session.Session) {}
	for _, in := range []Restoring{{}, {Copy: true}} {
		if res := restore(in, same); !res.Purged || res.Created {
			t.Errorf("it came in: %+v", res)
		}
	}
	if res := restore(Restoring{}, func(one *session.Session) {
		one.ID, one.SourceID = "20200101_002", "other"
	}); res.Purged || !res.Created {
		t.Errorf("another one stayed away: %+v", res)
	}
	if res := restore(Restoring{Purged: true}, same); res.Purged || !res.Created {
		t.Errorf("it stayed away: %+v", res)
	}
	if left := testkit.Must(s.Tombstones(t.Context()))(t); len(left) != 0 {
		t.Error("the tombstone of a session that is back stays")
	}
	healthy(t, s)
}

// A sub-agent of a session that stays away comes in as one that nothing started, as after a purge.
func TestASubAgentOfAPurgedSessionComesInAlone(t *testing.T) {
	s := openTest(t)
	parent := mustCreate(t, s, NewSession{})
	purge(t, s, parent.ID)
	into := &Restoring{}
	at := session.At(time.Date(2020, 1, 1, 9, 0, 0, 0, time.UTC))
	child := session.Session{
		ID: "20200101_001", Day: "2020-01-01", Source: session.SourceSessiond, Revision: 3,
		CreatedAt: at, ParentID: parent.ID, ParentKind: session.ParentChild,
	}
	if res := testkit.Must(s.Restore(t.Context(), RestoreBatch{
		Into: into, Begin: true, End: true,
		Session: SavedSession{Session: parent},
	}))(t); !res.Purged {
		t.Error("the parent came in")
	}
	testkit.Must(s.Restore(t.Context(), RestoreBatch{
		Into: into, Begin: true, End: true,
		Session: SavedSession{Session: child},
	}))(t)
	if got := testkit.Must(s.Session(t.Context(), child.ID))(t); got.ParentID != "" || got.ParentKind != "" {
		t.Errorf("its parent is %q", got.ParentID)
	}
	fork := child
	fork.ID, fork.ParentKind = "20200101_002", session.ParentFork
	_, err := s.Restore(t.Context(), RestoreBatch{
		Into: into, Begin: true, End: true,
		Session: SavedSession{Session: fork},
	})
	wants(t, err, session.Conflict, "from which it was forked, was purged here; --purged brings both back")
	healthy(t, s)
}
