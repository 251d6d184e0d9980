package history

import (
	"errors"

	"github.com/fsnotify/fsnotify"
)

// OnReady calls ready whenever the follower has done all its work.
func (f *Follower) OnReady(ready func()) { f.ready = ready }

// Deaf makes a system that reports no changes.
func (f *Follower) Deaf() {
	f.newWatcher = func() (*fsnotify.Watcher, error) { return nil, errors.New("no watches are left") }
}

// RefuseWatch makes a system that has no watch for a folder and reports changes of all others.
func (f *Follower) RefuseWatch(folder string) {
	f.addWatch = func(name string) error {
		if name == folder {
			return errors.New("no watches are left")
		}
		return f.watcher.Add(name)
	}
}

// LookEvery is how often a follower looks by itself.
const LookEvery = lookEvery
