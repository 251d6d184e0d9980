package pi

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
)

// search lists the transcripts of a folder. An agent directory is known by its `sessions`, of which it
// lists every folder, and the files that one version of pi misplaced beside it. Of another folder it
// lists all *.jsonl files below: a sessions folder, that of one project, a flat --session-dir, a copy
// of many. It looks at nothing but file names.
func search(f *history.Finder, root string) {
	if sessions := filepath.Join(root, "sessions"); history.IsFolder(sessions) {
		f.Folder(root, 1, isTranscript)
		root = sessions
	}
	f.Folder(root, maxDepthOfFolders, isTranscript)
}

// sharedFolder is the folder that a variable of pi and omp names.
type sharedFolder struct {
	isOmp bool   // omp's files count
	path  string // "": none
	omps  string // omp's own folder
}

// order leaves out the other program's files, and puts a fork behind its origin: names begin with the
// time of creation.
func (s sharedFolder) order(found []history.Found) []history.Found {
	return history.SortedBy(history.ByName)(slices.DeleteFunc(found, s.isOthers))
}

// isOthers reports whether a file in the shared folder is the other program's. omp's begin with a slot;
// older ones do not, but lie in omp's own folder.
func (s sharedFolder) isOthers(found history.Found) bool {
	real, err := filepath.EvalSymlinks(s.path)
	if s.path == "" || err != nil || !strings.HasPrefix(found.Path, real+string(filepath.Separator)) {
		return false
	}
	isOmps := filepath.Clean(s.path) == s.omps || slotSize(found.Path) > 0
	return isOmps != s.isOmp
}

// maxSlot bounds omp's slot, in bytes.
const maxSlot = 64 << 10

// slotSize returns the size of omp's slot with its line feed, 0 for a file that has none.
func slotSize(path string) int64 {
	head, err := history.Head(path, maxSlot)
	line, _, ended := bytes.Cut(head, []byte("\n"))
	if o, _, ok := history.ParseLine(line); err != nil || !ended || !ok || o.String("type") != lineTitle {
		return 0
	}
	return int64(len(line)) + 1
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 8

func isTranscript(name string) bool { return strings.HasSuffix(name, ".jsonl") }
