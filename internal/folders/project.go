package folders

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Project returns the folder of the project that a directory belongs to: the main worktree of its git repository, also
// when the directory is in another worktree, and when that is gone; else the directory itself. It is spelt as Clean
// does, without symbolic links.
func Project(directory string) string {
	name := Clean(directory)
	if root := gitRoot(local(name)); root != "" {
		return Resolved(mainWorktree(root))
	}
	if repository, _, ok := byLayout(name); ok {
		return Project(repository)
	}
	return Resolved(name)
}

// ProjectElsewhere is Project for a directory of another host: by its name alone.
func ProjectElsewhere(directory string) string {
	name := Clean(directory)
	if repository, _, ok := byLayout(name); ok {
		return repository
	}
	return name
}

// HasRepository reports whether a git repository is at or above a directory.
func HasRepository(directory string) bool { return gitRoot(local(Clean(directory))) != "" }

// Worktree returns the name of the worktree of a project in which a directory lies; "" for the main one.
func Worktree(directory, project string) string {
	name := Clean(directory)
	if repository, root, ok := byLayout(name); ok && Within(repository, project) {
		return path.Base(root)
	}
	if !IsAbs(name) || !IsAbs(project) || Within(name, project) {
		return ""
	}
	root := WorktreeRoot(name)
	if Resolved(root) == project { // by a link
		return ""
	}
	return path.Base(root)
}

// Roots returns the folders that sessions of a directory's project have as their directory or project: the directory,
// its project and the worktrees of that, each as given and without symbolic links, too.
func Roots(directory string) []string {
	if !IsAbs(directory) {
		return nil
	}
	roots := append([]string{path.Clean(directory)}, Worktrees(directory)...)
	for _, root := range roots {
		roots = append(roots, Clean(root), Resolved(root))
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// Worktrees returns the folders of the worktrees of a directory's project that git knows of, the project itself first.
func Worktrees(directory string) []string {
	found := []string{Project(directory)}
	for _, from := range []string{directory, found[0]} {
		root := gitRoot(local(Clean(from)))
		if root == "" {
			continue
		}
		found = append(found, root, mainWorktree(root))
		common := commonFolder(root)
		entries, _ := os.ReadDir(filepath.Join(common, "worktrees")) // none: it has no other
		for _, entry := range entries {
			if git, ok := readPath(filepath.Join(common, "worktrees", entry.Name(), "gitdir"), ""); ok {
				found = append(found, filepath.Dir(git))
			}
		}
	}
	unique := found[:0:0]
	for _, folder := range found {
		if !slices.Contains(unique, folder) {
			unique = append(unique, folder)
		}
	}
	return unique
}

// WorktreeRoot returns the folder of the worktree in which a directory lies, as far as git or the layout of its path
// tells; else the directory itself.
func WorktreeRoot(directory string) string {
	name := Clean(directory)
	if _, root, ok := byLayout(name); ok {
		return root
	}
	if root := gitRoot(local(name)); root != "" {
		return Clean(root)
	}
	return name
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

// mainWorktree returns the main worktree of the repository that a root belongs to, else the root:
// gitrepository-layout(5) describes the files. Of a bare repository it is the repository's folder, or the one that
// hides it as .bare.
func mainWorktree(root string) string {
	common := commonFolder(root)
	switch filepath.Base(common) {
	case ".git", ".bare":
		return filepath.Dir(common)
	}
	if common == filepath.Join(root, ".git") || strings.Contains(filepath.ToSlash(common), "/.git/modules/") {
		return root
	}
	return common
}

// commonFolder returns the folder of git that the worktrees of a root's repository share. A submodule is a repository
// of its own. It is known from its name where the repository has moved away.
func commonFolder(root string) string {
	git := filepath.Join(root, ".git")
	own, linked := readPath(git, "gitdir: ")
	if !linked {
		return git
	}
	if common, ok := readPath(filepath.Join(own, "commondir"), ""); ok {
		return common
	}
	if above, name := filepath.Split(own); name != "" && filepath.Base(above) == "worktrees" {
		return filepath.Dir(filepath.Clean(above))
	}
	return git
}

// readPath reads a file of git's that holds one path behind a prefix. A relative path counts from the file's folder.
func readPath(file, prefix string) (string, bool) {
	b, err := os.ReadFile(file)
	name, ok := strings.CutPrefix(strings.TrimSpace(string(b)), prefix)
	if err != nil || !ok || name == "" {
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(file), name)
	}
	return filepath.Clean(name), true
}

// layouts are the folders of a repository in which programs put its worktrees.
var layouts = [...]string{
	"/.claude/worktrees/", "/.gemini/worktrees/", "/.qwen/worktrees/", "/.kilocode/worktrees/", "/.kilo/worktrees/",
	"/.worktrees/",
}

// byLayout tells by its name that a folder is in a worktree: below REPOSITORY/.claude/worktrees/NAME and its like, or
// below REPOSITORY.worktrees/NAME, beside the repository. root is the worktree's folder. In a home such a folder may be
// of several repositories.
func byLayout(folder string) (repository, root string, ok bool) {
	outermost := len(folder)
	for _, layout := range append(layouts[:], ".worktrees/") {
		at := strings.Index(folder, layout)
		if at <= 0 || at >= outermost || layout == ".worktrees/" && folder[at-1] == '/' || isHome(folder[:at]) {
			continue
		}
		end := at + len(layout)
		if name, _, _ := strings.Cut(folder[end:], "/"); name != "" {
			outermost, repository, root, ok = at, folder[:at], folder[:end+len(name)], true
		}
	}
	return repository, root, ok
}

// isHome reports whether a folder is the home of a user.
func isHome(folder string) bool {
	switch above := path.Dir(folder); {
	case folder == "/root", strings.EqualFold(above, "/home"), strings.EqualFold(above, "/Users"),
		IsWindows(folder) && strings.EqualFold(above[2:], "/Users"):
		return true
	}
	home, err := os.UserHomeDir()
	return err == nil && Clean(home) == folder
}
