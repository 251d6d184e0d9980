package history

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"slices"

	"sessiond/internal/session"
)

// This file keeps words of readers that are not moved to the Intake yet. It goes with the last
// of them.

// Cuts once shortened long lines. Now it passes everything on as it is.
type Cuts struct{}

// CutRule said what Cuts could shorten.
type CutRule struct {
	Fields []string
	Whole  func(line []byte) bool
	Stay   []string
	Skip   bool
	Limits CutLimits
}

// CutLimits are sizes in bytes.
type CutLimits struct{ Line, String, Keep int }

// NewCuts makes one.
func NewCuts(io.ReaderAt, Found, CutRule) *Cuts { return nil }

// Len is 0.
func (c *Cuts) Len() int { return 0 }

// Size gives the size of raw in bytes.
func (c *Cuts) Size(raw []byte) int { return len(raw) }

// TextSize gives the size of a text in bytes.
func TextSize(text string) int { return len(text) }

// Text gives the text.
func (c *Cuts) Text(text string) string { return text }

// Whole gives b.
func (c *Cuts) Whole(b []byte) ([]byte, error) { return b, nil }

// Write writes b to a hash.
func (c *Cuts) Write(w io.Writer, b []byte) { _, _ = w.Write(b) }

// Fingerprint is the function.
func (c *Cuts) Fingerprint(o Object, drop ...string) string { return Fingerprint(o, drop...) }

// ReadAgain reads a line that was read before, into buffer if it has room.
func (c *Cuts) ReadAgain(file io.ReaderAt, buffer []byte, at, size int64) ([]byte, error) {
	if int64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	return buffer[:size], ReadAgain(file, buffer[:size], at)
}

// Says is the function.
func (c *Cuts) Says(seed maphash.Seed, m *session.Message) uint64 { return Says(seed, m) }

// Table is a list.
type Table[T any] struct{ rows []T }

// Len is its length.
func (t *Table[T]) Len() int { return len(t.rows) }

// Append adds a value.
func (t *Table[T]) Append(v T) { t.rows = append(t.rows, v) }

// At gives a value's place, until one is appended.
func (t *Table[T]) At(i int32) *T { return &t.rows[i] }

// Close empties it.
func (t *Table[T]) Close() { t.rows = nil }

// Sort sorts it.
func (t *Table[T]) Sort(compare func(a, b *T) int) {
	slices.SortStableFunc(t.rows, func(a, b T) int { return compare(&a, &b) })
}

// Guard does nothing.
func Guard(*error) {}

// Names finds entries by name, the newest of each. Every name has a number.
type Names struct {
	numbers map[string]uint64
	newest  map[uint64]int32
	names   map[int32]string
}

// NewNames makes an empty one.
func NewNames(func(entry int32) uint64) *Names {
	return &Names{numbers: map[string]uint64{}, newest: map[uint64]int32{}, names: map[int32]string{}}
}

// Sum gives the number of a name; 0 for "".
func (s *Names) Sum(name string) uint64 {
	if name == "" {
		return 0
	}
	n, ok := s.numbers[name]
	if !ok {
		n = uint64(len(s.numbers) + 1)
		s.numbers[name] = n
	}
	return n
}

// Get gives the newest entry with a number.
func (s *Names) Get(sum uint64) (int32, bool) {
	entry, ok := s.newest[sum]
	return entry, ok
}

// Set makes an entry the newest of its name.
func (s *Names) Set(sum uint64, entry int32) { s.newest[sum] = entry }

// Remember keeps an entry's name.
func (s *Names) Remember(entry int32, name string) bool {
	s.names[entry] = name
	return true
}

// Recent gives a name that was kept.
func (s *Names) Recent(entry int32) (string, bool) {
	name, ok := s.names[entry]
	return name, ok
}

// Close empties it.
func (s *Names) Close() { *s = Names{} }

// Texts is a list of texts.
type Texts struct{ texts []string }

// TextAt is the place of a text; 0 is that of "".
type TextAt int64

// Put adds a text.
func (t *Texts) Put(s string) TextAt {
	if s == "" {
		return 0
	}
	t.texts = append(t.texts, s)
	return TextAt(len(t.texts))
}

// Get gives it back.
func (t *Texts) Get(at TextAt) string {
	if at == 0 {
		return ""
	}
	return t.texts[at-1]
}

// Close empties it.
func (t *Texts) Close() { t.texts = nil }

// TempFile makes a file that has no name and is gone when it is closed.
func TempFile() (*os.File, error) {
	file, err := os.CreateTemp("", tempNames) // 0600
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// Cut does nothing.
func (l *Lines) Cut(*Cuts) *Lines { return l }

// Write writes a line to a hash.
func (l *Lines) Write(w io.Writer, line []byte) error {
	_, err := w.Write(line)
	return err
}

// errChanged is within the error of a source that changed while it was read.
var errChanged = errors.New("the file changed while it was read")

// errMangled is never met.
var errMangled = errors.New("a long line was not read as it should be")

func (c *Cuts) mend(*Batch) (bool, error) { return false, nil }

// LongValue is a size that no value of a database has.
const LongValue = 1 << 40

var errNoPieces = errors.New("values are read whole")

// LongValues holds nothing.
type LongValues struct{}

// ReadAt implements io.ReaderAt.
func (l *LongValues) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// Put is not called.
func (l *LongValues) Put(context.Context, *SQLite, string, string, int64, int64, string, string) (at, n int64, err error) {
	return 0, 0, errNoPieces
}

// Close does nothing.
func (l *LongValues) Close() error { return nil }

// CopyValue is not called.
func (s *SQLite) CopyValue(context.Context, string, string, int64, int64, io.Writer) error {
	return errNoPieces
}

// GivesPieces is false.
func (s *SQLite) GivesPieces(context.Context, string) (bool, error) { return false, nil }
