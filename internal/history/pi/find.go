package pi

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Places implements history.Source.
func (s *Source) Places() []string { return s.places }

// Find implements history.Source. An agent directory is known by its `sessions`, of which
// every folder is taken, and the files that one version of pi misplaced beside it. Of another
// folder all *.jsonl files below are taken: a sessions folder, that of one project, a flat
// --session-dir, a copy of many. A single file is taken as it is. Nothing but file names is
// looked at, but in the folder that pi and omp share. Symbolic links are followed, each folder is
// read once.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var f history.Finder
	err := f.Roots(ctx, roots, s.Places(), func(root string) {
		if sessions := filepath.Join(root, "sessions"); history.IsFolder(sessions) {
			f.Folder(root, 1, isTranscript)
			f.Folder(sessions, maxDepthOfFolders, isTranscript)
			return
		}
		f.Folder(root, maxDepthOfFolders, isTranscript)
	}, f.File)
	if err != nil {
		return nil, nil, err
	}
	f.Found = slices.DeleteFunc(f.Found, s.isOthers)
	f.SortByName() // by the time of creation: a fork comes after its origin
	return f.Found, f.Problems, nil
}

// isOthers reports whether a file in the shared folder is the other program's. omp's begin with a slot;
// older ones do not, but lie in omp's own folder.
func (s *Source) isOthers(found history.Found) bool {
	real, err := filepath.EvalSymlinks(s.shared)
	if s.shared == "" || err != nil || !strings.HasPrefix(found.Path, real+string(filepath.Separator)) {
		return false
	}
	isOmps := filepath.Clean(s.shared) == s.omps || slotSize(found.Path) > 0
	return isOmps != (s.name == session.SourceOmp)
}

// maxSlot bounds omp's slot, in bytes.
const maxSlot = 64 << 10

// slotSize returns the size of omp's slot with its line feed, 0 for a file that has none.
func slotSize(path string) int64 {
	head, err := history.Head(path, maxSlot)
	line, _, ended := bytes.Cut(head, []byte("\n"))
	if o, ok := Parse(line); err != nil || !ended || !ok || o.String("type") != lineTitle {
		return 0
	}
	return int64(len(line)) + 1
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 8

func isTranscript(name string) bool { return strings.HasSuffix(name, ".jsonl") }
