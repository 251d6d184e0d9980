// Package droid reads the sessions of Factory's Droid.
//
// A session is a file of lines, whose first one is rewritten when the title changes, and a file of settings, which has
// what the session used in all. Each is a found thing of its own: one can change without the other. `/compact` goes on
// in a new session, whose sums begin with those of the old one.
package droid

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// New makes the source, with Droid's folder from the environment.
func New(env func(string) string, now func() time.Time) *history.Program {
	home := env("FACTORY_HOME_OVERRIDE")
	if !folders.IsAbs(home) {
		home = history.Expand("~", env)
	}
	return &history.Program{
		Source: session.SourceDroid, Folders: history.InFolders(history.FolderIn(home, ".factory/sessions")), Now: now,
		Search: search, Order: order, Replay: read, Commands: []string{"droid"},
	}
}

const (
	linesEnd    = ".jsonl"
	settingsEnd = ".settings.json"
)

// maxDepth reaches from a home to the sessions of a project.
const maxDepth = 5

// search lists sessions and their settings. What lies above their folder may hold keys, and no name of it matches.
func search(f *history.Finder, folder string) {
	f.Folder(folder, maxDepth, func(name string) bool {
		return strings.HasSuffix(name, linesEnd) || strings.HasSuffix(name, settingsEnd)
	})
}

// nameOf returns the id of the session that a file belongs to.
func nameOf(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), linesEnd), settingsEnd)
}

// order puts a session behind the one that it comes from, and settings behind all sessions.
func order(found []history.Found) []history.Found {
	comesFrom := map[string]string{}
	for _, f := range found {
		if isLines(f) && len(found) > 1 {
			o := header(f.Path)
			comesFrom[nameOf(f.Path)] = cmp.Or(o.String("parent"), o.String("callingSessionId"))
		}
	}
	rank := func(f history.Found) (n int) {
		if !isLines(f) {
			return history.MaxForks + 1
		}
		for id := comesFrom[nameOf(f.Path)]; id != "" && n < history.MaxForks; id = comesFrom[id] {
			n++
		}
		return n
	}
	ranks := map[string]int{}
	for _, f := range found {
		ranks[f.Path] = rank(f)
	}
	slices.SortStableFunc(found, func(a, b history.Found) int {
		return cmp.Or(ranks[a.Path]-ranks[b.Path], a.ModifiedAt.Compare(b.ModifiedAt), strings.Compare(a.Path, b.Path))
	})
	return found
}

func isLines(f history.Found) bool { return !strings.HasSuffix(f.Path, settingsEnd) }

// header returns the first line of a session.
func header(path string) jsonx.Object {
	const size = 16 << 10
	head, _ := history.Head(path, size) // what could be read
	line, _, _ := strings.Cut(string(head), "\n")
	o, _, _ := history.ParseLine([]byte(line))
	return o
}

func read(in *history.Intake) {
	if isLines(in.Found) {
		readSession(in)
	} else {
		readSettings(in)
	}
}

// settingsOf reads the settings of a session that lie in a folder of the sessions, nil if there are none.
func settingsOf(folder, id string) jsonx.Object {
	for _, pattern := range []string{folder, filepath.Join(folder, ".."), filepath.Join(folder, "..", "*")} {
		matches, _ := filepath.Glob(filepath.Join(pattern, id+settingsEnd)) // an id is no pattern, or matches nothing
		for _, path := range matches {
			if text, err := history.ReadFile(path); err == nil {
				if o, ok := jsonx.ReadObject(history.Unmarked(text)); ok {
					return o
				}
			}
		}
	}
	return nil
}
