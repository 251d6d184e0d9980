// Package connect writes sessiond into the configurations of the agent programs on this host: its MCP server,
// its hooks and a skill. How a file changes is a pure function from old to new bytes (form); write.go reads and
// writes the files.
package connect

import (
	"reflect"
	"slices"
)

// Wanted is what a file is to say of sessiond.
type Wanted struct {
	Binary string   // the absolute path of sessiond
	Events []string // of its hooks, in the order of Events
}

// events are the hooks that sessiond can have, with Claude Code's names: a name, and after a colon the matcher.
// The order is that in which they are written.
var events = []string{atCompact, "PreCompact", "PostCompact", "SessionEnd", atStart, forPrompts, beforeEdits}

const (
	atCompact   = "SessionStart:compact"
	atStart     = "SessionStart:startup"
	forPrompts  = "UserPromptSubmit"
	beforeEdits = "PreToolUse:Edit|Write"
)

// Events returns the hooks to write: those around a compaction and at the end of a session, and the chosen ones.
func Events(start, prompts, edits bool) []string {
	chosen := map[string]bool{atStart: start, forPrompts: prompts, beforeEdits: edits}
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		on, optional := chosen[e]
		return optional && !on
	})
}

// merged returns w with the hooks that a file has already: connect adds, only a removal takes away.
func (w Wanted) merged(have Wanted) Wanted {
	w.Events = slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		return !slices.Contains(w.Events, e) && !slices.Contains(have.Events, e)
	})
	return w
}

// form is how one kind of file speaks of sessiond. No file is nil, for old as for what is returned. What others
// wrote stays as it is, byte for byte.
type form interface {
	// find returns what the text says of sessiond, and whether it says anything.
	find(old []byte) (Wanted, bool, error)
	// add returns the text with sessiond, and old itself if there is nothing to change.
	add(old []byte, w Wanted) ([]byte, error)
	// cut returns the text without sessiond.
	cut(old []byte) ([]byte, error)
}

// removed returns the text before sessiond was added, given the backup that was made then: the backup itself if
// nobody changed the text since, else the text without what is sessiond's.
func removed(f form, old, backup []byte) ([]byte, error) {
	have, found, err := f.find(old)
	if err != nil || !found {
		return old, err
	}
	if again, err := f.add(backup, have); err == nil && string(again) == string(old) {
		return backup, nil
	}
	return f.cut(old)
}

// sameElse reports whether a changed text parses, has sessiond below the key if it is wanted, and all else as before.
func sameElse(f form, parse func([]byte) (map[string]any, error), key string, old, changed []byte, wanted bool) bool {
	without := func(text []byte) (map[string]any, bool) {
		all, err := parse(text)
		servers, _ := all[key].(map[string]any)
		delete(servers, serverName)
		if len(servers) == 0 {
			delete(all, key)
		}
		return all, err == nil
	}
	_, found, _ := f.find(changed)
	before, _ := without(old)
	after, ok := without(changed)
	return ok && found == wanted && (len(before)+len(after) == 0 || reflect.DeepEqual(before, after))
}
