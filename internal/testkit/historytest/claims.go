package historytest

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// PiecesGiveTheWhole claims that a file that is read while it grows, cut anywhere, gives what it
// gives when it is read whole: what is not finished waits. To growing, nothing is quiet; to
// quiet, everything is.
func PiecesGiveTheWhole(t *testing.T, file string, growing, quiet history.Source) {
	t.Helper()
	whole, pieces := New(t, quiet), New(t, growing)
	all := whole.Import(whole.Copy(file))
	text := Read(t, file)
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	var sum history.Records
	const cuts = 7
	for i := range cuts {
		end := len(text) * (i + 1) / cuts
		testkit.Check(t, os.WriteFile(path, []byte(text[:end]), 0o600))
		if i == cuts-1 {
			pieces.Source = quiet
		}
		done := pieces.Import(path).Records
		counted := sum.Read - sum.Waiting
		sum.Add(done)
		if lines := countLines(text[:end]); all.Records.Read == countLines(text) && counted+done.Read != lines {
			t.Errorf("%d lines were counted before, now %+v: the file has %d", counted, done, lines)
		}
	}
	if diff := cmp.Diff(whole.Told(), pieces.Told()); diff != "" {
		t.Errorf("-whole +pieces\n%.3000s", diff)
	}
	if sum.Read-sum.Waiting != all.Records.Read-all.Records.Waiting || sum.Imported != all.Records.Imported ||
		sum.Raw != all.Records.Raw {
		t.Errorf("whole %+v\npieces %+v", all.Records, sum)
	}
}

// countLines counts the lines of a text, with the last one if it is not finished.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// MarkedFile claims that a file that begins with a byte order mark says what it says without:
// that reading it again changes nothing, and that it can grow by the last of its lines.
func MarkedFile(t *testing.T, source history.Source, name string, lines ...string) {
	t.Helper()
	plain, marked := New(t, source), New(t, source)
	path := plain.Write(name, lines...)
	all := plain.Import(path).Records
	begun := strings.Join(lines[:len(lines)-1], "\n") + "\n"
	path = filepath.Join(t.TempDir(), name)
	testkit.Check(t, os.WriteFile(path, []byte("\ufeff"+begun), 0o600))
	sum := marked.Import(path).Records
	rows := marked.Rows()
	if done := marked.Import(path); done.Sessions != (history.Sessions{Unchanged: 1}) || marked.Rows() != rows {
		t.Errorf("a second import gave %+v", done)
	}
	marked.Append(path, lines[len(lines)-1]+"\n")
	done := marked.Import(path)
	if done.Sessions != (history.Sessions{Updated: 1}) || len(done.Errors) > 0 {
		t.Errorf("what it grew by gave %+v", done)
	}
	sum.Add(done.Records)
	if sum.Imported != all.Imported || sum.Raw != all.Raw || !maps.Equal(sum.Skipped, all.Skipped) {
		t.Errorf("plain %+v\nmarked %+v", all, sum)
	}
	if diff := cmp.Diff(plain.Told(), marked.Told()); diff != "" {
		t.Errorf("-plain +marked\n%.3000s", diff)
	}
	rows = marked.Rows()
	moved := marked.Write(name)
	marked.Append(moved, Read(t, path)) // read from its beginning
	if marked.Import(moved); marked.Rows() != rows {
		t.Error("reading it whole once more changed something")
	}
}

// RewrittenFileBranches claims that a file that was written anew is recognised: what it says as
// before is not doubled, what it says otherwise is a branch, and reading it again changes
// nothing.
func (h *House) RewrittenFileBranches(file string) {
	h.Helper()
	lines := strings.Split(strings.TrimSuffix(Read(h, file), "\n"), "\n")
	path := h.Write(filepath.Base(file), lines...)
	h.Import(path)
	before := h.Told()
	middle := len(lines) / 2
	h.Rewrite(path, slices.Delete(lines, middle, middle+1)...) // one line is gone
	if done := h.Import(path); done.Sessions.New != 0 {
		h.Errorf("%+v", done)
	}
	after := h.Told()
	for name, said := range before {
		if !strings.HasPrefix(name, "session ") && after[name] != said {
			h.Errorf("%s was %q, is %q", name, said, after[name])
		}
	}
	rows := h.Rows()
	if done := h.Import(path); done.Records.Read != 0 || h.Rows() != rows {
		h.Errorf("a third import wrote: %+v", done)
	}
}

// stops is a store that fails after some batches, as if the program were killed.
type stops struct {
	*store.Store
	left int
}

func (s *stops) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	if s.left--; s.left < 0 {
		return store.ImportResult{}, errors.New("killed")
	}
	return s.Store.Import(ctx, b)
}

// ImportKilled begins an import that ends after some batches, as if the program were killed. It reports whether there
// was a batch more.
func (h *House) ImportKilled(after int, paths ...string) bool {
	h.Helper()
	importer := history.Importer{Store: &stops{h.Store, after}}
	_, err := importer.Run(h.Context(), h.Source, paths)
	return err != nil
}

