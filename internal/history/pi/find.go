package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
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
	usual := len(roots) == 0
	if usual {
		roots = s.Places()
	}
	var f history.Finder
	for _, root := range roots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		info, err := os.Stat(root)
		switch {
		case usual && errors.Is(err, fs.ErrNotExist): // pi was never used here
		case err != nil:
			f.Problem(root, err)
		case !info.IsDir():
			f.File(root)
		case history.IsFolder(filepath.Join(root, "sessions")):
			f.Folder(root, 1, isTranscript)
			f.Folder(filepath.Join(root, "sessions"), maxDepthOfFolders, isTranscript)
		default:
			f.Folder(root, maxDepthOfFolders, isTranscript)
		}
	}
	f.SortByName() // by the time of creation: a fork comes after its origin
	return f.Found, f.Problems, nil
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 8

func isTranscript(name string) bool { return strings.HasSuffix(name, ".jsonl") }
