package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit/storetest"
)

// A purge that was killed is finished by the next one, which may name the same session.
func TestPurgeFinishesWhatWasBrokenOff(t *testing.T) {
	path := storetest.New(t, filepath.Join(t.TempDir(), "sessions.db"))
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sess, err := s.CreateSession(t.Context(), store.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	said := session.Message{Role: session.User, Parts: []session.Part{session.TextPart("the wombatword")}}
	if _, err := s.Append(t.Context(), store.Append{Session: sess.ID, Messages: []session.Message{said}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.BeginPurge(t.Context(), store.PurgeRequest{Session: sess.ID}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &complaints, environ: []string{"HOME=" + t.TempDir()}, now: time.Now}
	if code := run(t.Context(), []string{"purge", string(sess.ID), "--yes", "--db", path}, e); code != exitDone {
		t.Errorf("exit %d: %s", code, complaints.String())
	}
	if want := string(sess.ID) + " is purged: an interrupted purge was finished."; !strings.Contains(complaints.String(), want) {
		t.Errorf("said %q and %q", out.String(), complaints.String())
	}
	if s, err = store.Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if left, err := s.Purging(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if last, err := s.MessagesAfter(t.Context(), 0, 10); err != nil || len(last) > 0 {
		t.Errorf("messages are left: %v, %v", last, err)
	}
}
