package history

import (
	"encoding/binary"
	"os"
)

// Texts keeps short strings, as many as a transcript has entries and more. What was put in last
// and what was asked for last is in memory, the rest in a temporary file without a name. The
// zero value is empty and works. Close it.
type Texts struct {
	last   []byte // behind what is in the file
	begins int64  // where last begins
	file   *os.File
	full   bool // the file takes no more: what is left stays in memory
	pieces [4]piece
	asked  int
}

// TextAt is the place of a string in Texts. 0 is that of "".
type TextAt int64

// piece is a part of the file that was read.
type piece struct {
	from  int64
	data  []byte
	asked int
}

const (
	lastBytes  = 64 << 10
	pieceBytes = 32 << 10
	pieceAlign = pieceBytes / 2 // whoever asks backwards finds some before it, too
)

// Put takes a string.
func (t *Texts) Put(s string) TextAt {
	if s == "" {
		return 0
	}
	if len(t.last) >= lastBytes && !t.full {
		t.store()
	}
	at := t.begins + int64(len(t.last))
	t.last = append(binary.AppendUvarint(t.last, uint64(len(s))), s...)
	return TextAt(at + 1)
}

func (t *Texts) store() {
	var err error
	if t.file == nil {
		t.file, err = TempFile()
	}
	if err == nil {
		_, err = t.file.WriteAt(t.last, t.begins)
	}
	if err != nil {
		t.full = true
		return
	}
	t.begins, t.last = t.begins+int64(len(t.last)), t.last[:0]
	if cap(t.last) > 2*lastBytes { // after a long one
		t.last = nil
	}
}

// Get gives a string back.
func (t *Texts) Get(at TextAt) string {
	if at == 0 {
		return ""
	}
	from := int64(at) - 1
	if from >= t.begins {
		held := t.last[from-t.begins:]
		n, head := binary.Uvarint(held)
		return string(held[head : head+int(n)])
	}
	held := t.read(from, binary.MaxVarintLen64)
	n, head := binary.Uvarint(held)
	if len(held) < head+int(n) {
		held = t.read(from, head+int(n))
	}
	return string(held[head : head+int(n)])
}

// read gives what the file holds from a place on, size bytes or more if there are as many.
func (t *Texts) read(from int64, size int) []byte {
	t.asked++
	oldest := &t.pieces[0]
	end := min(from+int64(size), t.begins)
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.from <= from && end <= p.from+int64(len(p.data)) {
			p.asked = t.asked
			return p.data[from-p.from:]
		}
		if p.asked < oldest.asked {
			oldest = p
		}
	}
	if size > pieceAlign {
		long := make([]byte, end-from)
		t.fill(long, from)
		return long
	}
	oldest.from, oldest.asked = from-from%pieceAlign, t.asked
	oldest.data = make([]byte, min(pieceBytes, t.begins-oldest.from))
	t.fill(oldest.data, oldest.from)
	return oldest.data[from-oldest.from:]
}

func (t *Texts) fill(data []byte, from int64) {
	if _, err := t.file.ReadAt(data, from); err != nil {
		panic(tableError{err})
	}
}

// Close gives the file back. There is nothing in it then.
func (t *Texts) Close() {
	if t.file != nil {
		_ = t.file.Close() // it has no name, and nobody needs what it holds
	}
	*t = Texts{}
}
