// Package memory decides what an agent is told of other sessions: by the hooks of its program, and by sessiond's
// tools.
package memory

import (
	"path"
	"slices"

	"sessiond/internal/folders"
	"sessiond/internal/session"
)

// Scope says of which sessions an agent is told.
type Scope struct {
	Projects []string // folders; none: all
	Exclude  []string // folders with all below them, never shown, by each of their names
	Asking   session.ID
	excluded map[string]bool // folders of sessions that were looked up
}

// NewScope returns the scope of the projects of the working folders, with their worktrees; without folders that of all
// projects. Of an excluded repository the worktrees are excluded, too. The folders may be named by symbolic links.
func NewScope(working, exclude []string) Scope {
	s := Scope{excluded: map[string]bool{}}
	addTo := func(all *[]string, names ...string) {
		for _, folder := range names {
			if !slices.Contains(*all, folder) {
				*all = append(*all, folder)
			}
		}
	}
	for _, folder := range working {
		addTo(&s.Projects, folders.Clean(folder)) // without any, the scope is that of all projects
		addTo(&s.Projects, folders.Roots(folder)...)
		addTo(&s.Projects, folders.Roots(folders.Resolved(folder))...)
	}
	for _, folder := range exclude {
		addTo(&s.Exclude, names(folder)...)
		folder = folders.Resolved(folder)
		if folders.WorktreeRoot(folder) == folder {
			addTo(&s.Exclude, folders.Roots(folder)...)
		}
	}
	return s
}

// names returns the names of a folder: as its text says, and without symbolic links, before and after its ".." are
// removed from the text.
func names(folder string) []string {
	return []string{folders.Clean(folder), folders.Resolved(folder), folders.Resolved(path.Clean(folder))}
}

// Shows reports whether a session is in the scope.
func (s Scope) Shows(sess *session.Session) bool {
	// it knows what it and its sub-agents said
	asks := s.Asking != "" && (sess.ID == s.Asking || sess.ParentID == s.Asking)
	return !asks && sess.DeletedAt == nil && !s.Excludes(sess) &&
		(len(s.Projects) == 0 || slices.Contains(s.Projects, sess.Project))
}

// Tells reports whether a hook may tell of a session unasked: one in the scope that is known to be the user's own. An
// agent that asks gets the others, too, and is told where they came from.
func (s Scope) Tells(sess *session.Session) bool { return sess.ForeignFrom == "" && s.Shows(sess) }

// Excludes reports whether a session belongs to a project that is never shown, by whatever name it was recorded.
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
			return slices.ContainsFunc(s.Exclude, func(excluded string) bool { return folders.Within(name, excluded) })
		})
		if s.excluded != nil {
			s.excluded[folder] = hidden
		}
	}
	return hidden
}
