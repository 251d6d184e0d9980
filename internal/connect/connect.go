// Package connect writes sessiond into the configurations of the agent programs on this host: its MCP server,
// its hooks and a skill. How a file changes is a pure function from old to new bytes (form); write.go reads and
// writes the files.
package connect

import (
	"reflect"
	"slices"
)

// Wanted are the settings that sessiond writes into a file.
type Wanted struct {
	Binary string   // the absolute path of sessiond
	Events []string // that run its hooks, in the order of Events
}

// events lists the events that can run a hook, in the order in which connect writes them: Claude Code's name of the
// event, and its matcher after a colon.
var events = []string{atCompact, "PreCompact", "PostCompact", "SessionEnd", atStart, forPrompts, beforeEdits}

const (
	atCompact   = "SessionStart:compact"
	atStart     = "SessionStart:startup"
	forPrompts  = "UserPromptSubmit"
	beforeEdits = "PreToolUse:Edit|Write"
)

// Events returns the events whose hooks connect writes: compactions, the end of a session, and the chosen ones.
func Events(start, prompts, edits bool) []string {
	chosen := map[string]bool{atStart: start, forPrompts: prompts, beforeEdits: edits}
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		on, optional := chosen[e]
		return optional && !on
	})
}

// merged adds the events that a file has already. Only `connect --remove` removes hooks.
func (w Wanted) merged(have Wanted) Wanted {
	w.Events = slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		return !slices.Contains(w.Events, e) && !slices.Contains(have.Events, e)
	})
	return w
}

// form edits one kind of file. A nil text means that the file does not exist. Each edit keeps the text of others byte
// for byte.
type form interface {
	// find returns sessiond's settings in the text, and whether the text has any.
	find(old []byte) (Wanted, bool, error)
	// add returns the text with these settings; old itself if it has them.
	add(old []byte, w Wanted) ([]byte, error)
	// cut removes sessiond's settings from the text.
	cut(old []byte) ([]byte, error)
}

// removed undoes add. It returns the backup that was made before, if the text is the backup with sessiond added; else
// the user changed the text since, and it cuts sessiond's settings from it.
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

// sameElse reports whether the changed text parses, has sessiond below the key exactly if wanted, and has the same
// values as old everywhere else.
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
