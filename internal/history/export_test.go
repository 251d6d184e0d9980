package history

import "errors"

// OnReady calls ready whenever the follower has done everything that it was told.
func (f *Follower) OnReady(ready func()) { f.ready = ready }

// Deaf makes a system that cannot tell of changes.
func (f *Follower) Deaf() {
	f.watch = func() (watch, error) { return nil, errors.New("no watches are left") }
}

// LookEvery is how often a follower looks by itself.
const LookEvery = lookEvery
