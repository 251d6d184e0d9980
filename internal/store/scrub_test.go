package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sessiond/internal/session"
)

// locksOn counts the locks that this process has on a file.
func locksOn(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skip("no list of locks on this system:", err)
	}
	file := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	n := 0
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, file) && strings.Contains(line, fmt.Sprintf(" %d ", os.Getpid())) {
			n++
		}
	}
	return n
}

func TestLookingForCopiesGivesUpNoLock(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	index := s.path + "-shm"
	before := locksOn(t, index)
	if before == 0 {
		t.Skip("locks of this process are not listed here")
	}
	copied := filepath.Join(filepath.Dir(s.path), "copy.db")
	must(s.Backup(t.Context(), copied))(t)
	found := must(s.CopiesHolding(t.Context(), sess.ID, filepath.Dir(s.path)))(t)
	if len(found) != 1 || found[0] != copied {
		t.Errorf("copies: %v", found)
	}
	if after := locksOn(t, index); after != before {
		t.Errorf("%d locks on the index of the log, and %d before: another process may write at the same time", after, before)
	}
	if found := must(s.CopiesHolding(t.Context(), session.ID("20000101_001"), filepath.Dir(s.path)))(t); len(found) != 0 {
		t.Errorf("copies of a session that never was: %v", found)
	}
}
