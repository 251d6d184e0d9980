package pi_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/session"
)

// A fork that came first is linked when its origin comes, though its file does not change.
func TestPiForkIsLinkedWhenItsOriginComes(t *testing.T) {
	h := newHouse(t)
	lines := []string{user("1", "", "one"), user("2", "1", "two")}
	dir := t.TempDir()
	origin, fork := filepath.Join(dir, "2026_origin.jsonl"), filepath.Join(dir, "2027_fork.jsonl")
	h.Rewrite(fork, append([]string{head("fork", origin)}, lines...)...)
	h.Import(fork)
	h.unchanged(fork) // it waits, and costs a look-up
	h.Rewrite(origin, append([]string{head("origin", "")}, lines...)...)
	h.Import(origin)
	if done := h.Import(fork); done.Records.Imported != 0 || len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	f := h.Session("fork")
	if f.ParentID != h.Session("origin").ID || f.ParentKind != session.ParentFork || f.MessageCount != 2 {
		t.Errorf("%+v", f)
	}
	h.unchanged(fork)
}
