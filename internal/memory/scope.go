// Package memory decides what an agent is told of other sessions: by the hooks of its program, and by sessiond's
// tools.
package memory

import (
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Scope says of which sessions an agent is told.
type Scope struct {
	Projects []string // folders; none: all
	Exclude  []string // folders with all below them, never shown
	Asking   session.ID
}

// NewScope returns the scope of the projects in which folders lie, with their worktrees; without folders that of all
// projects. Of an excluded repository the worktrees are excluded, too. The folders may be named by symbolic links.
func NewScope(folders, exclude []string) Scope {
	s := Scope{Exclude: slices.Clone(exclude)}
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
		folder = Resolved(folder)
		addTo(&s.Exclude, folder)
		if store.ProjectOf(folder) == folder {
			addTo(&s.Exclude, store.Roots(folder)...)
		}
	}
	return s
}

// Resolved returns a path without symbolic links, if it exists.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
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

// Excludes tells whether a session belongs to a project that is never shown.
func (s Scope) Excludes(sess *session.Session) bool {
	return slices.ContainsFunc(s.Exclude, func(folder string) bool { return isBelow(sess.Project, folder) || isBelow(sess.Directory, folder) })
}

func isBelow(path, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return folder != "" && (path == folder || strings.HasPrefix(path, folder+"/"))
}
