package openclaw

import (
	"slices"

	"sessiond/internal/history"
)

// How entries hang together: OpenClaw walks a transcript in its order with a leaf, where the
// conversation stands, and a cursor, what was written last. Source: config/sessions/
// transcript-tree.ts of OpenClaw.

// hang finds the parent of an entry and moves leaf and cursor.
func (s *scanner) hang(n *node, o history.Object, kindOf string) {
	own := o.Get("parentId") != nil
	n.link = s.names.Sum(o.String("parentId"))
	moves := n.kind != entryUnknown
	if string(o.Get("appendMode")) == `"side"` {
		moves = false
	}
	at := s.next()
	switch {
	case kindOf == lineLeaf && n.id != 0 && own && s.control(n, o):
		s.add(*n)
		return
	case own || n.link != 0:
		n.parent = s.placeOf(n, moves)
	default: // version 1, and lines that the gateway adds
		n.parent = s.leaf
	}
	if n.parent < 0 && moves && s.front >= 0 {
		n.parent = s.front
	}
	if n.parent >= 0 {
		n.reset = s.nodes.At(n.parent).reset
	}
	if n.kind == entryReset {
		n.reset, s.reset = at, at
	}
	s.add(*n)
	s.cursor = at
	if moves {
		s.leaf = at
	}
	if s.front == unseen && moves {
		s.front = -1
		if n.kind.boundary() {
			s.front = at
		}
	}
}

// unseen is the front of a transcript of which no entry was read yet. The front of one that
// was cut off is the record of what was cut: it begins the transcript, and what is left may
// not name it. Then it stands before every entry that names none.
const unseen = -2

// placeOf gives the parent of an entry that names one. moves tells that the entry is part of
// the conversation and not beside it.
func (s *scanner) placeOf(n *node, moves bool) int32 {
	parent, ok := s.names.Get(n.link)
	if !ok || n.link == 0 {
		parent = -1
	}
	if parent >= 0 && s.nodes.At(parent).kind == entryLeaf {
		parent = s.nodes.At(parent).target
	}
	n.stale = n.link != 0 && !ok
	switch {
	case !moves || s.leaf < 0:
	case n.stale, parent == s.cursor && s.cursor != s.leaf, s.reset >= 0 && !s.after(parent, s.reset):
		return s.leaf
	}
	return parent
}

// after tells whether an entry's path holds a reset.
func (s *scanner) after(at, reset int32) bool { return at >= 0 && s.nodes.At(at).reset == reset }

// control takes a leaf line, which moves leaf and cursor; false if it is not valid: then it
// is a line like any unknown one.
func (s *scanner) control(n *node, o history.Object) bool {
	target, ok := s.pointed(o.Get("targetId"))
	if !ok {
		return false
	}
	appendTo := target
	if raw := o.Get("appendParentId"); raw != nil {
		if appendTo, ok = s.pointed(raw); !ok {
			return false
		}
	}
	n.kind, n.target, n.parent = entryLeaf, target, target
	if target >= 0 {
		n.reset = s.nodes.At(target).reset
	}
	if s.reset < 0 || s.after(target, s.reset) {
		s.leaf = target
	}
	s.cursor = appendTo
	return true
}

// pointed finds the entry that a control names; null is none.
func (s *scanner) pointed(raw []byte) (int32, bool) {
	if string(raw) == "null" {
		return -1, true
	}
	id, _ := history.Text(raw)
	at, ok := s.names.Get(s.names.Sum(id))
	if ok && s.nodes.At(at).kind == entryLeaf {
		at = s.nodes.At(at).target
	}
	return at, ok
}

func (s *scanner) add(n node) {
	i := s.next()
	s.nodes.Append(n)
	if n.id == 0 {
		return
	}
	if before, ok := s.names.Get(n.id); ok {
		s.earlier[n.id] = append(s.earlier[n.id], before)
	}
	s.names.Set(n.id, i)
}

// finish looks at the tree as a whole.
func (s *scanner) finish() {
	if s.version == 0 {
		s.version = 3
	}
	for at := s.leaf; at >= 0; {
		n := s.nodes.At(at)
		n.onPath, at = true, n.parent
	}
	for i := range s.next() {
		n := s.nodes.At(i)
		if n.stale && !n.known {
			if later, ok := s.names.Get(n.link); ok && later >= i && len(s.problems) < history.MaxProblems {
				s.problems = append(s.problems, history.Problem{
					Path: s.text.path, Line: int(n.line), Error: "its parent comes after it: the entries may form a cycle, which is cut here",
				})
			}
		}
	}
}

// lookup gives the newest entry before i with an id, -1 if there is none.
func (s *scanned) lookup(id string, i int32) int32 {
	sum := s.names.Sum(id)
	newest, ok := s.names.Get(sum)
	switch {
	case !ok:
		return -1
	case newest < i:
		return newest
	}
	earlier := s.earlier[sum]
	if k, _ := slices.BinarySearch(earlier, i); k > 0 {
		return earlier[k-1]
	}
	return -1
}
