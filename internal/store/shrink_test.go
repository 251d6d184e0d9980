package store

import (
	"runtime/debug"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit/effort"
)

// What connections keep of the database is given back, and they go on as before.
func TestShrinkGivesTheCachesBack(t *testing.T) {
	effort.OnlyLong(t, "it measures memory")
	if peakMemory() == 0 {
		t.Skip("no /proc to ask for what is in memory")
	}
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	for range 100 {
		if err := appendOne(s, sess.ID, says(session.User, strings.Repeat("words ", 10_000))); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Messages(t.Context(), sess.ID, MessagePage{Limit: 100}); err != nil {
		t.Fatal(err)
	}
	before := residentMemory()
	if err := s.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := residentMemory(); after > before-4<<20 {
		t.Errorf("%d KiB before, %d after", before>>10, after>>10)
	}
	if err := appendOne(s, sess.ID, says(session.User, "and then?")); err != nil {
		t.Error(err)
	}
}

// residentMemory is what this process has in memory when Go has given back what it can, in bytes.
func residentMemory() int64 {
	debug.FreeOSMemory()
	forgetPeak()
	return peakMemory()
}
