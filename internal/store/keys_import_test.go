package store

import (
	"testing"

	"sessiond/internal/session"
)

// open tells which generations of a key are open.
func openGenerations(t *testing.T, s *Store, key string) (ids []session.ID) {
	t.Helper()
	if err := s.Reader().Select(&ids, `SELECT id FROM sessions WHERE key = ? AND ended_at IS NULL ORDER BY id`, key); err != nil {
		t.Fatal(err)
	}
	return ids
}

// An import into a key leaves it one open generation: that of a conversation that goes on here.
func TestAnImportLeavesAKeyOneOpenGeneration(t *testing.T) {
	const key = "agent:main:main"
	imported := func(s *Store, source session.Source, id string, generation int64) session.Session {
		t.Helper()
		b := ImportBatch{Session: NewSession{Source: source, SourceID: id, Key: key, Generation: generation}}
		b.Messages = []ImportMessage{record(id, "", session.User, "hello")}
		return must(s.Import(t.Context(), b))(t).Session
	}
	t.Run("that was begun here", func(t *testing.T) {
		s := openTest(t)
		live := mustCreate(t, s, NewSession{Key: key})
		old := imported(s, session.SourceOpenClaw, "a", 7)
		old = must(s.Session(t.Context(), old.ID))(t)
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != live.ID || old.EndReason != "rpc" || old.Generation != 7 {
			t.Errorf("open %v, imported %+v", open, old)
		}
		if again := imported(s, session.SourceOpenClaw, "a", 7); again.Revision != old.Revision {
			t.Errorf("the second import wrote: %+v", again)
		}
		goesOn := must(s.Route(t.Context(), Route{Key: key, Decide: func(g *Generation) (Turnover, error) { return Turnover{}, nil }}))(t)
		if goesOn.Session.ID != live.ID || goesOn.Session.Generation != 8 {
			t.Errorf("the key goes on in %s, generation %d", goesOn.Session.ID, goesOn.Session.Generation)
		}
	})
	t.Run("of one program, in any order", func(t *testing.T) {
		s := openTest(t)
		imported(s, session.SourceOpenClaw, "b", 2)
		imported(s, session.SourceOpenClaw, "a", 1)
		last := imported(s, session.SourceOpenClaw, "c", 3)
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != last.ID {
			t.Errorf("open %v", open)
		}
	})
	mustBeOne := func(s *Store, want session.ID) {
		t.Helper()
		if open := openGenerations(t, s, key); len(open) != 1 || open[0] != want {
			t.Errorf("open %v, not %s", open, want)
		}
	}
	t.Run("by an export", func(t *testing.T) {
		s := openTest(t)
		live := mustCreate(t, s, NewSession{Key: key})
		in := live
		in.ID, in.Generation, in.Revision = "20200101_001", 1, 3
		in.Day = "2020-01-01"
		b := RestoreBatch{Into: &Restoring{}, Session: SavedSession{Session: in}, Begin: true, End: true}
		came := must(s.Restore(t.Context(), b))(t).Session
		if came.Key != key || came.Generation != 1 || came.EndReason != "rpc" || came.Revision != 3 {
			t.Errorf("%+v", came)
		}
		mustBeOne(s, live.ID)
		b.Into = &Restoring{}
		if again := must(s.Restore(t.Context(), b))(t); again.Messages > 0 || again.Created {
			t.Errorf("again %+v", again)
		}
		mustBeOne(s, live.ID)
	})
}
