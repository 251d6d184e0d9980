package history

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// private is the folder of a copy of another program's database. It is locked as long as its
// process lives, however that ends: one that is not locked is left over.
type private struct {
	dir  string // 0700
	lock *flock.Flock
}

func newPrivate() (*private, error) {
	for {
		dir, err := os.MkdirTemp("", tempNames)
		if err != nil {
			return nil, err
		}
		p := &private{dir: dir, lock: flock.New(dir, flock.SetFlag(os.O_RDONLY))}
		locked, err := p.lock.TryLock()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(err, p.remove())
		}
		if _, err := os.Stat(dir); locked && err == nil {
			return p, nil
		}
		// Somebody took it for left over in the moment between.
		if err := p.remove(); err != nil {
			return nil, err
		}
	}
}

// remove removes the folder, and lets go of it.
func (p *private) remove() error {
	return errors.Join(os.RemoveAll(p.dir), p.lock.Unlock())
}

// RemoveLeftovers removes the private copies of processes that were killed. Those of living
// ones, and what this user may not remove, stay.
func RemoveLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempNames+"*")) // the pattern is a good one
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
		if locked, err := lock.TryLock(); err == nil && locked {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Unlock()
	}
}

// TempFile makes a file that has no name and is gone when it is closed.
func TempFile() (*os.File, error) {
	file, err := os.CreateTemp("", tempNames) // 0600
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}
