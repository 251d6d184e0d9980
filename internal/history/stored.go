package history

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Transcripts are those that a store keeps line by line.
type Transcripts interface {
	Transcripts(ctx context.Context, source session.Source) ([]store.Transcript, error)
	TranscriptAt(ctx context.Context, path string) (*store.Transcript, error)
	TranscriptsUnder(ctx context.Context, folder string) ([]string, error)
	AsOwner(ctx context.Context, owner string) context.Context
	TranscriptLines(ctx context.Context, tr *store.Transcript, after int64, most, bytes int) ([]session.JSON, int64, error)
	WriteTranscript(ctx context.Context, tr *store.Transcript, w io.Writer) error
}

// Stored is the Source of a program's transcripts that the store keeps line by line. The program's reader reads them as
// it reads files.
type Stored struct {
	*Program
	Store Transcripts
}

const firstLines = 16 // that are searched for the first time

// Places implements Source.
func (s *Stored) Places() []string { return []string{store.TranscriptPaths} }

// isOf reports whether a path is that of a stored transcript of the program.
func (s *Stored) isOf(path string) bool {
	rest, ok := strings.CutPrefix(path, store.TranscriptPaths)
	if strings.HasPrefix(rest, "@") { // its owner's
		_, rest, ok = strings.Cut(rest, "/")
	}
	return ok && strings.HasPrefix(rest, string(s.Source)+"/")
}

// Find implements Source.
func (s *Stored) Find(ctx context.Context, roots []string) (found []Found, _ []Problem, err error) {
	var all []store.Transcript
	if len(roots) == 0 || slices.Equal(roots, s.Places()) {
		all, err = s.Store.Transcripts(ctx, s.Source)
	} else {
		for _, root := range roots {
			one, failed := s.Store.TranscriptAt(ctx, root)
			if failed != nil {
				return nil, nil, failed
			}
			if one != nil {
				all = append(all, *one)
			}
		}
	}
	for i := range all {
		found = append(found, s.found(ctx, &all[i]))
	}
	if s.Order != nil {
		found = s.Order(found)
	}
	return found, nil, err
}

func (s *Stored) found(ctx context.Context, tr *store.Transcript) Found {
	return Found{
		Path: tr.Path, Size: tr.Bytes, ModifiedAt: tr.StoredAt.Time, transcript: tr.ID,
		asOwner: func(ctx context.Context) context.Context { return s.Store.AsOwner(ctx, tr.Owner) },
		head: func(size int) []byte {
			lines, _, _ := s.Store.TranscriptLines(ctx, tr, 0, firstLines, size) // none: its time is that of storage
			var head []byte
			for _, line := range lines {
				head = append(append(head, line...), '\n')
			}
			return head
		},
	}
}

// Running implements Runner: the program may run on any host.
func (s *Stored) Running() (running, known bool) { return false, false }

// Read implements Source.
func (s *Stored) Read(ctx context.Context, found Found, cursor *Cursor, known Known, emit func(Batch) error,
) ([]Problem, error) {
	found.shelf = &storeShelf{ctx, s.Store}
	return s.Program.Read(ctx, found, cursor, known, emit)
}

// shelf is where found things lie beside one another, if not among the host's files.
type shelf interface {
	open(path string) (*Opened, error)
	exists(path string) bool
	under(folder string) []string
}

// storeShelf is the shelf of the transcripts in a store.
type storeShelf struct {
	ctx   context.Context
	store Transcripts
}

// open writes a transcript into a file that has no name. Codes: NotFound (it was deleted).
func (s *storeShelf) open(path string) (*Opened, error) {
	tr, err := s.store.TranscriptAt(s.ctx, path)
	if err == nil && tr == nil {
		err = session.Errorf(session.NotFound, "its lines were deleted")
	}
	if err != nil {
		return nil, err
	}
	file, err := TempFile()
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(file, readSize)
	if err = s.store.WriteTranscript(s.ctx, tr, out); err == nil {
		err = out.Flush()
	}
	if err != nil {
		file.Close() //nolint:errcheck // it has no name
		return nil, err
	}
	return &Opened{File: file, Size: tr.Bytes, Stored: tr.Bytes, ModifiedAt: tr.StoredAt.Time}, nil
}

func (s *storeShelf) exists(path string) bool {
	tr, err := s.store.TranscriptAt(s.ctx, path)
	return err == nil && tr != nil
}

func (s *storeShelf) under(folder string) []string {
	paths, _ := s.store.TranscriptsUnder(s.ctx, folder) // none: nothing lies there
	return paths
}
