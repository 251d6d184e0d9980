package history

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watch tells which paths changed in the folders that it was given. Its channel is closed
// when it cannot tell any more; "" means that it lost count.
type watch interface {
	add(folder string) error
	events() <-chan string
	close()
}

// maxNewFolders bounds how many folders below one that was just made are watched.
const maxNewFolders = 256

// watchUpTo watches the folder of a file and those above it up to its root: there the
// program will put the next one.
func (f *Follower) watchUpTo(path string, roots []string) {
	for _, root := range roots {
		switch {
		case !Within(path, root):
			continue
		case path == root: // a file that is a place by itself
			f.watchOnly(filepath.Dir(path))
			return
		}
		for folder := filepath.Dir(path); Within(folder, root); folder = filepath.Dir(folder) {
			f.watchOnly(folder)
			if folder == root {
				break
			}
		}
		return
	}
	f.watchOnly(filepath.Dir(path))
}

// watchBelow watches a folder and the folders in it.
func (f *Follower) watchBelow(folder string, left int) int {
	f.watchOnly(folder)
	left--
	entries, err := os.ReadDir(folder)
	if err != nil {
		return left
	}
	for _, entry := range entries {
		if entry.IsDir() && left > 0 {
			left = f.watchBelow(filepath.Join(folder, entry.Name()), left)
		}
	}
	return left
}

// watchOnly watches one folder. Where the system has no more watches, the follower looks by
// itself instead.
func (f *Follower) watchOnly(folder string) {
	if f.changes == nil || !IsFolder(folder) {
		return
	}
	if err := f.changes.add(folder); err != nil {
		f.deafen()
	}
}

// system is the operating system's watch.
type system struct {
	watcher *fsnotify.Watcher
	paths   chan string
	quit    chan struct{}
	done    chan struct{}
}

func watchSystem() (watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	s := &system{watcher: watcher, paths: make(chan string), quit: make(chan struct{}), done: make(chan struct{})}
	go s.pass()
	return s, nil
}

func (s *system) add(folder string) error {
	if err := s.watcher.Add(folder); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

func (s *system) events() <-chan string { return s.paths }

func (s *system) close() {
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
	<-s.done
	s.watcher.Close() //nolint:errcheck // nothing was written
}

// pass hands the events on, as paths.
func (s *system) pass() {
	defer close(s.done)
	for {
		var path string
		select {
		case <-s.quit:
			return
		case event, ok := <-s.watcher.Events:
			if !ok {
				close(s.paths)
				return
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
			path = event.Name
		case _, ok := <-s.watcher.Errors: // too many events at once
			if !ok {
				close(s.paths)
				return
			}
		}
		select {
		case s.paths <- path:
		case <-s.quit:
			return
		}
	}
}
