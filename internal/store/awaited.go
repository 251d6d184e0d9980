package store

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Who waits for the write lock while another process has it says so by a shared lock on the
// write-ahead log, so that a long import learns of it between two transactions and need not
// stop every few milliseconds for somebody who is not there. It is a sign and no more: without
// it the waiting only takes longer. The log is there as long as anybody writes, SQLite itself
// locks nothing in it, and whoever starts, which takes a lock on the folder, waits for no sign:
// where several write all the time one of them always gives it.

// asksFor is how long a waiting writer gives the sign at most: longer than any import's
// transaction.
const asksFor = 200 * time.Millisecond

// asking is the sign of one writer.
type asking struct {
	lock  *flock.Flock
	since time.Time
}

func signOn(log string) *flock.Flock { return flock.New(log, flock.SetFlag(os.O_RDONLY)) }

// logOf gives the write-ahead log of the database at path, which lies where a link leads.
func logOf(path string) string {
	if there, err := filepath.EvalSymlinks(path); err == nil {
		path = there
	}
	return path + "-wal"
}

// again is called each time the lock was not to be had.
func (a *asking) again() {
	switch {
	case a.since.IsZero():
		a.since = time.Now()
	case a.lock.RLocked() && time.Since(a.since) > asksFor:
		a.end()
		return
	}
	if time.Since(a.since) <= asksFor && !a.lock.RLocked() {
		_, _ = a.lock.TryRLock() // who cannot give the sign waits without it
	}
}

func (a *asking) end() {
	if a.lock.RLocked() {
		_ = a.lock.Unlock() // closing does it too
	}
}

// Awaited tells whether another process waits for the write lock, or is starting on this
// database, so that it will want it.
func (s *Store) Awaited() (yes bool, err error) {
	if s.writer == nil {
		return false, s.readOnly()
	}
	for _, lock := range []*flock.Flock{signOn(s.writer.log), flock.New(filepath.Dir(s.path), flock.SetFlag(os.O_RDONLY))} {
		free, err := lock.TryLock()
		if err != nil || !free {
			return err == nil, err
		}
		if err := lock.Unlock(); err != nil {
			return false, err
		}
	}
	return false, nil
}
