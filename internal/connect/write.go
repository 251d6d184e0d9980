package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// BackupSuffix is what a backup's name ends in.
const BackupSuffix = ".sessiond-backup"

// Change is a planned change of a file. A nil text means that the file does not exist.
type Change struct {
	Path     string
	Parts    []Part // of the program, which change
	Old, New []byte
	Left     bool   // after a removal the file has an entry of sessiond still: it was there before connect
	root     string // of the folders that are removed with the file where they are empty
	kept     string // the path of the backup
	backup   bool   // write Old to it
	done     bool   // remove it
}

// Planner plans the changes of programs one after the other. It reads each file once and writes none: the plan of a
// program begins where that of the one before ends, because programs may share files.
type Planner struct {
	files map[string]*configFile // by the path without symbolic links
}

// Planner returns a planner for the programs of the host.
func (h Host) Planner() *Planner {
	p := &Planner{files: map[string]*configFile{}}
	for _, program := range h.Programs() {
		for _, f := range program.Files {
			real := folders.RealPath(f.Path)
			c := p.files[real]
			if c == nil {
				c = &configFile{}
				p.files[real] = c
			}
			c.addForm(f.form)
			if kept := f.Path + BackupSuffix; c.kept == "" || !exists(c.kept) && exists(kept) {
				c.kept = kept
			}
		}
	}
	return p
}

// file returns a file with what all programs may have in it.
func (p *Planner) file(path string) (c *configFile, err error) {
	c = p.files[folders.RealPath(path)]
	if c.isRead {
		return c, nil
	}
	if c.text, err = read(path); err == nil {
		c.backup, err = read(c.kept)
	}
	c.isRead = err == nil
	return c, err
}

// Plan returns the changes that connect a program or, with remove, disconnect it.
func (p *Planner) Plan(program Program, w Wanted, remove bool) ([]Change, error) {
	var changes []Change
	var files []*configFile // of the changes
	for _, path := range program.paths() {
		c, err := p.file(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		parts, forms := program.in(path)
		next, err := c.edit(forms, w, remove)
		if err != nil {
			return nil, fileError(path, err)
		}
		if (next.text == nil) == (c.text == nil) && bytes.Equal(next.text, c.text) {
			continue
		}
		have, err := c.found(next.text)
		if err != nil {
			return nil, fileError(path, err)
		}
		files = append(files, c)
		changes = append(changes, Change{
			Path: path, Parts: parts, Old: c.text, New: next.text, root: program.root,
			kept: c.kept, backup: next.backup, done: next.done, Left: remove && len(have) > 0 && !next.ours,
		})
	}
	for i, c := range files { // a program with a broken file changes none
		c.text = changes[i].New
		if changes[i].backup {
			c.backup = changes[i].Old
		} else if changes[i].done {
			c.backup = nil
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
		if err := c.makeFolders(filepath.Dir(target)); err != nil {
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
		if err := replace(c.kept, c.Old, mode, info, nil); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
	}
	if c.New == nil {
		err = os.Remove(target)
	} else {
		err = replace(target, c.New, mode, info, c.unchanged)
	}
	if err == nil && c.done {
		if err = os.Remove(c.kept); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if c.New == nil {
		c.removeEmptyFolders()
	}
	return err
}

// makeFolders makes a folder for a new file. A folder that was there and empty gets a backup, which is empty, too: the
// removal leaves it.
func (c Change) makeFolders(dir string) error {
	there := dir
	for ; !exists(there) && there != filepath.Dir(there); there = filepath.Dir(there) {
	}
	entries, err := os.ReadDir(there)
	if err == nil && len(entries) == 0 && c.isBelowRoot(there) {
		err = os.WriteFile(filepath.Join(there, BackupSuffix), nil, 0o600)
	}
	if err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// removeEmptyFolders removes the folders around a removed file that are empty: connect made them. A symbolic link to
// a folder stays, and a folder that was empty before.
func (c Change) removeEmptyFolders() {
	for dir := filepath.Dir(c.Path); c.isBelowRoot(dir); dir = filepath.Dir(dir) {
		kept := filepath.Join(dir, BackupSuffix)
		entries, _ := os.ReadDir(dir)
		if len(entries) == 1 && exists(kept) && os.Remove(kept) == nil {
			return
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || os.Remove(dir) != nil {
			return
		}
	}
}

func (c Change) isBelowRoot(dir string) bool {
	return dir != c.root && folders.Within(folders.Clean(dir), folders.Clean(c.root))
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
	return folders.Sync(filepath.Dir(path))
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
