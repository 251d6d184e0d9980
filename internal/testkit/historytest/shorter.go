package historytest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
)

// shortens cuts a file off, once, when the first of what it says was given away, and writes it
// whole again before it is read for the second time: as a program does that writes its file anew.
type shortens struct {
	history.Source
	path  string
	whole []byte
	size  int64
	cut   bool
}

func (s *shortens) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	if s.cut {
		if err := os.WriteFile(s.path, s.whole, 0o600); err != nil {
			return nil, err
		}
	}
	return s.Source.Read(ctx, found, cursor, known, func(b history.Batch) error {
		if !s.cut && len(b.Messages) > 0 {
			s.cut = true
			if err := os.Truncate(s.path, s.size); err != nil {
				return err
			}
		}
		return emit(b)
	})
}

// ShorterMeanwhile claims that of a file that is cut off in the middle while it is read, and
// written whole again then, everything comes in, and nothing that never stood there. line writes
// the i-th line of the file.
func ShorterMeanwhile(t *testing.T, source history.Source, name, header string, line func(i int) string) {
	t.Helper()
	var lines []string
	if header != "" {
		lines = append(lines, header)
	}
	for i := range 2*history.MaxBatch + 10 {
		lines = append(lines, line(i))
	}
	calm := New(t, source)
	calm.Import(calm.Write(name, lines...))

	h := New(t, source)
	path := h.Write(name, lines...)
	whole := []byte(Read(t, path))
	h.Source = &shortens{Source: source, path: path, whole: whole, size: int64(len(whole)) * 4 / 5}
	if done := h.Import(path); done.Records.Raw > 0 {
		t.Errorf("%d records that are not understood: %v", done.Records.Raw, done.Errors)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Import(filepath.Dir(path))
	if diff := cmp.Diff(calm.Told(), h.Told()); diff != "" {
		t.Errorf("-calm +cut\n%.1500s", diff)
	}
}
