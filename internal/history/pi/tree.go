package pi

import (
	"slices"

	"sessiond/internal/session"
)

// link finds the parent of every entry. A name stands for the newest entry before that has
// it, else for a later one. Cycles are cut at their first entry in file order.
func (s *scanned) link() {
	before := int32(-1)
	for i := range s.next() {
		n := s.nodes.At(i)
		switch {
		case n.kind.aside():
			n.parent = before
			continue // and nothing hangs on it
		case s.version == 1, n.id == 0 && n.link == 0:
			n.parent = before // a list
		case n.link == 0:
		case n.link == n.id && s.lookup(n.link, i) < 0:
			n.cut = cutSelf
		default:
			if n.parent = s.resolve(n.link, i); n.parent < 0 {
				n.cut = cutOrphan
			} else if n.known && !s.nodes.At(n.parent).known {
				n.parent, n.cut = -1, cutOrphan // it was an orphan when it was imported
			}
			s.early = s.early || n.parent > i
		}
		before = i
	}
	if s.early {
		s.cutCycles()
	}
}

// lookup gives the newest entry before i with an id, -1 if there is none.
func (s *scanned) lookup(id uint64, i int32) int32 {
	newest, ok := s.names.Get(id)
	if !ok || newest < i {
		return index(newest, ok)
	}
	older := s.older[id]
	if k, _ := slices.BinarySearch(older, i); k > 0 {
		return older[k-1]
	}
	return -1
}

// resolve is lookup that also finds a later entry, but not i itself.
func (s *scanned) resolve(id uint64, i int32) int32 {
	if found := s.lookup(id, i); found >= 0 {
		return found
	}
	if newest, ok := s.names.Get(id); ok && newest != i {
		return newest
	}
	return -1
}

func index(i int32, ok bool) int32 {
	if !ok {
		return -1
	}
	return i
}

// cutCycles makes roots of the first entries of cycles. Every entry is walked over once.
func (s *scanned) cutCycles() {
	walk := make([]int32, s.next()) // 0: not yet; else the walk that came by, from 1
	for i := range s.next() {
		at, mine := i, i+1
		for at >= 0 && walk[at] == 0 {
			walk[at] = mine
			at = s.nodes.At(at).parent
		}
		if at < 0 || walk[at] != mine {
			continue
		}
		first := at
		for next := s.nodes.At(at).parent; next != at; next = s.nodes.At(next).parent {
			first = min(first, next)
		}
		n := s.nodes.At(first)
		n.parent, n.cut = -1, cutCycle
	}
}

// order yields the entries that are new such that a parent comes before its children: the
// order of the file, but for a damaged file that names a parent before it comes.
func (s *scanned) order(yield func(i int32) bool) {
	var chain []int32
	var listed []bool
	if s.early {
		listed = make([]bool, s.next())
	}
	for i := range s.next() {
		if !s.early {
			if !s.nodes.At(i).known && !yield(i) {
				return
			}
			continue
		}
		chain = chain[:0]
		for at := i; at >= 0 && !listed[at] && !s.nodes.At(at).known; at = s.nodes.At(at).parent {
			listed[at] = true
			chain = append(chain, at)
		}
		for _, at := range slices.Backward(chain) {
			if !yield(at) {
				return
			}
		}
	}
}

// sharedIn gives the session that an entry lies in if that is not the file's own, else "".
func (s *scanned) sharedIn(i int32) session.ID {
	if i < 0 {
		return ""
	}
	if in := s.nodes.At(i).in; in > 0 {
		return s.origins[in-1]
	}
	return ""
}
