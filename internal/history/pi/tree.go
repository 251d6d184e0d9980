package pi

import "slices"

// linkNodes finds the parent of every entry. A name stands for the newest entry before that has
// it, else for a later one. Cycles are cut at their first entry in file order.
func (s *survey) linkNodes() {
	before := int32(-1)
	for i := range s.next() {
		n := &s.nodes[i]
		switch {
		case n.kind.aside():
			n.parent = before
			continue // and nothing hangs on it
		case s.version == 1, n.id == "" && n.link == "":
			n.parent = before // a list
		case n.link == "":
		case n.link == n.id && s.lookup(n.link, i) < 0:
			n.cut = cutSelf
		default:
			if n.parent = s.resolve(n.link, i); n.parent < 0 {
				n.cut = cutOrphan
			} else if n.old && !s.nodes[n.parent].old {
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

// lookup returns the newest entry before i with an id, -1 if there is none.
func (s *survey) lookup(id string, i int32) int32 {
	all := s.byID[id]
	if k, _ := slices.BinarySearch(all, i); k > 0 {
		return all[k-1]
	}
	return -1
}

// resolve is lookup that also finds a later entry, but not i itself.
func (s *survey) resolve(id string, i int32) int32 {
	if found := s.lookup(id, i); found >= 0 {
		return found
	}
	if newest, ok := s.find(id); ok && newest != i {
		return newest
	}
	return -1
}

// cutCycles makes roots of the first entries of cycles. Every entry is walked over once.
func (s *survey) cutCycles() {
	walk := make([]int32, s.next()) // 0: not yet; else the walk that came by, from 1
	for i := range s.next() {
		at, mine := i, i+1
		for at >= 0 && walk[at] == 0 {
			walk[at] = mine
			at = s.nodes[at].parent
		}
		if at < 0 || walk[at] != mine {
			continue
		}
		first := at
		for next := s.nodes[at].parent; next != at; next = s.nodes[next].parent {
			first = min(first, next)
		}
		s.nodes[first].parent, s.nodes[first].cut = -1, cutCycle
	}
}

// order yields the entries such that a parent comes before its children: the order of the file,
// but for a damaged file that names a parent before it comes.
func (s *survey) order(yield func(i int32) bool) {
	listed := make([]bool, s.next())
	var chain []int32
	for i := range s.next() {
		chain = chain[:0]
		for at := i; at >= 0 && !listed[at]; at = s.nodes[at].parent {
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
