package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// A purge that was killed is finished by the next one, which may name the same session.
func TestPurgeFinishesWhatWasBrokenOff(t *testing.T) {
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s := testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	sess, err := s.CreateSession(t.Context(), store.NewSession{})
	testkit.Check(t, err)
	said := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("the wombatword")}}
	testkit.Must(s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{said}}))(t)
	if _, _, err := s.BeginPurge(t.Context(), store.PurgeRequest{Session: sess.ID}); err != nil {
		t.Fatal(err)
	}
	testkit.Check(t, s.Close())
	var out, complaints bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &complaints, environ: []string{"HOME=" + t.TempDir()}, now: time.Now}
	if code := run(t.Context(), []string{"purge", string(sess.ID), "--yes", "--db", path}, e); code != exitDone {
		t.Errorf("exit %d: %s", code, complaints.String())
	}
	if want := string(sess.ID) + " is purged: an interrupted purge was finished."; !strings.Contains(complaints.String(), want) {
		t.Errorf("said %q and %q", out.String(), complaints.String())
	}
	s = testkit.Must(store.Open(t.Context(), path, store.Options{}))(t)
	defer s.Close()
	if left, err := s.Purging(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if last, err := s.MessagesAfter(t.Context(), 0, 10); err != nil || len(last) > 0 {
		t.Errorf("messages are left: %v, %v", last, err)
	}
}
