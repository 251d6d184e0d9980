package history

import (
	"errors"
	"math/bits"
	"os"
	"unsafe"
)

// Table is a list of small values without pointers, as long as a transcript has entries. What
// was used last is in memory; of a long one the rest lies in a temporary file without a name.
// The zero value is empty and works.
type Table[T any] struct {
	pages    []page[T]
	n        int
	shift    uint8   // a page has so many values, as a power of two
	resident []int32 // pages in memory
	asked    uint64  // how often for a value
	file     *os.File
	full     bool // the file takes no more: what is left stays in memory
}

type page[T any] struct {
	items []T    // nil: in the file
	asked uint64 // when a value of it was last asked for
}

const (
	pageBytes     = 64 << 10 // and less
	residentPages = 48
)

// pageItems is how many values a page has.
func (t *Table[T]) pageItems() int { return 1 << t.shift }

// Len is how many values there are.
func (t *Table[T]) Len() int { return t.n }

// Append adds a value at the end.
func (t *Table[T]) Append(v T) {
	if t.n == 0 {
		t.shift = uint8(bits.Len(uint(pageBytes/unsafe.Sizeof(v))) - 1)
	}
	if t.n&(t.pageItems()-1) == 0 {
		t.makeRoom()
		t.resident = append(t.resident, int32(len(t.pages)))
		t.pages = append(t.pages, page[T]{})
	}
	last := t.page(len(t.pages) - 1)
	last.items = append(last.items, v)
	t.n++
}

// At gives a value's place, to be read and written before a value is appended, or more than
// forty others are asked for: a page stays for longer than that.
func (t *Table[T]) At(i int32) *T {
	p := t.page(int(i) >> t.shift)
	return &p.items[int(i)&(t.pageItems()-1)]
}

func (t *Table[T]) page(k int) *page[T] {
	p := &t.pages[k]
	if p.items == nil && t.n > k<<t.shift {
		t.makeRoom()
		t.load(k)
		t.resident = append(t.resident, int32(k))
	}
	t.asked++
	p.asked = t.asked
	return p
}

// makeRoom puts the page away that was not asked for the longest. The last one may grow, and stays.
func (t *Table[T]) makeRoom() {
	if len(t.resident) < residentPages || t.full {
		return
	}
	oldest := -1
	for i, k := range t.resident {
		if int(k) != len(t.pages)-1 && (oldest < 0 || t.pages[k].asked < t.pages[t.resident[oldest]].asked) {
			oldest = i
		}
	}
	if t.store(int(t.resident[oldest])) {
		t.resident[oldest] = t.resident[len(t.resident)-1]
		t.resident = t.resident[:len(t.resident)-1]
	}
}

func (t *Table[T]) store(k int) bool {
	err := t.open()
	if err == nil {
		_, err = t.file.WriteAt(bytesOf(t.pages[k].items), t.place(k))
	}
	if err != nil {
		t.full = true
		return false
	}
	t.pages[k].items = nil
	return true
}

func (t *Table[T]) open() (err error) {
	if t.file == nil {
		t.file, err = TempFile()
	}
	return err
}

func (t *Table[T]) load(k int) {
	items := make([]T, min(t.pageItems(), t.n-k<<t.shift))
	if _, err := t.file.ReadAt(bytesOf(items), t.place(k)); err != nil {
		panic(tableError{err})
	}
	t.pages[k].items = items
}

func (t *Table[T]) place(k int) int64 {
	var v T
	return int64(k) << t.shift * int64(unsafe.Sizeof(v))
}

// bytesOf gives values as they lie in memory, which is how they are put away and taken back.
func bytesOf[T any](items []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&items[0])), len(items)*int(unsafe.Sizeof(items[0])))
}

// Close gives the file back. The table is empty then.
func (t *Table[T]) Close() {
	if t.file != nil {
		_ = t.file.Close() // it has no name, and nobody needs what it holds
	}
	*t = Table[T]{}
}

// tableError is why a table's file could not be read, which no caller could do anything about
// at the place where it happens.
type tableError struct{ error }

// Guard makes an error of a table whose file could not be read. It is deferred.
func Guard(err *error) {
	switch p := recover().(type) {
	case nil:
	case tableError:
		*err = errors.Join(*err, p.error)
	default:
		panic(p)
	}
}

// TempFile makes a file that has no name and is gone when it is closed.
func TempFile() (*os.File, error) {
	file, err := os.CreateTemp("", tempNames) // 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
