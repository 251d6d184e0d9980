package sessiond

import (
	"bufio"
	"context"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source reads what Writer wrote. It has no usual places: an export is where the user put it.
type Source struct {
	// AsCopy brings a session that is here with other content in under a new id.
	AsCopy bool
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceSessiond }

// Places implements history.Source.
func (s *Source) Places() []string { return nil }

// folders is how deep exports are looked for in a folder.
const folders = 8

// Find implements history.Source: the files at roots, and the exports in folders there.
func (s *Source) Find(ctx context.Context, roots []string) ([]history.Found, []history.Problem, error) {
	var all, inFolders history.Finder
	inFolders.Confine(roots, nil)
	for _, root := range roots {
		if history.IsFolder(root) {
			inFolders.Folder(root, folders, func(name string) bool { return strings.HasSuffix(name, ".jsonl") })
			continue
		}
		all.File(root)
	}
	for _, found := range inFolders.Found {
		if isExport(found.Path) {
			all.File(found.Path)
		}
	}
	inFolders.End()
	slices.SortStableFunc(all.Found, func(a, b history.Found) int { return a.ModifiedAt.Compare(b.ModifiedAt) })
	return all.Found, append(all.Problems, inFolders.Problems...), ctx.Err()
}

// isExport looks at a file's first line.
func isExport(path string) bool {
	f, _, err := history.Open(path)
	if err != nil {
		return true // reading it reports the error
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	kind, ok := typeOf(line)
	return ok && kind == lineExport
}
