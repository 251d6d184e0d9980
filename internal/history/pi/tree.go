package pi

import "sessiond/internal/session"

// link finds the parent of every entry. A name stands for the newest entry before that has
// it, else for a later one. Cycles are cut at their first entry in file order.
func (s *scanned) link() {
	before := int32(-1)
	for i := range s.nodes {
		n := &s.nodes[i]
		switch {
		case n.kind.aside():
			n.parent = before
			continue // and nothing hangs on it
		case s.version == 1, n.id == "" && n.link == "":
			n.parent = before // a list
		case n.link == "":
		case n.link == n.id && s.lookup(n.link, int32(i)) < 0:
			n.cut = cutSelf
		default:
			if n.parent = s.resolve(n.link, int32(i)); n.parent < 0 {
				n.cut = cutOrphan
			} else if n.known && !s.nodes[n.parent].known {
				n.parent, n.cut = -1, cutOrphan // it was an orphan when it was imported
			}
		}
		before = int32(i)
	}
	s.cutCycles()
}

// lookup gives the newest entry before i with an id, -1 if there is none.
func (s *scanned) lookup(id string, i int32) int32 {
	newest, ok := s.byID[id]
	if !ok || newest < i {
		return index(newest, ok)
	}
	older := s.older[id]
	for k := len(older) - 1; k >= 0; k-- {
		if older[k] < i {
			return older[k]
		}
	}
	return -1
}

// resolve is lookup that also finds a later entry, but not i itself.
func (s *scanned) resolve(id string, i int32) int32 {
	if found := s.lookup(id, i); found >= 0 {
		return found
	}
	if newest, ok := s.byID[id]; ok && newest != i {
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
	walk := make([]int32, len(s.nodes)) // 0: not yet; else the walk that came by, from 1
	for i := range s.nodes {
		at, mine := int32(i), int32(i)+1
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

// order lists the entries that are new such that a parent comes before its children: the
// order of the file, but for a damaged file that names a parent before it comes.
func (s *scanned) order() []int32 {
	var order, chain []int32
	listed := make([]bool, len(s.nodes))
	for i := range s.nodes {
		chain = chain[:0]
		for at := int32(i); at >= 0 && !listed[at] && !s.nodes[at].known; at = s.nodes[at].parent {
			listed[at] = true
			chain = append(chain, at)
		}
		for k := len(chain) - 1; k >= 0; k-- {
			order = append(order, chain[k])
		}
	}
	return order
}

// keyOf names an entry, "" for none.
func (s *scanned) keyOf(i int32) string {
	if i < 0 {
		return ""
	}
	return s.nodes[i].key
}

// sharedIn gives the session that an entry lies in if that is not the file's own, else "".
func (s *scanned) sharedIn(i int32) session.ID {
	if i < 0 || s.nodes[i].in == 0 {
		return ""
	}
	return s.origins[s.nodes[i].in-1]
}
