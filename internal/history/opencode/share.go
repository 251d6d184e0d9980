package opencode

import (
	"slices"

	"sessiond/internal/history"
)

// shared are the parts of a share, which lie anywhere in it: where, by the ids of their messages.
type shared struct {
	table *history.Table[sharedPart]
	last  *history.Names // of a message's parts
}

type sharedPart struct {
	at     history.Span
	of     uint64 // the sum of its message's id
	before int32  // the message's part before it, and one more; 0: it is the first
}

func newShared() shared {
	table := &history.Table[sharedPart]{}
	return shared{table, history.NewNames(func(i int32) uint64 { return table.At(i).of })}
}

func (s *shared) add(message string, at history.Span) {
	p := sharedPart{at: at, of: s.last.Sum(message)}
	if before, ok := s.last.Get(p.of); ok {
		p.before = before + 1
	}
	s.table.Append(p)
	s.last.Set(p.of, int32(s.table.Len()-1))
}

// of gives a message's parts, in their order.
func (s *shared) of(message string) (all []history.Span) {
	last, ok := s.last.Get(s.last.Sum(message))
	for next := last + 1; ok && next > 0; {
		p := s.table.At(next - 1)
		all, next = append(all, p.at), p.before
	}
	slices.Reverse(all)
	return all
}

func (s *shared) close() {
	s.table.Close()
	s.last.Close()
}
