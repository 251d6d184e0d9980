package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sessiond/internal/session"
)

// BackupSuffix is what a backup's name ends in.
const BackupSuffix = ".sessiond-backup"

// Change is a planned change of a file. A nil text means that the file does not exist.
type Change struct {
	File
	Old, New []byte
	remove   bool
	backup   bool // write Old to a backup beside the file
}

// Plan returns the changes that connect a program or, with remove, disconnect it. It writes nothing.
func (p Program) Plan(w Wanted, remove bool) ([]Change, error) {
	var changes []Change
	for _, f := range p.Files {
		old, err := read(f.Path)
		if err != nil {
			return nil, fileError(f.Path, err)
		}
		c := Change{File: f, Old: old, remove: remove}
		if remove {
			var backup []byte
			if backup, err = read(f.Path + BackupSuffix); err == nil {
				c.New, err = removed(f.form, old, backup)
			}
		} else {
			var found bool
			if _, found, err = f.form.find(old); err == nil {
				c.New, err = f.form.add(old, w)
			}
			c.backup = old != nil && !found
		}
		if err != nil {
			return nil, fileError(f.Path, err)
		}
		if (c.New == nil) != (old == nil) || !bytes.Equal(c.New, old) {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// Lock excludes another `sessiond connect` of this user until unlock. It writes no file, except on Windows.
func (h Host) Lock() (unlock func() error, err error) {
	lock := h.lock()
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = session.Errorf(session.Conflict, "another `sessiond connect` is writing; try again when it is done")
	}
	return lock.Unlock, err
}

// Write writes the change, unless the file changed since Plan. It replaces the file atomically and keeps mode and
// owner. It changes the target of a symbolic link, not the link.
func (c Change) Write() error {
	if err := c.write(); err != nil {
		return fileError(c.Path, err)
	}
	return nil
}

func (c Change) write() error {
	target := c.Path
	info, err := os.Lstat(target)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(target); err == nil {
			info, err = os.Stat(target)
		}
	}
	mode := fs.FileMode(0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Old == nil:
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		info = nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Mode()&0o200 == 0:
		return errors.New("it is read-only; nothing was written. Make it writable or change it by hand")
	default:
		mode = info.Mode().Perm()
	}
	if err := c.unchanged(); err != nil {
		return err
	}
	if c.backup {
		if err := replace(c.Path+BackupSuffix, c.Old, mode, info, nil); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
	}
	if c.New == nil {
		err = os.Remove(target)
		_ = os.Remove(filepath.Dir(target)) // fails unless the folder is empty
	} else {
		err = replace(target, c.New, mode, info, c.unchanged)
	}
	if err == nil && c.remove {
		if err = os.Remove(c.Path + BackupSuffix); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// unchanged returns an error if the file changed since Plan read it.
func (c Change) unchanged() error {
	now, err := read(c.Path)
	if err == nil && ((now == nil) != (c.Old == nil) || !bytes.Equal(now, c.Old)) {
		err = session.Errorf(session.Conflict,
			"another program changed it meanwhile; nothing was written. Run `sessiond connect` again")
	}
	return err
}

// replace writes a file atomically. An error of last, called right before the rename, keeps the old file.
func replace(path string, text []byte, mode fs.FileMode, owner fs.FileInfo, last func() error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".sessiond-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone after the rename
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode))
	if owner != nil {
		err = errors.Join(err, keepOwner(temp, owner))
	}
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if last != nil {
		if err := last(); err != nil {
			return err
		}
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// read returns a file's text, nil if there is none.
func read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New("it is a symbolic link to nothing; make its target or delete it")
		}
		return nil, nil
	case err == nil && text == nil:
		text = []byte{}
	}
	return text, err
}

func fileError(path string, err error) error {
	var known *fs.PathError
	if errors.As(err, &known) && known.Path == path {
		err = known.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
