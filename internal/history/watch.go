package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// maxNewFolders bounds how many folders below a new one are watched.
const maxNewFolders = 256

// events returns the channels of changes and of lost changes: nil, which block for ever, where
// the system reports none.
func (f *Follower) events() (<-chan fsnotify.Event, <-chan error) {
	if f.watcher == nil {
		return nil, nil
	}
	return f.watcher.Events, f.watcher.Errors
}

// stopWatching leaves the follower to its looks.
func (f *Follower) stopWatching() {
	if f.watcher != nil {
		f.watcher.Close() //nolint:errcheck // nothing was written
		f.watcher = nil
	}
}

// watch watches one folder of a source. Where the system has no more watches, the follower looks by itself.
func (f *Follower) watch(s *followed, folder string) {
	if f.watcher == nil || !IsFolder(folder) {
		return
	}
	add := f.watcher.Add
	if f.addWatch != nil {
		add = f.addWatch
	}
	if err := add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		s.unwatched[folder] = true
		return
	}
	delete(s.unwatched, folder)
}

// lookAtUnwatched notes what changed in the folders of which the system reports no changes. The first look at a folder
// has nothing to compare with, so the source is scanned.
func (f *Follower) lookAtUnwatched(s *followed) {
	now, changed := map[string]string{}, false
	note := func(path string) {
		changed = true
		f.noteChange(path)
	}
	for folder := range s.unwatched {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // its entries are gone, as below
		}
		_, known := s.entries[folder]
		now[folder], s.scan = "", s.scan || !known
		for _, entry := range entries {
			path, state := filepath.Join(folder, entry.Name()), ""
			if info, err := entry.Info(); err == nil && !entry.IsDir() { // a folder has a watch of its own, or is one of these
				state = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
			}
			now[path] = state
			if before, ok := s.entries[path]; known && (!ok || before != state) {
				note(path)
			}
		}
	}
	for path := range s.entries {
		if _, ok := now[path]; !ok {
			note(path)
		}
	}
	s.entries, s.looked = now, f.Now()
	s.lengthenPause(changed)
}

// lengthenPause doubles the pause while nothing changes.
func (s *followed) lengthenPause(changed bool) {
	if s.pause = min(2*s.pause, lookMost); changed {
		s.pause = lookEvery
	}
}

// watchAgain tries what the system refused before: it may have watches again.
func (f *Follower) watchAgain(s *followed) {
	for folder := range s.unwatched {
		delete(s.unwatched, folder) // if it is gone
		f.watch(s, folder)
		if s.unwatched[folder] {
			return // no more than one is tried while none is left
		}
	}
}

// watchUpTo watches the folder of a file and those above it up to its root, where the program
// will put the next one.
func (f *Follower) watchUpTo(s *followed, path string, roots []string) {
	folder := filepath.Dir(path)
	f.watch(s, folder)
	for slices.ContainsFunc(roots, func(root string) bool { return folder != root && Within(folder, root) }) {
		folder = filepath.Dir(folder)
		f.watch(s, folder)
	}
}

// watchBelow watches a folder and the folders in it, and returns how many more may be watched.
func (f *Follower) watchBelow(s *followed, folder string, left int) int {
	f.watch(s, folder)
	left--
	entries, err := os.ReadDir(folder)
	if err != nil {
		return left
	}
	for _, entry := range entries {
		if entry.IsDir() && left > 0 {
			left = f.watchBelow(s, filepath.Join(folder, entry.Name()), left)
		}
	}
	return left
}
