package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProjectOf returns the git root above a directory, else the directory itself.
func ProjectOf(directory string) string {
	if root := gitRoot(directory); root != "" {
		return root
	}
	return directory
}

// gitRoot returns the folder at or above a directory that has a .git; "" without one.
func gitRoot(directory string) string {
	if !filepath.IsAbs(directory) {
		return ""
	}
	for dir := filepath.Clean(directory); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// Roots returns the folders that sessions of a directory's project have as their directory or project: the
// directory, the root of its git repository, and the repository's other worktrees. Each is spelt as given and
// with symbolic links resolved.
func Roots(directory string) []string {
	if !filepath.IsAbs(directory) {
		return nil
	}
	roots := []string{filepath.Clean(directory)}
	if root := gitRoot(directory); root != "" {
		roots = append(roots, root)
		roots = append(roots, worktrees(root)...)
	}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			roots = append(roots, real)
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// worktrees returns the main worktree and the linked ones of the repository that root belongs to, as
// gitrepository-layout(5) describes their files.
func worktrees(root string) (found []string) {
	common := filepath.Join(root, ".git")
	if own, linked := readPath(common, "gitdir: "); linked {
		if common, linked = readPath(filepath.Join(own, "commondir"), ""); !linked {
			return nil // a submodule: a repository of its own
		}
	}
	if filepath.Base(common) == ".git" {
		found = append(found, filepath.Dir(common))
	}
	entries, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return found
	}
	for _, entry := range entries {
		if git, ok := readPath(filepath.Join(common, "worktrees", entry.Name(), "gitdir"), ""); ok {
			found = append(found, filepath.Dir(git))
		}
	}
	return found
}

// readPath reads a file of git's that holds one path behind a prefix. A relative path counts from the file's folder.
func readPath(file, prefix string) (string, bool) {
	b, err := os.ReadFile(file)
	path, ok := strings.CutPrefix(strings.TrimSpace(string(b)), prefix)
	if err != nil || !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return filepath.Clean(path), true
}
