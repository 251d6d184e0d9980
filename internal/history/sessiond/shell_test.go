package sessiond_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// purge deletes a session, and what was left of others only for it.
func purge(t failer, s *store.Store, id session.ID) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		testkit.Check(t, err)
	}
	run, _, err := s.BeginPurge(ctx, store.PurgeRequest{Session: id})
	must(err)
	for {
		for {
			rows, err := run.Doomed(ctx)
			must(err)
			if len(rows) == 0 {
				break
			}
			must(run.Delete(ctx, rows))
		}
		_, err := run.Finish(ctx)
		must(err)
		left, err := s.Purging(ctx)
		must(err)
		if len(left) == 0 {
			return
		}
		run, err = s.ResumePurge(ctx, left[0])
		must(err)
	}
}

// talk is what the path to a session's head says.
func talk(t *testing.T, s *store.Store, id session.ID) string {
	t.Helper()
	sess := testkit.Must(s.Session(t.Context(), id))(t)
	path := testkit.Must(s.Path(t.Context(), *sess.HeadID, 0))(t)
	var said []string
	for _, m := range path {
		said = append(said, m.Text())
	}
	return strings.Join(said, " ")
}

// A fork of a session that was purged takes what it shares with it along, as a session without a
// name; the purged session itself does not come back.
func TestForkOfAPurgedSessionComesBack(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	say := func(id session.ID, texts ...string) {
		t.Helper()
		for _, text := range texts {
			m := session.Message{
				Role: session.User, InContext: true, Display: true,
				Parts: []session.Part{session.TextPart(text)},
			}
			testkit.Must(s.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{m}}))(t)
		}
	}
	parent := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "secret title"}))(t)
	say(parent.ID, "one", "two", "secret")
	two := testkit.Must(s.Message(t.Context(), session.MessageRef{Session: parent.ID, Seq: 2}))(t)
	testkit.Must(s.AddCompaction(t.Context(), session.Compaction{
		SessionID: parent.ID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual, Status: session.StatusDone,
		ThroughID: &two.RowID, HiddenTokens: two.PathTokens, SummaryTokens: 1, Summary: "short",
	}))(t)
	fork := testkit.Must(s.Fork(t.Context(), store.Fork{Session: parent.ID, At: &two.ID}))(t)
	say(fork.ID, "three")
	whole := export(t, s, nil)
	purge(t, s, parent.ID)
	file := export(t, s, nil, fork.ID)
	if !bytes.Contains(file, []byte(`"purged_at"`)) || bytes.Contains(file, []byte("secret")) {
		t.Errorf("%s", file)
	}

	there := t.TempDir()
	other := openLater(t, there)
	defer other.Close()
	done := importFile(t, other, there, file, own.Source{})
	if done.Sessions.New != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	if again := export(t, other, nil); !bytes.Equal(again, file) {
		t.Errorf("differs in %s", firstDifference(file, again))
	}
	if got := talk(t, other, fork.ID); got != "one two three" {
		t.Errorf("%q", got)
	}
	if _, err := other.Session(t.Context(), parent.ID); session.CodeOf(err) != session.NotFound {
		t.Errorf("the purged session is there: %v", err)
	}
	if again := importFile(t, other, there, file, own.Source{}); again.Sessions.Unchanged != 1 ||
		again.Records.Imported > 0 || len(again.Errors) > 0 {
		t.Errorf("again: %+v", again)
	}
	sound(t, other)
	purge(t, other, fork.ID)
	if shells, err := other.Shells(t.Context()); err != nil || len(shells) != 0 {
		t.Errorf("left behind: %v %v", shells, err)
	}

	// Where the session is whole, it stays so, and the fork hangs on it.
	third := t.TempDir()
	last := openLater(t, third)
	defer last.Close()
	importFile(t, last, third, whole, own.Source{})
	before := export(t, last, nil)
	if done := importFile(t, last, third, file, own.Source{}); len(done.Errors) > 0 || done.Sessions.New != 0 {
		t.Errorf("%+v", done)
	}
	after := export(t, last, nil, parent.ID)
	if got := talk(t, last, parent.ID); got != "one two secret" ||
		!bytes.HasPrefix(before, after[:bytes.LastIndexByte(bytes.TrimSpace(after), '\n')]) {
		t.Errorf("%q", got)
	}
	if got := talk(t, last, fork.ID); got != "one two three" {
		t.Errorf("%q", got)
	}
	sound(t, last)
}
