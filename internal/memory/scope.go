// Package memory decides what an agent is told of other sessions: by the hooks of its program, and by sessiond's
// tools.
package memory

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/session"
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
		addTo(&s.Projects, ProjectsOf(filepath.Clean(folder))...)
		addTo(&s.Projects, ProjectsOf(Resolved(folder))...)
	}
	for _, folder := range exclude {
		folder = Resolved(folder)
		addTo(&s.Exclude, folder)
		if projects := ProjectsOf(folder); projects[0] == folder {
			addTo(&s.Exclude, projects...)
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

// Excludes tells whether a session belongs to a project that is never shown.
func (s Scope) Excludes(sess *session.Session) bool {
	return slices.ContainsFunc(s.Exclude, func(folder string) bool { return isBelow(sess.Project, folder) || isBelow(sess.Directory, folder) })
}

func isBelow(path, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return folder != "" && (path == folder || strings.HasPrefix(path, folder+"/"))
}

// ProjectsOf returns the project of a directory and its worktrees: the folder with .git above it, the repository that
// it is a worktree of, and that repository's other worktrees.
func ProjectsOf(directory string) []string {
	root := directory
	for dir := filepath.Clean(directory); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			root = dir
			break
		}
		if dir == filepath.Dir(dir) {
			return []string{directory}
		}
	}
	common := filepath.Join(root, ".git")
	projects := []string{root}
	if dir := pathIn(common, "gitdir: "); dir != "" { // a worktree: .git is a file
		if at := strings.LastIndex(dir, "/worktrees/"); at > 0 {
			common = dir[:at]
			projects = append(projects, filepath.Dir(common))
		}
	}
	others, _ := filepath.Glob(filepath.Join(common, "worktrees", "*", "gitdir"))
	for _, file := range others {
		if dir := filepath.Dir(pathIn(file, "")); dir != "." && !slices.Contains(projects, dir) {
			projects = append(projects, dir)
		}
	}
	return projects
}

// pathIn returns the path that a small file has behind a word; "" if it cannot be read.
func pathIn(file, word string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	path, found := strings.CutPrefix(strings.TrimSpace(string(text)), word)
	if !found {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path
}
