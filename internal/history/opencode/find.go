package opencode

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// file lists a file that is named. auth.json and mcp-auth.json are never opened.
func file(f *history.Finder, path string) {
	switch {
	case filepath.Ext(path) != ".json":
		f.Database(path)
	case isExport(filepath.Base(path)):
		f.File(path)
	default:
		f.Problem(path, errors.New("it holds credentials and is not opened"))
	}
}

// compare puts what is trusted most first.
func compare(a, b history.Found) int {
	if by := cmp.Compare(rank(a.Path), rank(b.Path)); by != 0 || rank(a.Path) != rankOfExports {
		return by
	}
	return history.ByName(b, a) // ids of sessions count down
}

const rankOfExports = 3

// rank orders what was found: databases, trees of files, those of the oldest generation, exports.
func rank(path string) int {
	switch {
	case filepath.Ext(path) == ".json":
		return rankOfExports
	case !history.IsFolder(path):
		return 0
	case isTree(path):
		return 1
	}
	return 2
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 3

type finder struct {
	*history.Finder
	program string
}

// folder lists every opencode*.db of opencode's data folder (kilo*.db of Kilo's), the tree in `storage` and those
// in `project/*/storage/session`; of another folder also the *.json files, which may be exports, and
// what lies a little below.
func (f *finder) folder(path string, depth int) {
	if isTree(path) || isOldTree(path) {
		f.tree(path)
		return
	}
	if !f.Follows(path) {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		f.Problem(path, err)
		return
	}
	isData := f.Usual
	var below []string
	for _, entry := range entries {
		name, child := entry.Name(), filepath.Join(path, entry.Name())
		switch {
		case strings.HasPrefix(name, f.program) && strings.HasSuffix(name, ".db"):
			f.Database(child)
			isData = true
		case name == "storage" && isTree(child):
			f.tree(child)
			isData = true
		case name == "project" && history.IsFolder(child):
			isData = f.projects(child) || isData
		case history.IsFolder(child):
			below = append(below, child)
		}
	}
	if isData {
		return
	}
	f.Folder(path, 1, isExport)
	if depth > 1 {
		for _, child := range below {
			f.folder(child, depth-1)
		}
	}
}

// projects takes the trees of the oldest generation: one for each project.
func (f *finder) projects(path string) bool {
	folders, _ := os.ReadDir(path) // one that cannot be read has none
	any := false
	for _, entry := range folders {
		child := filepath.Join(path, entry.Name(), "storage", "session")
		if isOldTree(child) {
			f.tree(child)
			any = true
		}
	}
	return any
}

// isExport leaves out the files with credentials.
func isExport(name string) bool {
	return strings.HasSuffix(name, ".json") && name != "auth.json" && name != "mcp-auth.json"
}

// isTree tells the storage folder of generation 1.
func isTree(path string) bool {
	return history.IsFolder(filepath.Join(path, "session")) && history.IsFolder(filepath.Join(path, "message"))
}

// isOldTree tells a project's folder of generation 0.
func isOldTree(path string) bool {
	return history.IsFolder(filepath.Join(path, "info")) && history.IsFolder(filepath.Join(path, "message"))
}

// tree takes a tree of files as one found thing: the sessions' files, and the folders of their
// messages, which change with every message.
func (f *finder) tree(path string) {
	f.Tree(path, filepath.Join("session", "*", "*.json"), filepath.Join("info", "*.json"), filepath.Join("message", "*"))
}
