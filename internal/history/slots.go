package history

import (
	"math/bits"
	"os"
)

// shard is a hash table with linear probing. A slot is the lower half of a sum and, one more,
// the entry; 0 is empty.
type shard struct {
	slots   []uint64 // nil: in the file
	at      int64    // there
	size, n int
}

// slotFile holds the slots of all shards. One that grew lies behind the others; where it was
// before is left.
type slotFile struct {
	*os.File
	end    int64
	window [16]uint64 // what is looked at
}

const slotBytes = 8

func (sh *shard) first(low uint32) int {
	at, _ := bits.Mul32(low, uint32(sh.size))
	return int(at)
}

// slots gives some of a shard, from a place on: good until some are asked for again.
func (s *Names) slots(sh *shard, from int) []uint64 {
	if s.file == nil {
		return sh.slots[from:]
	}
	some := s.file.window[:min(len(s.file.window), sh.size-from)]
	s.file.read(some, sh.at+int64(from)*slotBytes)
	return some
}

func (f *slotFile) read(slots []uint64, at int64) {
	if _, err := f.ReadAt(bytesOf(slots), at); err != nil {
		panic(tableError{err})
	}
}

func (s *Names) set(sh *shard, at int, slot uint64) {
	if s.file == nil {
		sh.slots[at] = slot
		return
	}
	s.file.window[0] = slot
	if _, err := s.file.WriteAt(bytesOf(s.file.window[:1]), sh.at+int64(at)*slotBytes); err != nil {
		panic(tableError{err})
	}
}

// spill puts the shards into a file.
func (s *Names) spill() {
	file, err := TempFile()
	if err != nil {
		s.full = true
		return
	}
	f := &slotFile{File: file}
	places := make([]int64, len(s.shards))
	for i := range s.shards {
		if places[i], err = f.put(s.shards[i].slots); err != nil {
			s.full = true
			_ = f.Close() // it is not needed
			return
		}
	}
	for i := range s.shards {
		s.shards[i].slots, s.shards[i].at = nil, places[i]
	}
	s.file = f
}

// put writes slots behind everything else.
func (f *slotFile) put(slots []uint64) (at int64, err error) {
	at = f.end
	if len(slots) > 0 {
		_, err = f.WriteAt(bytesOf(slots), at)
	}
	f.end += int64(len(slots)) * slotBytes
	return at, err
}

// crowded tells whether a shard has too few empty slots. In a file it costs more to look at many.
func (s *Names) crowded(sh *shard) bool {
	if s.file == nil {
		return sh.n*8 >= sh.size*7
	}
	return sh.n*4 >= sh.size*3
}

// grow gives a shard more slots.
func (s *Names) grow(sh *shard) {
	old, size := sh.slots, max(shardLeast, sh.size+sh.size/4)
	if s.file != nil {
		size = max(shardLeast, sh.size+sh.size/2)
		if old = make([]uint64, sh.size); sh.size > 0 {
			s.file.read(old, sh.at)
		}
	}
	sh.size = size
	slots := make([]uint64, size)
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := sh.first(uint32(slot >> 32))
		for slots[at] != 0 {
			if at++; at == size {
				at = 0
			}
		}
		slots[at] = slot
	}
	if s.file == nil {
		sh.slots = slots
		return
	}
	at, err := s.file.put(slots)
	if err != nil {
		panic(tableError{err})
	}
	sh.at = at
}
