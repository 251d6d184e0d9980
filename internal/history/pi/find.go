package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
)

// expand replaces a leading ~ by the home folder, as pi does; "" where there is none.
func expand(dir string, env func(string) string) string {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		home := env("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, rest)
	}
	return dir
}

// Find implements history.Source. An agent directory is known by its `sessions`, of which
// every folder is taken, and the files that one version of pi misplaced beside it. Of another
// folder all *.jsonl files below are taken: a sessions folder, that of one project, a flat
// --session-dir, a copy of many. A single file is taken as it is. Nothing but file names is
// looked at. Symbolic links are followed, each folder is read once.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	usual := len(roots) == 0
	if usual {
		if s.home == "" {
			return nil, nil, nil
		}
		roots = []string{s.home}
		if s.extra != "" {
			roots = append(roots, s.extra)
		}
	}
	f := finder{seen: map[string]bool{}}
	for _, root := range roots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if _, err := os.Stat(root); usual && errors.Is(err, fs.ErrNotExist) {
			continue // pi was never used here
		}
		f.root(root)
	}
	// A file's name begins with the time of its creation: a fork comes after its origin.
	slices.SortStableFunc(f.found, func(a, b history.Found) int {
		return strings.Compare(filepath.Base(a.Path), filepath.Base(b.Path))
	})
	return f.found, f.problems, nil
}

type finder struct {
	found    []history.Found
	problems []history.Problem
	seen     map[string]bool // real paths
}

func (f *finder) root(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		f.problem(path, err)
	case !info.IsDir():
		f.file(path)
	case isFolder(filepath.Join(path, "sessions")):
		f.folder(path, 1)
		f.folder(filepath.Join(path, "sessions"), maxDepthOfFolders)
	default:
		f.folder(path, maxDepthOfFolders)
	}
}

// maxDepthOfFolders ends a search that began at the wrong place.
const maxDepthOfFolders = 8

// folder takes a folder's transcripts and, while depth is above 1, those in its folders.
func (f *finder) folder(path string, depth int) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if f.seen[real] {
			return
		}
		f.seen[real] = true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		f.problem(path, err)
		return
	}
	for _, entry := range entries {
		child := filepath.Join(path, entry.Name())
		switch {
		case strings.HasSuffix(entry.Name(), ".jsonl"):
			f.file(child)
		case depth > 1 && isFolder(child): // also behind a symbolic link
			f.folder(child, depth-1)
		}
	}
}

func (f *finder) file(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		f.problem(path, err)
		return
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		f.problem(path, err)
	case !info.Mode().IsRegular() || f.seen[real]:
	default:
		f.seen[real] = true
		f.found = append(f.found, history.Found{Path: real, Size: info.Size(), ModifiedAt: info.ModTime()})
	}
}

func (f *finder) problem(path string, err error) {
	f.problems = append(f.problems, history.Problem{Path: path, Error: history.Reason(err)})
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
