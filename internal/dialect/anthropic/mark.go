package anthropic

import "strings"

// cacheMark is what the last field of a block says, where the provider's cache is to keep what
// it has read up to there. Source: Anthropic's guide to prompt caching.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// mark writes the cache marks. A border's mark goes on the last block that its message, or one
// before it, became; thinking takes none.
func (s *sender) mark(borders []int) {
	for _, border := range borders {
		if border < 0 {
			s.marked = true
			continue
		}
		if b := s.lastBlock(border); b != nil {
			b.raw = append(append(make([]byte, 0, len(b.raw)+len(cacheMark)), b.raw[:len(b.raw)-1]...), cacheMark+"}"...)
			b.marked = true
		}
	}
}

// lastBlock gives the block that a border's mark goes on, nil where that has one already.
func (s *sender) lastBlock(border int) *sent {
	for i := len(s.entries) - 1; i >= 0; i-- {
		e := &s.entries[i]
		for k := len(e.blocks) - 1; k >= 0; k-- {
			switch b := &e.blocks[k]; {
			case b.at > border || b.thinks():
			case b.marked:
				return nil
			default:
				return b
			}
		}
	}
	return nil
}

// systemText gives the system text, with its raw block where that carries a mark.
func (s *sender) systemText() sent {
	text := strings.Join(s.system, "\n\n")
	if !s.marked || strings.TrimSpace(text) == "" {
		return sent{text: text}
	}
	b := textBlock(text)
	b.raw = append(b.raw[:len(b.raw)-1], cacheMark+"}"...)
	return b
}