// KilledImportGoesOn claims that an import that was killed after each of some numbers of batches
// goes on where it was, and stores in the end what one that was not killed stores.
func KilledImportGoesOn(t *testing.T, source history.Source, path string, batches ...int) {
	t.Helper()
	whole := New(t, source)
	all := whole.Import(path)
	for _, killed := range batches {
		h := New(t, source)
		if !h.ImportKilled(killed, path) {
			t.Fatal("it was not killed")
		}
		done := h.Import(path)
		if diff := cmp.Diff(whole.Told(), h.Told()); diff != "" {
			t.Errorf("killed after %d batches: -whole +again\n%.2000s", killed, diff)
		}
		if done.Records.Read != all.Records.Read {
			t.Errorf("%+v", done)
		}
	}
}

// FuzzRead claims that, whatever a file holds, each of sources ends reading it, the records add
// up, and every message can be stored.
func FuzzRead(f *testing.F, sources ...history.Source) {
	f.Helper()
	FuzzFile(f, "f.jsonl", sources...)
}

// FuzzFile is FuzzRead with a file of a name that means something.
func FuzzFile(f *testing.F, name string, sources ...history.Source) {
	f.Helper()
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, data, 0o600))
		for _, source := range sources {
			check := NewChecker(t)
			_, err := source.Read(t.Context(), history.Found{Path: path}, nil, Nobody{}, check.Batch)
			if err != nil && session.CodeOf(err) != session.Invalid {
				t.Errorf("%v", err)
			}
		}
	})
}

// FuzzCell is FuzzRead with a database that a script makes, whose name means something. update puts what is tried into
// it, as its argument.
func FuzzCell(f *testing.F, name, script, update string, source history.Source) {
	f.Helper()
	path := filepath.Join(f.TempDir(), name)
	change(f, path, []string{script})
	f.Fuzz(func(t *testing.T, data []byte) {
		owner := testkit.Must(sql.Open("sqlite", path))(t)
		_, err := owner.ExecContext(t.Context(), update, data)
		testkit.Check(t, errors.Join(err, owner.Close()))
		check := NewChecker(t)
		_, err = source.Read(t.Context(), history.Found{Path: path}, nil, Nobody{}, check.Batch)
		if err != nil && session.CodeOf(err) != session.Invalid {
			t.Errorf("%v", err)
		}
	})
}

// DatabaseIsLeftAlone fails where reading a database changes it or its folder: at rest, beside
// a program that writes, and where nothing may be written. made gives a house and a
// database of one message that says "one"; second writes another, "two", and third one that is never committed.
func DatabaseIsLeftAlone(t *testing.T, made func(t *testing.T) (*House, string), id, second, third string) {
	t.Helper()
	for _, test := range []struct {
		name string
		live bool
		mode os.FileMode
	}{
		{"at rest", false, 0o700},
		{"while it writes", true, 0o700},
		{"in a folder that is read-only", false, 0o500},
		{"live, in a folder that is read-only", true, 0o500},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, db := made(t)
			want := "one"
			if test.live {
				want = "one two"
				owner := testkit.Must(sql.Open("sqlite", db))(t)
				defer owner.Close()
				owner.SetMaxOpenConns(1)
				for _, statement := range []string{`PRAGMA journal_mode = WAL`, second, `BEGIN IMMEDIATE`, third} {
					testkit.Must(owner.ExecContext(t.Context(), statement))(t)
				}
			}
			folder := filepath.Dir(db)
			testkit.Check(t, os.Chmod(folder, test.mode))
			defer os.Chmod(folder, 0o700) //nolint:errcheck // for the clean-up
			before := Listing(t, folder)
			done := h.Import(db)
			if got := Listing(t, folder); got != before || len(done.Errors) != 0 {
				t.Errorf("%v\nbefore %s\nafter  %s", done.Errors, before, got)
			}
			if got := Texts(h.Entries(h.Session(id).ID)); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}

// BenchmarkRead measures how fast a file is read, without the store.
func BenchmarkRead(b *testing.B, source history.Source, path string) {
	b.Helper()
	info := testkit.Must(os.Stat(path))(b)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(source.Read(b.Context(), history.Found{Path: path}, nil, Nobody{}, func(history.Batch) error {
			return nil
		}))(b)
	}
}

// shortens cuts a file off, once, when the first of what it says was given away, and writes it
// whole again before it is read for the second time: as a program does that writes its file anew.
type shortens struct {
	history.Source
	path  string
	whole []byte
	size  int64
	cut   bool
}

func (s *shortens) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known,
	emit func(history.Batch) error,
) ([]history.Problem, error) {
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
	testkit.Check(t, os.WriteFile(path, whole, 0o600))
	h.Import(filepath.Dir(path))
	if diff := cmp.Diff(calm.Told(), h.Told()); diff != "" {
		t.Errorf("-calm +cut\n%.1500s", diff)
	}
}
