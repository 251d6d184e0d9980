package history

import "slices"

// Held keeps lines that a first pass over a transcript took apart for the second, up to heldBytes
// of them, each with heldCost more for what it became: only what a long transcript has behind these is taken apart twice. The zero value is
// empty and works.
type Held[T any] struct {
	lines []heldLine[T]
	arena []byte // that lines are copied to
	bytes int    // in lines
}

type heldLine[T any] struct {
	at   int64
	line []byte
	what T
}

const (
	heldBytes = 2 << 20
	heldCost  = 512      // of a short line: it is less than what is made of it
	heldLong  = 64 << 10 // a line above this is not kept
	arenaSize = 64 << 10
)

// Own gives a copy of a line to take apart and keep. ok is false where there is no room for it.
func (h *Held[T]) Own(line []byte) (own []byte, ok bool) {
	if len(line) > heldLong || h.bytes+heldCost+len(line) > heldBytes {
		return nil, false
	}
	h.bytes += heldCost + len(line)
	if len(line) > cap(h.arena)-len(h.arena) {
		h.arena = make([]byte, 0, arenaSize)
	}
	from := len(h.arena)
	h.arena = append(h.arena, line...)
	return slices.Clip(h.arena[from:]), true
}

// Keep keeps what an Own line holds. Lines are kept in their order.
func (h *Held[T]) Keep(at int64, own []byte, what T) {
	h.lines = append(h.lines, heldLine[T]{at, own, what})
}

// Take gives up the line of an offset.
func (h *Held[T]) Take(at int64) (line []byte, what T, ok bool) {
	i, ok := slices.BinarySearchFunc(h.lines, at, func(l heldLine[T], at int64) int { return int(l.at - at) })
	if !ok || h.lines[i].line == nil {
		return nil, what, false
	}
	l := h.lines[i]
	h.lines[i].line, h.lines[i].what = nil, what
	return l.line, l.what, true
}
