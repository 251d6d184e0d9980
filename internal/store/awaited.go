package store

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Who waits for the write lock while another process has it says so by a shared lock on the
// database's folder, so that a long import learns of it between two transactions and need not
// stop every few milliseconds for somebody who is not there. It is a sign and no more: without
// it the waiting only takes longer.

// asksFor is how long a waiting writer gives the sign at most: longer than any import's
// transaction, and not so long that another process, which needs that lock for its start, is
// held up.
const asksFor = 200 * time.Millisecond

// asking is the sign of one writer.
type asking struct {
	lock  *flock.Flock
	since time.Time
}

func asks(path string) asking {
	return asking{lock: flock.New(filepath.Dir(path), flock.SetFlag(os.O_RDONLY))}
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
	lock := flock.New(filepath.Dir(s.path), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryLock()
	if err != nil || !free {
		return err == nil, err
	}
	return false, lock.Unlock()
}
