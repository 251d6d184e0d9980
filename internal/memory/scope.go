// Package memory decides what an agent is told of other sessions: by the hooks of its program, and by sessiond's
// tools.
package memory

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Scope says of which sessions an agent is told.
type Scope struct {
	Projects []string // folders; none: all
	Exclude  []string // folders with all below them, never shown, by each of their names
	Asking   session.ID
	excluded map[string]bool // folders of sessions that were looked up
}

// NewScope returns the scope of the projects in which folders lie, with their worktrees; without folders that of all
// projects. Of an excluded repository the worktrees are excluded, too. The folders may be named by symbolic links.
func NewScope(folders, exclude []string) Scope {
	s := Scope{excluded: map[string]bool{}}
	addTo := func(all *[]string, folders ...string) {
		for _, folder := range folders {
			if !slices.Contains(*all, folder) {
				*all = append(*all, folder)
			}
		}
	}
	for _, folder := range folders {
		addTo(&s.Projects, filepath.Clean(folder)) // without any, the scope is that of all projects
		addTo(&s.Projects, store.Roots(folder)...)
		addTo(&s.Projects, store.Roots(Resolved(folder))...)
	}
	for _, folder := range exclude {
		addTo(&s.Exclude, names(folder)...)
		folder = Resolved(folder)
		if store.ProjectOf(folder) == folder {
			addTo(&s.Exclude, store.Roots(folder)...)
		}
	}
	return s
}

// Resolved returns a path without symbolic links, as the system follows them. What of it does not exist any more counts
// by its text, also the target of a link.
func Resolved(path string) string {
	const mostLinks = 40 // more lead in a circle
	if !filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	done, rest := "/", path
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(done, name) // of ".." the folder above
		target, err := os.Readlink(next)
		if err != nil || links == mostLinks {
			done = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return done
}

// names returns the names of a folder: as its text says, and without symbolic links, before and after its ".." are
// removed from the text.
func names(folder string) []string {
	return []string{filepath.Clean(folder), Resolved(folder), Resolved(filepath.Clean(folder))}
}

// Shows tells whether a session is in the scope.
func (s Scope) Shows(sess *session.Session) bool {
	asks := s.Asking != "" && (sess.ID == s.Asking || sess.ParentID == s.Asking) // it knows what it and its sub-agents said
	return !asks && sess.DeletedAt == nil && !s.Excludes(sess) &&
		(len(s.Projects) == 0 || slices.Contains(s.Projects, sess.Project))
}

// Tells reports whether a hook may tell of a session unasked: one in the scope that is known to be the user's own. An
// agent that asks gets the others, too, and is told where they came from.
func (s Scope) Tells(sess *session.Session) bool { return sess.ForeignFrom == "" && s.Shows(sess) }

// Excludes tells whether a session belongs to a project that is never shown, by whatever name it was recorded.
func (s Scope) Excludes(sess *session.Session) bool {
	return len(s.Exclude) > 0 && (s.excludes(sess.Project) || s.excludes(sess.Directory))
}

func (s Scope) excludes(folder string) bool {
	if folder == "" {
		return false
	}
	hidden, known := s.excluded[folder]
	if !known {
		hidden = slices.ContainsFunc(names(folder), func(name string) bool {
			return slices.ContainsFunc(s.Exclude, func(excluded string) bool { return isBelow(name, excluded) })
		})
		if s.excluded != nil {
			s.excluded[folder] = hidden
		}
	}
	return hidden
}

func isBelow(path, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return folder != "" && (path == folder || strings.HasPrefix(path, folder+"/"))
}
