package openclaw

import (
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
)

// How entries hang together: OpenClaw walks a transcript in its order with a leaf, where the
// conversation stands, and a cursor, what was written last. Source: config/sessions/
// transcript-tree.ts of OpenClaw.

// hang finds the parent of an entry and moves leaf and cursor.
func (s *survey) hang(n pi.Node, o jsonx.Object, kindOf string) {
	own := o.Get("parentId") != nil
	moves := n.Kind != pi.Unknown
	if string(o.Get("appendMode")) == `"side"` {
		moves = false
	}
	at := s.Len()
	switch {
	case kindOf == lineLeaf && n.ID != "" && own && s.control(&n, o):
		s.Add(n)
		return
	case own || n.Link != "":
		n.Parent = s.placeOf(&n, moves)
	default: // version 1, and lines that the gateway adds
		n.Parent = s.leaf
	}
	if n.Parent < 0 && moves && s.front >= 0 {
		n.Parent = s.front
	}
	if n.Parent >= 0 {
		n.Reset = s.Nodes[n.Parent].Reset
	}
	if n.Kind == pi.Reset {
		n.Reset, s.reset = at, at
	}
	s.Add(n)
	s.cursor = at
	if moves {
		s.leaf = at
	}
	if s.front == unseen && moves {
		s.front = -1
		if n.Kind.Boundary() {
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
func (s *survey) placeOf(n *pi.Node, moves bool) int32 {
	parent, ok := s.Find(n.Link)
	if parent >= 0 && s.Nodes[parent].Kind == pi.Leaf {
		parent = s.Nodes[parent].Target
	}
	n.Stale = n.Link != "" && !ok
	switch {
	case !moves || s.leaf < 0:
	case n.Stale, parent == s.cursor && s.cursor != s.leaf, s.reset >= 0 && !s.after(parent, s.reset):
		return s.leaf
	}
	return parent
}

// after reports whether an entry's path holds a reset.
func (s *survey) after(at, reset int32) bool { return at >= 0 && s.Nodes[at].Reset == reset }

// control takes a leaf line, which moves leaf and cursor; false if it is not valid: then it
// is a line like any unknown one.
func (s *survey) control(n *pi.Node, o jsonx.Object) bool {
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
	n.Kind, n.Target, n.Parent = pi.Leaf, target, target
	if target >= 0 {
		n.Reset = s.Nodes[target].Reset
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
	id, _ := jsonx.Text(raw)
	at, ok := s.Find(id)
	if ok && s.Nodes[at].Kind == pi.Leaf {
		at = s.Nodes[at].Target
	}
	return at, ok
}

// finish looks at the tree as a whole.
func (s *survey) finish() {
	if s.Version == 0 {
		s.Version = 3
	}
	for i := range s.Len() {
		n := &s.Nodes[i]
		if !n.Stale || n.Old {
			continue
		}
		if later, ok := s.Find(n.Link); ok && later >= i {
			s.In.Problem(n.Line, "its parent comes after it: the entries may form a cycle, which is cut here")
		}
	}
}
