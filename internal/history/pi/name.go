package pi

import (
	"hash/maphash"
	"io"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

func newScanned(file io.ReaderAt, cuts *history.Cuts) *scanned {
	s := &scanned{
		file: file, cuts: cuts, older: map[uint64][]int32{}, twins: map[[2]uint64]struct{}{}, keys: map[int32]string{},
		targets: map[int32]uint64{}, content: map[string]int{}, lane: -1, seed: maphash.MakeSeed(),
	}
	s.names = history.NewNames(func(i int32) uint64 { return s.nodes.At(i).id })
	return s
}

// next is the number of entries, and the index of the next one.
func (s *scanned) next() int32 { return int32(s.nodes.Len()) }

// find gives the newest entry that has an id.
func (s *scanned) find(id string) (int32, bool) {
	if s.names == nil {
		return 0, false
	}
	return s.names.Get(s.names.Sum(id))
}

// keyOf gives an entry's external id, "" for none.
func (s *scanned) keyOf(i int32) string {
	if i < 0 {
		return ""
	}
	if key, ok := s.keys[i]; ok {
		return key
	}
	if place := s.nodes.At(i).place; place >= 0 {
		return v1Key(int(place))
	}
	return s.idOf(i)
}

// plain tells whether an entry's external id is its id.
func (s *scanned) plain(i int32) bool {
	_, other := s.keys[i]
	n := s.nodes.At(i)
	return !other && n.place < 0 && n.id != 0
}

// idOf gives the id of an entry that has one.
func (s *scanned) idOf(i int32) string {
	if id, ok := s.names.Recent(i); ok {
		return id
	}
	n := s.nodes.At(i)
	line, err := s.cuts.ReadAgain(s.file, nil, n.offset, n.size)
	if err != nil {
		s.failed = err
		return ""
	}
	o, _ := parse(line)
	return s.remember(i, o)
}

// remember takes an entry's id from its line.
func (s *scanned) remember(i int32, o history.Object) string {
	id := o.String("id")
	if !s.names.Remember(i, id) {
		s.failed = session.Errorf(session.Busy, "line %d changed while it was read", s.nodes.At(i).line)
	}
	return id
}

// keySum gives the sum of an entry's external id.
func (s *scanned) keySum(i int32) uint64 {
	if s.plain(i) {
		return s.nodes.At(i).id
	}
	return s.names.Sum(s.keyOf(i))
}
