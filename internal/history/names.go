package history

import "hash/maphash"

// Names finds the entries of a transcript by their names, the newest of each, in about eleven
// bytes for a name; of very many in a temporary file without a name. It holds sums of the
// names; two names with one sum are taken for equal, which by chance does not happen, and by
// design cannot, since the seed is a new one each time.
type Names struct {
	seed   maphash.Seed
	sumOf  func(entry int32) uint64
	few    map[uint64]int32
	shards []shard
	n      int // in shards
	recent []named
	file   *slotFile // nil: the shards are in memory
	full   bool      // no file can be made: they stay there
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

const (
	fewNames   = 4096
	shardBits  = 10
	shardLeast = 32
	mostNames  = 1 << 18 // in memory

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
	_, entry, ok = s.find(&s.shards[sum>>(64-shardBits)], sum)
	return entry, ok
}

// find gives the slot of a sum and what is in it, or the empty one where it belongs.
func (s *Names) find(sh *shard, sum uint64) (at int, entry int32, ok bool) {
	if sh.size == 0 {
		return 0, 0, false
	}
	for at = sh.first(uint32(sum)); ; {
		for _, slot := range s.slots(sh, at) {
			if slot == 0 {
				return at, 0, false
			}
			if entry = int32(uint32(slot) - 1); uint32(slot>>32) == uint32(sum) && s.sumOf(entry) == sum {
				return at, entry, true
			}
			at++
		}
		if at == sh.size {
			at = 0
		}
	}
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
	if s.n == mostNames && s.file == nil && !s.full {
		s.spill()
	}
	sh := &s.shards[sum>>(64-shardBits)]
	if s.crowded(sh) {
		s.grow(sh)
	}
	at, _, ok := s.find(sh, sum)
	s.set(sh, at, uint64(uint32(sum))<<32|uint64(uint32(entry)+1))
	if !ok {
		sh.n++
		s.n++
	}
}

// Close gives a file back. Nothing more may be asked.
func (s *Names) Close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name, and nobody needs what it holds
		s.file = nil
	}
	s.few, s.shards = nil, nil
}
