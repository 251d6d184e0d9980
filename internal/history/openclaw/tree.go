package openclaw

import (
	"slices"

	"sessiond/internal/history"
)

// How entries hang together: OpenClaw walks a transcript in its order with a leaf, where the
// conversation stands, and a cursor, what was written last. Source: config/sessions/
// transcript-tree.ts of OpenClaw.

// hang finds the parent of an entry and moves leaf and cursor.
func (s *survey) hang(n node, o history.Object, kindOf string) {
	own := o.Get("parentId") != nil
	moves := n.kind != entryUnknown
	if string(o.Get("appendMode")) == `"side"` {
		moves = false
	}
	at := s.next()
	switch {
	case kindOf == lineLeaf && n.id != "" && own && s.control(&n, o):
		s.add(n)
		return
	case own || n.link != "":
		n.parent = s.placeOf(&n, moves)
	default: // version 1, and lines that the gateway adds
		n.parent = s.leaf
	}
	if n.parent < 0 && moves && s.front >= 0 {
		n.parent = s.front
	}
	if n.parent >= 0 {
		n.reset = s.nodes[n.parent].reset
	}
	if n.kind == entryReset {
		n.reset, s.reset = at, at
	}
	s.add(n)
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

// placeOf returns the parent of an entry that names one. moves tells that the entry is part of
// the conversation and not beside it.
func (s *survey) placeOf(n *node, moves bool) int32 {
	parent, ok := s.find(n.link)
	if parent >= 0 && s.nodes[parent].kind == entryLeaf {
		parent = s.nodes[parent].target
	}
	n.stale = n.link != "" && !ok
	switch {
	case !moves || s.leaf < 0:
	case n.stale, parent == s.cursor && s.cursor != s.leaf, s.reset >= 0 && !s.after(parent, s.reset):
		return s.leaf
	}
	return parent
}

// after reports whether an entry's path holds a reset.
func (s *survey) after(at, reset int32) bool { return at >= 0 && s.nodes[at].reset == reset }

// control takes a leaf line, which moves leaf and cursor; false if it is not valid: then it
// is a line like any unknown one.
func (s *survey) control(n *node, o history.Object) bool {
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
		n.reset = s.nodes[target].reset
	}
	if s.reset < 0 || s.after(target, s.reset) {
		s.leaf = target
	}
	s.cursor = appendTo
	return true
}

// pointed finds the entry that a control names; null is none.
func (s *survey) pointed(raw []byte) (int32, bool) {
	if string(raw) == "null" {
		return -1, true
	}
	id, _ := history.Text(raw)
	at, ok := s.find(id)
	if ok && s.nodes[at].kind == entryLeaf {
		at = s.nodes[at].target
	}
	return at, ok
}

func (s *survey) add(n node) {
	if n.id != "" {
		s.byID[n.id] = append(s.byID[n.id], s.next())
	}
	s.nodes = append(s.nodes, n)
}

// find returns the newest entry that has an id; -1 and false if there is none.
func (s *survey) find(id string) (int32, bool) {
	if all := s.byID[id]; len(all) > 0 && id != "" {
		return all[len(all)-1], true
	}
	return -1, false
}

// finish looks at the tree as a whole.
func (s *survey) finish() {
	if s.version == 0 {
		s.version = 3
	}
	for i := range s.next() {
		n := &s.nodes[i]
		if !n.stale || n.old {
			continue
		}
		if later, ok := s.find(n.link); ok && later >= i {
			s.in.Problem(n.line, "its parent comes after it: the entries may form a cycle, which is cut here")
		}
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
