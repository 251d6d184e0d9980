package history

import (
	"hash/maphash"
	"math/bits"
)

// Names finds the entries of a transcript by their names, the newest of each, in about eleven
// bytes for a name. It holds sums of the names; two names with one sum are taken for equal,
// which by chance does not happen, and by design cannot, since the seed is a new one each time.
type Names struct {
	seed   maphash.Seed
	sumOf  func(entry int32) uint64
	few    map[uint64]int32
	shards []shard
	recent []named
}

// named is the name of the entry before next; of none if that is 0.
type named struct {
	next int32
	name string
}

// NewNames makes an empty one. sumOf gives the sum of an entry's name again.
func NewNames(sumOf func(entry int32) uint64) *Names {
	return &Names{seed: maphash.MakeSeed(), sumOf: sumOf, few: map[uint64]int32{}}
}

// shard is a hash table with linear probing. A slot is the lower half of a sum and, one more,
// the entry; 0 is empty.
type shard struct {
	slots []uint64
	n     int
}

const (
	fewNames   = 4096
	shardBits  = 10
	shardLeast = 32

	// recentNames are at hand without reading their lines again: those of the parents of nearly
	// all entries.
	recentNames = 1 << 10
)

// Remember keeps the name of an entry at hand for a while; false: it is not the one that the
// entry had.
func (s *Names) Remember(entry int32, name string) bool {
	if s.recent == nil {
		s.recent = make([]named, recentNames)
	}
	s.recent[entry%recentNames] = named{entry + 1, name}
	return s.Sum(name) == s.sumOf(entry)
}

// Recent gives the name of an entry that was remembered lately.
func (s *Names) Recent(entry int32) (string, bool) {
	if s.recent == nil {
		return "", false
	}
	at := &s.recent[entry%recentNames]
	return at.name, at.next == entry+1
}

// Sum gives the sum of a name; 0 for "".
func (s *Names) Sum(name string) uint64 {
	if name == "" {
		return 0
	}
	return max(maphash.String(s.seed, name), 1)
}

// Get gives the newest entry with a sum.
func (s *Names) Get(sum uint64) (entry int32, ok bool) {
	if s.shards == nil {
		entry, ok = s.few[sum]
		return entry, ok
	}
	sh := &s.shards[sum>>(64-shardBits)]
	if len(sh.slots) == 0 {
		return 0, false
	}
	at, ok := s.find(sh, sum)
	return int32(uint32(sh.slots[at]) - 1), ok
}

// find gives the slot of a sum, or the empty one where it belongs.
func (s *Names) find(sh *shard, sum uint64) (at int, ok bool) {
	for at = sh.first(uint32(sum)); sh.slots[at] != 0; at = sh.after(at) {
		if slot := sh.slots[at]; uint32(slot>>32) == uint32(sum) && s.sumOf(int32(uint32(slot)-1)) == sum {
			return at, true
		}
	}
	return at, false
}

// Set makes an entry the newest of its name.
func (s *Names) Set(sum uint64, entry int32) {
	if s.shards == nil {
		s.few[sum] = entry
		if len(s.few) < fewNames {
			return
		}
		all := s.few
		s.few, s.shards = nil, make([]shard, 1<<shardBits)
		for sum, entry := range all {
			s.put(sum, entry)
		}
		return
	}
	s.put(sum, entry)
}

func (s *Names) put(sum uint64, entry int32) {
	sh := &s.shards[sum>>(64-shardBits)]
	if sh.n*8 >= len(sh.slots)*7 {
		sh.grow()
	}
	at, ok := s.find(sh, sum)
	sh.slots[at] = uint64(uint32(sum))<<32 | uint64(uint32(entry)+1)
	if !ok {
		sh.n++
	}
}

func (sh *shard) first(low uint32) int {
	at, _ := bits.Mul32(low, uint32(len(sh.slots)))
	return int(at)
}

func (sh *shard) after(at int) int {
	if at++; at < len(sh.slots) {
		return at
	}
	return 0
}

func (sh *shard) grow() {
	old := sh.slots
	sh.slots = make([]uint64, max(shardLeast, len(old)+len(old)/4))
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := sh.first(uint32(slot >> 32))
		for sh.slots[at] != 0 {
			at = sh.after(at)
		}
		sh.slots[at] = slot
	}
}
