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
		if err := os.WriteFile(path, []byte(text[:end]), 0o600); err != nil {
			t.Fatal(err)
		}
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
	if sum.Read-sum.Waiting != all.Records.Read-all.Records.Waiting || sum.Imported != all.Records.Imported || sum.Raw != all.Records.Raw {
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
	if err := os.WriteFile(path, []byte("\ufeff"+begun), 0o600); err != nil {
		t.Fatal(err)
	}
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

// KilledImportGoesOn claims that an import that was killed after each of some numbers of batches
// goes on where it was, and stores in the end what one that was not killed stores.
func KilledImportGoesOn(t *testing.T, source history.Source, path string, batches ...int) {
	t.Helper()
	whole := New(t, source)
	all := whole.Import(path)
	for _, killed := range batches {
		h := New(t, source)
		h.Importer.Store = &stops{h.Store, killed}
		if _, err := h.Importer.Run(t.Context(), h.Source, []string{path}); err == nil {
			t.Fatal("it was not killed")
		}
		h.Importer = history.Importer{Store: h.Store}
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
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			check := NewChecker(t)
			_, err := source.Read(t.Context(), history.Found{Path: path}, nil, Nobody{}, check.Batch)
			if err != nil && session.CodeOf(err) != session.Invalid {
				t.Errorf("%v", err)
			}
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
	}{{"at rest", false, 0o700}, {"while it writes", true, 0o700}, {"in a folder that is read-only", false, 0o500}, {"live, in a folder that is read-only", true, 0o500}} {
		t.Run(test.name, func(t *testing.T) {
			h, db := made(t)
			want := "one"
			if test.live {
				want = "one two"
				owner, err := sql.Open("sqlite", db)
				if err != nil {
					t.Fatal(err)
				}
				defer owner.Close()
				owner.SetMaxOpenConns(1)
				for _, statement := range []string{`PRAGMA journal_mode = WAL`, second, `BEGIN IMMEDIATE`, third} {
					if _, err := owner.ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			folder := filepath.Dir(db)
			if err := os.Chmod(folder, test.mode); err != nil {
				t.Fatal(err)
			}
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

// BenchmarkRead tells how fast a file is read, without the store.
func BenchmarkRead(b *testing.B, source history.Source, path string) {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := source.Read(b.Context(), history.Found{Path: path}, nil, Nobody{}, func(history.Batch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
