package history

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"sessiond/internal/session"
)

// Files is the Source of a program that keeps each session in a file of its own.
type Files struct {
	Program session.Source
	Folders []string // its places
	Now     func() time.Time
	Search  func(f *Finder, folder string) // lists the files of a folder; a single file is read whatever its name is
	Compare func(a, b Found) int           // orders the files
	Replay  func(*Intake) error            // reads one
}

// FolderIn returns the folder of a name in a home, no folder where that is not known.
func FolderIn(home, name string) []string {
	if !filepath.IsAbs(home) {
		return nil
	}
	return []string{filepath.Join(home, name)}
}

// ByTime orders files by their last change.
func ByTime(a, b Found) int { return a.ModifiedAt.Compare(b.ModifiedAt) }

// Name implements Source.
func (s *Files) Name() session.Source { return s.Program }

// Places implements Source.
func (s *Files) Places() []string { return s.Folders }

// Find implements Source.
func (s *Files) Find(ctx context.Context, roots []string) ([]Found, []Problem, error) {
	var f Finder
	err := f.Roots(ctx, roots, s.Folders, func(root string) { s.Search(&f, root) }, f.File)
	slices.SortStableFunc(f.Found, s.Compare)
	return f.Found, f.Problems, err
}

// Read implements Source.
func (s *Files) Read(ctx context.Context, found Found, cursor *Cursor, known Known, emit func(Batch) error) ([]Problem, error) {
	return Replay(ctx, s.Program, found, cursor, known, s.Now, emit, s.Replay)
}
