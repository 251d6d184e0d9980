package codex

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
)

const (
	plainEnding      = ".jsonl"
	compressedEnding = ".jsonl.zst"
	indexName        = "session_index.jsonl"
	promptsName      = "history.jsonl"
	archive          = "archived_sessions"
	credentials      = "auth.json"
)

// places returns where Codex keeps histories. The rest of its home holds credentials and logs.
func places(home, state string) (places []string) {
	if home != "" {
		for _, name := range []string{"sessions", archive, indexName, promptsName} {
			places = append(places, filepath.Join(home, name))
		}
	}
	for _, folder := range []string{home, state} {
		if folder != "" {
			places = append(places, cmp.Or(mirrorIn(folder), filepath.Join(folder, "state_5.sqlite")))
		}
	}
	return places
}

// file lists a file that is named.
func file(f *history.Finder, path string) {
	switch {
	case filepath.Base(path) == credentials:
		f.Problem(path, errors.New("it holds credentials and is not opened"))
	case generation(path) > 0:
		f.Database(path)
	default:
		f.File(path)
	}
}

// maxFolders ends a search that began at the wrong place.
const maxFolders = 8

// search lists what a folder holds. A Codex home is known by its `sessions` or `archived_sessions`; it
// lists both, and what lies beside them: the index of names, what was typed, and the mirror. Of
// another folder it lists all rollouts below. It opens no file, so that no credential is read.
func search(f *history.Finder, path string) {
	home := false
	for _, name := range []string{"sessions", archive} {
		if dir := filepath.Join(path, name); history.IsFolder(dir) {
			home = true
			f.Folder(dir, maxFolders, isRolloutName)
		}
	}
	if !home {
		f.Folder(path, maxFolders, isRolloutName)
		return
	}
	f.Folder(path, 1, func(name string) bool { return name == indexName || name == promptsName })
	if mirror := mirrorIn(path); mirror != "" {
		f.Database(mirror)
	}
}

// isRolloutName reports whether a file may be a rollout.
func isRolloutName(name string) bool {
	return name != promptsName && name != indexName &&
		(strings.HasSuffix(name, plainEnding) || strings.HasSuffix(name, compressedEnding))
}

// ordered puts rollouts in the order of their names, which begin with the time of creation,
// so that a fork comes after its origin, and what says something of them last. Where a rollout lies
// plain and compressed the plain one counts.
func ordered(found []history.Found) []history.Found {
	plain := map[string]bool{}
	for _, f := range found {
		if name := filepath.Base(f.Path); strings.HasSuffix(name, plainEnding) {
			plain[name] = true
		}
	}
	found = slices.DeleteFunc(found, func(f history.Found) bool {
		name, compressed := strings.CutSuffix(filepath.Base(f.Path), ".zst")
		return compressed && plain[name]
	})
	slices.SortStableFunc(found, func(a, b history.Found) int {
		x, y := filepath.Base(a.Path), filepath.Base(b.Path)
		return cmp.Or(cmp.Compare(beside(x), beside(y)), strings.Compare(created(x), created(y)))
	})
	return found
}

// beside orders what says something of rollouts: after them, and the mirror, whose names are
// the newest, after the index. 0: a rollout.
func beside(name string) int {
	switch {
	case name == promptsName:
		return 1
	case name == indexName:
		return 2
	case generation(name) > 0:
		return 3
	}
	return 0
}

// sessions names no session of what lies beside the rollouts, for it holds none.
func sessions(_ context.Context, found history.Found) (ids []string, known bool) {
	return nil, beside(filepath.Base(found.Path)) > 0
}

// rolloutID is the last UUID in a rollout's file name.
func rolloutID(path string) string {
	name := stem(path)
	if len(name) < uuidLength {
		return ""
	}
	return name[len(name)-uuidLength:]
}

const uuidLength = 36

func stem(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".zst"), plainEnding)
}

// sibling finds the file of a rollout: in the same folder, else anywhere in the same home.
func sibling(path, id string) string {
	if id == "" || strings.ContainsAny(id, `/\*?[`) {
		return ""
	}
	folders := []string{filepath.Dir(path)}
	if dir := home(path); dir != "" {
		folders = append(folders, filepath.Join(dir, archive), filepath.Join(dir, "sessions", "*", "*", "*"))
	}
	for _, dir := range folders {
		for _, ending := range []string{plainEnding, compressedEnding} {
			found, _ := filepath.Glob(filepath.Join(dir, "*"+id+ending)) // a folder whose name is no valid pattern has none
			for _, file := range found {
				if rolloutID(file) == id && file != path {
					return file
				}
			}
		}
	}
	return ""
}

// threadOf returns the thread of another rollout, by its file's name. Without the file it is taken
// for the first rollout of its thread, whose ids are equal.
func threadOf(path, rollout string) string {
	before, _, ok := strings.Cut(stem(sibling(path, rollout)), "_")
	if !ok || len(before) < uuidLength {
		return rollout
	}
	return before[len(before)-uuidLength:]
}

// home is the Codex home that a rollout lies in, "" if it lies elsewhere.
func home(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if name := filepath.Base(dir); name == "sessions" || name == archive {
			return filepath.Dir(dir)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// created returns what orders a rollout's name by time: rollout-2026-01-02T03-04-05-…
func created(name string) string {
	if at := strings.Index(name, "rollout-"); at >= 0 {
		return name[at:]
	}
	return name
}
