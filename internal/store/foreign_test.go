package store

import (
	"context"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// importOf imports a session of one message from a file, as an older version did: nobody decided whose it is.
func importOf(t *testing.T, s *Store, id, path string) session.ID {
	t.Helper()
	m := ImportMessage{Message: says(session.User, id)}
	m.ExternalID = "1"
	at := s.opt.Now()
	done := testkit.Must(s.Import(t.Context(), ImportBatch{
		Session:  NewSession{Source: session.SourcePi, SourceID: id, CreatedAt: new(session.At(at))},
		Messages: []ImportMessage{m},
		Cursor:   &ImportCursor{Source: session.SourcePi, Path: path},
	}))(t)
	return done.Session.ID
}

func foreignFrom(t *testing.T, s *Store, id session.ID) string {
	t.Helper()
	return testkit.Must(s.Session(t.Context(), id))(t).ForeignFrom
}

// Sessions of a database from before are marked by where their files lie, once; those in a program's places are not.
func TestOlderImportsOutsideOfPlacesAreMarked(t *testing.T) {
	s := openTest(t)
	own, given := importOf(t, s, "own", "/home/ana/.pi/own.jsonl"), importOf(t, s, "given", "/tmp/given.jsonl")
	inDatabase := importOf(t, s, "in database", "/tmp/x.db#1")
	decide := func(ctx context.Context) {
		if undecided := testkit.Must(s.UndecidedSources(ctx))(t); len(undecided) > 0 {
			testkit.Check(t, s.DecideImports(ctx, session.SourcePi, func(path string) bool {
				return strings.HasPrefix(path, "/home/ana/.pi/")
			}))
		}
	}
	decide(t.Context())
	for id, want := range map[session.ID]string{own: "", given: "/tmp/given.jsonl", inDatabase: "/tmp/x.db"} {
		if got := foreignFrom(t, s, id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	testkit.Check(t, s.SetMine(t.Context(), session.SourcePi, "/tmp", true))
	decide(t.Context())
	if got := foreignFrom(t, s, given) + foreignFrom(t, s, inDatabase); got != "" {
		t.Errorf("the user's word does not last: %q", got)
	}
	mine, decided, err := s.ImportIsMine(t.Context(), session.SourcePi, "/tmp/given.jsonl")
	if err != nil || !mine || !decided {
		t.Errorf("%t %t %v", mine, decided, err)
	}
}

// A session of the user's own that gets messages from a foreign file speaks with another's words: it is marked. A file
// of the user's own takes the mark.
func TestForeignMessagesMarkTheSession(t *testing.T) {
	s := openTest(t)
	id := importOf(t, s, "one", "/home/ana/.pi/one.jsonl")
	add := func(key, foreign string) {
		m := ImportMessage{Message: says(session.User, key), ParentKey: "1"}
		m.ExternalID = key
		testkit.Must(s.Import(t.Context(), ImportBatch{
			ID: id, Messages: []ImportMessage{m}, Foreign: foreign, Cursor: &ImportCursor{Source: session.SourcePi, Path: "/x"},
		}))(t)
	}
	add("1", "/tmp/given.jsonl") // nothing is new
	if got := foreignFrom(t, s, id); got != "" {
		t.Errorf("a file that says nothing new: %q", got)
	}
	add("2", "/tmp/given.jsonl")
	if got := foreignFrom(t, s, id); got != "/tmp/given.jsonl" {
		t.Errorf("%q", got)
	}
	fork := testkit.Must(s.Fork(t.Context(), Fork{Session: id}))(t)
	if got := foreignFrom(t, s, fork.ID); got != "/tmp/given.jsonl" {
		t.Errorf("its fork: %q", got)
	}
	add("3", "")
	if got := foreignFrom(t, s, id); got != "" {
		t.Errorf("%q", got)
	}
}
