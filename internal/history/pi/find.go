package pi

import (
	"context"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
)

// Places implements history.Source.
func (s *Source) Places() []string {
	var places []string
	for _, place := range []string{s.home, s.extra} {
		if place != "" {
			places = append(places, place)
		}
	}
	return places
}

// Find implements history.Source. An agent directory is known by its `sessions`, of which
// every folder is taken, and the files that one version of pi misplaced beside it. Of another
// folder all *.jsonl files below are taken: a sessions folder, that of one project, a flat
// --session-dir, a copy of many. A single file is taken as it is. Nothing but file names is
// looked at. Symbolic links are followed, each folder is read once.
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
	f.SortByName() // by the time of creation: a fork comes after its origin
	return f.Found, f.Problems, nil
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 8

func isTranscript(name string) bool { return strings.HasSuffix(name, ".jsonl") }
