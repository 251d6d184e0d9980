package claudecode

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessiond/internal/history"
)

const ending = ".jsonl"

// Find implements history.Source. Of a home its projects are taken, of another folder all
// *.jsonl files below, a single file as it is. A sub-agent's file comes after that of the
// session which started it; sessions stand in the order in which they were last written, so
// that a fork comes after its origin more often than not. Nothing but file names is looked at.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var f history.Finder
	err := f.Roots(ctx, roots, s.Places(), func(root string) {
		if projects := filepath.Join(root, "projects"); history.IsFolder(projects) {
			root = projects
		}
		f.Folder(root, maxFolders, isTranscriptName)
	}, f.File)
	if err != nil {
		return nil, nil, err
	}
	return ordered(f.Found), f.Problems, nil
}

// maxFolders ends a search that began at the wrong place.
const maxFolders = 8

// isTranscriptName tells whether a file may be a transcript. What was typed stands in
// history.jsonl, too.
func isTranscriptName(name string) bool {
	return strings.HasSuffix(name, ending) && name != "history.jsonl"
}

func ordered(found []history.Found) []history.Found {
	type keyed struct {
		history.Found
		agent bool
	}
	all := make([]keyed, len(found))
	for i, f := range found {
		all[i] = keyed{f, isAgentFile(f.Path)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		switch {
		case a.agent != b.agent:
			if a.agent {
				return 1
			}
			return -1
		case !a.ModifiedAt.Equal(b.ModifiedAt):
			return a.ModifiedAt.Compare(b.ModifiedAt)
		}
		return strings.Compare(a.Path, b.Path)
	})
	for i := range all {
		found[i] = all[i].Found
	}
	return found
}

// isAgentFile tells whether a file is a sub-agent's, or the journal of a run of several.
func isAgentFile(path string) bool {
	return agentOf(path) != "" || filepath.Base(path) == journal+ending
}

const journal = "journal"

// agentOf gives the sub-agent's id in a file's name, "" for another file.
func agentOf(path string) string {
	id, ok := strings.CutPrefix(stem(path), "agent-")
	if !ok {
		return ""
	}
	return id
}

func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ending) }

// isUUID tells whether s has the form of the ids that name main files.
func isUUID(s string) bool {
	const uuid = 36
	if len(s) != uuid {
		return false
	}
	for i, c := range s {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// trunkOf gives the session that a sub-agent's file lies under, "" if its folders do not say.
func trunkOf(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "subagents" {
			if id := filepath.Base(filepath.Dir(dir)); isUUID(id) {
				return id
			}
			return ""
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// hasAgentFile tells whether a sub-agent of the transcript at path has a file of its own.
func hasAgentFile(path, agent string) bool {
	if strings.ContainsAny(agent, `/\`) {
		return false
	}
	name := "agent-" + agent + ending
	for _, file := range []string{filepath.Join(strings.TrimSuffix(path, ending), "subagents", name), filepath.Join(filepath.Dir(path), name)} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}
