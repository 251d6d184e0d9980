package contextmgr

import (
	"sync"

	"sessiond/internal/session"
)

// mostAsked bounds the memory of what turns asked for, in sessions.
const mostAsked = 4096

// askedMemory remembers the model, window and settings that a session's last turn named
// itself. What is done for the session beside its turns (staging, idle activation, a
// compaction) is then planned for the same numbers. After a restart the session's own count
// until its next turn.
type askedMemory struct {
	mu sync.Mutex
	by map[session.ID]asked
}

type asked struct {
	Budget
	noFlush bool // its agent can write no memory
}

func (a *askedMemory) note(id session.ID, b Budget, noFlush bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.Model == "" && b.Window == 0 && b.MaxOutput == 0 && b.Settings == (Settings{}) && !noFlush {
		delete(a.by, id)
		return
	}
	if a.by == nil || len(a.by) >= mostAsked {
		a.by = map[session.ID]asked{}
	}
	a.by[id] = asked{Budget{Model: b.Model, Window: b.Window, MaxOutput: b.MaxOutput, Settings: b.Settings}, noFlush}
}

// barred tells whether the agent of a session said that it can write no memory.
func (a *askedMemory) barred(id session.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by[id].noFlush
}

// like fills in what a budget leaves open with what the session's last turn asked for.
func (a *askedMemory) like(id session.ID, b Budget) Budget {
	a.mu.Lock()
	last := a.by[id].Budget
	a.mu.Unlock()
	if b.Model != "" && b.Model != last.Model { // the numbers of another model
		return b
	}
	b.Model = last.Model
	if b.Window == 0 {
		b.Window = last.Window
	}
	if b.MaxOutput == 0 {
		b.MaxOutput = last.MaxOutput
	}
	if b.Settings == (Settings{}) {
		b.Settings = last.Settings
	}
	return b
}
