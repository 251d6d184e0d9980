package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sessiond/internal/session"
)

// makeFile makes the file and its folders with narrow permissions before SQLite sees them.
// It never opens a file that exists: closing it would drop SQLite's locks in this process.
func makeFile(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		if info.IsDir() {
			return session.Errorf(session.Invalid, "%s is a folder; name the database file in it", path)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close(), syncFolder(filepath.Dir(path)))
}

// makeFolder makes a folder and its parents, and sees to it that they survive a power cut.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
