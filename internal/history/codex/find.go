package codex

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

const (
	plainEnding      = ".jsonl"
	compressedEnding = ".jsonl.zst"
	indexName        = "session_index.jsonl"
	archive          = "archived_sessions"
)

// Places implements history.Source. The rest of Codex' home holds its credentials and logs.
func (s *Source) Places() []string {
	if s.home == "" {
		return nil
	}
	return []string{filepath.Join(s.home, "sessions"), filepath.Join(s.home, archive), filepath.Join(s.home, indexName)}
}

// Find implements history.Source. A Codex home is known by its `sessions` or
// `archived_sessions`; both are taken, and the index of names. Of another folder all rollouts
// below are taken, a single file as it is. Where a rollout stands plain and compressed the
// plain one counts. Nothing but file names is looked at, so that no credential is opened.
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
		case usual && errors.Is(err, fs.ErrNotExist): // Codex was never used here
		case err != nil:
			f.Problem(root, err)
		case !info.IsDir():
			f.File(root)
		default:
			folder(&f, root)
		}
	}
	return ordered(f.Found), f.Problems, nil
}

// maxFolders ends a search that began at the wrong place.
const maxFolders = 8

func folder(f *history.Finder, path string) {
	home := false
	for _, name := range []string{"sessions", archive} {
		if dir := filepath.Join(path, name); history.IsFolder(dir) {
			home = true
			f.Folder(dir, maxFolders, isRolloutName)
		}
	}
	if !home {
		f.Folder(path, maxFolders, isRolloutName)
	} else if index := filepath.Join(path, indexName); exists(index) {
		f.File(index)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isRolloutName tells whether a file may be a rollout. What was typed stands in history.jsonl,
// too, and in the rollouts again.
func isRolloutName(name string) bool {
	return name != "history.jsonl" && (strings.HasSuffix(name, plainEnding) || strings.HasSuffix(name, compressedEnding))
}

// ordered puts rollouts in the order of their names, which begin with the time of creation,
// so that a fork comes after its origin, and the index of names last. A compressed copy of a
// plain rollout is left out.
func ordered(found []history.Found) []history.Found {
	plain := map[string]bool{}
	for _, f := range found {
		if name := filepath.Base(f.Path); strings.HasSuffix(name, plainEnding) {
			plain[name] = true
		}
	}
	found = slices.DeleteFunc(found, func(f history.Found) bool {
		name, compressed := strings.CutSuffix(filepath.Base(f.Path), ".zst")
		return compressed && plain[name]
	})
	slices.SortStableFunc(found, func(a, b history.Found) int {
		x, y := filepath.Base(a.Path), filepath.Base(b.Path)
		if (x == indexName) != (y == indexName) {
			if x == indexName {
				return 1
			}
			return -1
		}
		return strings.Compare(created(x), created(y))
	})
	return found
}

// created gives what orders a rollout's name by time: rollout-2026-01-02T03-04-05-…
func created(name string) string {
	if at := strings.Index(name, "rollout-"); at >= 0 {
		return name[at:]
	}
	return name
}
