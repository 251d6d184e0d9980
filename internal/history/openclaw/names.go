package openclaw

import (
	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
)

func newScanned() *scanned {
	s := &scanned{
		earlier: map[uint64][]int32{}, twins: map[[2]uint64]struct{}{}, keys: map[int32]string{}, content: map[string]int{},
		leaf: -1, cursor: -1, reset: -1, front: unseen,
	}
	s.names = history.NewNames(func(i int32) uint64 { return s.nodes.At(i).id })
	return s
}

// next is the number of entries, and the index of the next one.
func (s *scanned) next() int32 { return int32(s.nodes.Len()) }

// plain tells whether an entry's external id is its id.
func (s *scanned) plain(i int32) bool {
	_, other := s.keys[i]
	n := s.nodes.At(i)
	return !other && n.place < 0 && n.id != 0
}

// keyOf gives an entry's external id, "" for none.
func (r *reader) keyOf(i int32) string {
	if i < 0 {
		return ""
	}
	if key, ok := r.keys[i]; ok {
		return key
	}
	if place := r.nodes.At(i).place; place >= 0 {
		return v1Key(int(place))
	}
	return r.idOf(i)
}

// keySum gives the sum of an entry's external id.
func (r *reader) keySum(i int32) uint64 {
	if r.plain(i) {
		return r.nodes.At(i).id
	}
	return r.names.Sum(r.keyOf(i))
}

// idOf gives the id of an entry that has one.
func (r *reader) idOf(i int32) string {
	if id, ok := r.names.Recent(i); ok {
		return id
	}
	n := r.nodes.At(i)
	line, err := r.text.cuts.ReadAgain(r.text.file, nil, n.offset, n.size)
	if err != nil {
		r.failed = err
		return ""
	}
	o, _ := pi.Parse(line)
	return r.remember(i, o)
}

// remember takes an entry's id from its line.
func (s *scanned) remember(i int32, o history.Object) string {
	id := o.String("id")
	if !s.names.Remember(i, id) {
		s.failed = session.Errorf(session.Busy, "line %d changed while it was read", s.nodes.At(i).line)
	}
	return id
}

// byPlace names an entry by its place.
func (s *scanned) byPlace(i int32, place int) {
	delete(s.keys, i)
	s.nodes.At(i).place = int32(place)
}
