package openclaw

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
)

// The names that a state folder has had; one of them is a slip of the pen that was released.
var stateNames = [...]string{".openclaw", ".clawdbot", ".moltbot", ".moldbot"}

// places returns every state folder that the environment names, and those of all names under the home
// folder. An old one may have been left behind with transcripts.
func (s *source) places() []string {
	var places []string
	add := func(dir string) {
		if dir = history.Expand(dir, s.env); folders.IsAbs(dir) && !slices.Contains(places, dir) {
			places = append(places, dir)
		}
	}
	for _, name := range []string{"OPENCLAW_STATE_DIR", "MOLTBOT_STATE_DIR", "CLAWDBOT_STATE_DIR"} {
		add(s.env(name))
	}
	home := cmp.Or(history.Expand(s.env("OPENCLAW_HOME"), s.env), s.env("HOME"))
	if home == "" {
		return places
	}
	for _, name := range stateNames {
		add(filepath.Join(home, name))
	}
	profiles, _ := filepath.Glob(filepath.Join(home, ".openclaw-*")) // the pattern is a good one
	for _, dir := range profiles {
		add(dir)
	}
	return places
}

// file lists a file that is named.
func (s *source) file(f *history.Finder, path string) {
	if isDatabase(filepath.Base(path)) {
		f.Database(path)
		return
	}
	if strings.HasSuffix(path, ".lock.sqlite") {
		f.Problem(path, errors.New("a lock of OpenClaw, no history"))
		return
	}
	before := len(f.Found)
	f.File(path)
	if len(f.Found) > before && parseName(filepath.Base(path)).kind == fileDeleted {
		s.ask(&f.Found[before])
	}
}

// ask remembers that a deleted session's transcript was named itself, unless a folder led to
// it: who follows a folder looks at its files one by one later.
func (s *source) ask(found *history.Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, listed := s.asked[found.Path]; !listed {
		s.asked[found.Path] = true
	}
	if s.asked[found.Path] {
		// It may be known as one that was passed over, and must not count as read.
		found.ModifiedAt = found.ModifiedAt.Add(time.Second)
	}
}

// isDatabase reports by its name whether a file is an agent's database. A lock of OpenClaw is an SQLite file, too.
func isDatabase(name string) bool {
	return strings.HasPrefix(name, "openclaw-agent") && strings.HasSuffix(name, ".sqlite") &&
		!strings.HasSuffix(name, ".lock.sqlite")
}

// isHistory reports by its name whether a file in a sessions folder is read.
func isHistory(name string) bool {
	switch parseName(name).kind {
	case fileTranscript, fileBackup, fileDeleted, fileIndex:
		return true
	}
	return false
}

// gateway lists a state folder, a folder that holds some, the folder of an agent, or a sessions folder.
func gateway(f *history.Finder, root string) {
	if !f.Follows(root) {
		return
	}
	agents := filepath.Join(root, "agents")
	switch {
	case history.IsFolder(agents):
		for _, agent := range foldersIn(f, agents) {
			agentFolder(f, agent)
		}
		for _, old := range []string{"sessions", "session-sqlite-migration-runs"} {
			if dir := filepath.Join(root, old); history.IsFolder(dir) {
				f.Folder(dir, 4, isHistory)
			}
		}
	case history.IsFolder(filepath.Join(root, "sessions")), history.IsFolder(filepath.Join(root, "agent")):
		agentFolder(f, root)
	default:
		before := len(f.Found)
		f.Folder(root, 1, func(name string) bool { return isHistory(name) })
		for _, name := range stateNames {
			if dir := filepath.Join(root, name); len(f.Found) == before && history.IsFolder(dir) {
				gateway(f, dir)
			}
		}
	}
}

// agentFolder takes an agent's transcripts and databases. Nothing else in `agent` is opened:
// the files beside the database hold credentials.
func agentFolder(f *history.Finder, dir string) {
	if !f.Follows(dir) {
		return
	}
	if sessions := filepath.Join(dir, "sessions"); history.IsFolder(sessions) {
		f.Folder(sessions, 1, isHistory)
		if archive := filepath.Join(sessions, "session-sqlite-import-archive"); history.IsFolder(archive) {
			f.Folder(archive, 3, isHistory)
		}
	}
	databases, _ := filepath.Glob(filepath.Join(dir, "agent", "openclaw-agent*.sqlite"))
	for _, db := range databases {
		if isDatabase(filepath.Base(db)) {
			f.Database(db)
		}
	}
	if plain := filepath.Join(dir, "agent", "sessions"); history.IsFolder(plain) { // of the plain SDK
		f.Folder(plain, 2, isHistory)
	}
}

// foldersIn lists the folders in dir, also behind links.
func foldersIn(f *history.Finder, dir string) []string {
	if !f.Follows(dir) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Problem(dir, err)
	}
	var found []string
	for _, e := range entries {
		if child := filepath.Join(dir, e.Name()); history.IsFolder(child) {
			found = append(found, child)
		}
	}
	return found
}

// inOrder puts databases first, since they are the truth for what they hold; then transcripts by the
// time they began, so that parents come before their children; then copies from earlier; then what was
// deleted, and the indexes. It remembers which deleted sessions' transcripts a folder led to: they are
// imported only if they are named themselves.
func (s *source) inOrder(found []history.Found) []history.Found {
	type placed struct {
		history.Found
		group int
		begun int64
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]placed, len(found))
	for i, f := range found {
		all[i] = placed{Found: f, group: 1}
		switch kind := parseName(filepath.Base(f.Path)).kind; {
		case isDatabase(filepath.Base(f.Path)):
			all[i].group = 0
		case kind == fileBackup, movedAway(f.Path):
			all[i].group = 2
		case kind == fileDeleted:
			all[i].group = 3
			if _, known := s.asked[f.Path]; !known {
				s.asked[f.Path] = false
			}
		case kind == fileIndex:
			all[i].group = 4
		}
		if all[i].group == 1 || all[i].group == 2 {
			all[i].begun = s.head(f.Path).begun.UnixMilli()
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.begun, b.begun))
	})
	for i := range all {
		found[i] = all[i].Found
	}
	return found
}

// movedAway reports whether a file is an original that the move to a database kept.
func movedAway(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/session-sqlite-")
}
