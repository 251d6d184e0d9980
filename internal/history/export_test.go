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

// LookEvery is how often a follower looks by itself.
const LookEvery = lookEvery
