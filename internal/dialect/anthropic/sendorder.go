package anthropic

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/wire"
)

// finish brings the entries into the order that the API demands: what has lost its other half
// goes, thinking stands where the model put it, the first entry is a user's.
func (s *sender) finish() {
	s.close()
	s.pairServerTools()
	for i := range s.entries {
		if s.entries[i].role == roleAssistant {
			s.placeThinking(&s.entries[i])
		}
	}
	s.join()
	if len(s.entries) == 0 || s.entries[0].role != roleUser {
		s.entries = slices.Insert(s.entries, 0, entry{role: roleUser, blocks: []sent{textBlock(noContent)}})
	}
	s.trimEnd()
}

// pairServerTools leaves out calls of the provider's own tools without their results, and the
// reverse. A call may wait at the very end, where the provider paused, or while a program that
// it runs waits for a call of its own.
func (s *sender) pairServerTools() {
	if !s.server {
		return
	}
	state := map[string]serverCall{}
	last := len(s.entries) - 1
	for i := range s.entries {
		for at := range s.entries[i].blocks {
			b := &s.entries[i].blocks[at]
			switch {
			case isServerCall(b.kind):
				state[b.id] = serverCall{seen: i, waits: i == last}
			case isServerResult(b.kind):
				if c, called := state[b.id]; called && c.result == nil && i-c.seen <= c.reach {
					state[b.id] = serverCall{result: b}
				}
			}
			if c, called := state[b.caller]; called && c.result == nil && i-c.seen <= c.reach {
				const next = 2 // the next reply is two entries on
				state[b.caller] = serverCall{seen: i, reach: next, waits: c.waits || i >= last-1}
			}
		}
	}
	for i := range s.entries {
		e := &s.entries[i]
		if e.role == roleAssistant {
			s.keepPaired(e, state)
		}
	}
}

// serverCall is what became of a call of the provider's own tool.
type serverCall struct {
	result *sent // the first, if there is any
	waits  bool  // there need be none yet
	seen   int   // the entry of the call, or of the last call that its program made
	reach  int   // how many entries on its result may stand
}

func (s *sender) keepPaired(e *entry, state map[string]serverCall) {
	kept := make([]sent, 0, len(e.blocks))
	for at := range e.blocks {
		b := &e.blocks[at]
		c, called := state[b.id]
		switch {
		case isServerCall(b.kind) && c.result == nil && !c.waits:
			s.Lose(b.from, "call "+strconv.Quote(wire.Clip(b.id))+" of the provider's own tool has no result")
			continue
		case isServerResult(b.kind) && (!called || c.result != b):
			s.Lose(b.from, "a result of the provider's own tool for "+strconv.Quote(wire.Clip(b.id))+" answers no call")
			continue
		}
		if c, called := state[b.caller]; b.caller != "" && (!called || c.result == nil && !c.waits) {
			if o, err := wire.ParseObject("", b.raw); err == nil {
				o.Drop("caller")
				b.raw = o.Value()
			}
			s.Lose(b.from, "the caller of "+strconv.Quote(wire.Clip(b.id)))
		}
		kept = append(kept, *b)
	}
	e.blocks = kept
}

// placeThinking puts thinking that a later reply began with in front of its entry, where calls
// demand it, and leaves thinking out that nothing follows, which the API rejects.
func (s *sender) placeThinking(e *entry) {
	for n := len(e.blocks); n > 0 && e.blocks[n-1].thinks(); n-- {
		s.Lose(e.blocks[n-1].from, "reasoning at the end of a reply")
		e.blocks = e.blocks[:n-1]
	}
	from := slices.IndexFunc(e.blocks, func(b sent) bool { return b.thinks() })
	if from <= 0 || e.blocks[from].from == e.blocks[0].from || !slices.ContainsFunc(e.blocks, func(b sent) bool { return b.kind == typeToolUse }) {
		return
	}
	to := from
	for to < len(e.blocks) && e.blocks[to].thinks() {
		to++
	}
	thinking := slices.Clone(e.blocks[from:to])
	e.blocks = slices.Insert(slices.Delete(e.blocks, from, to), 0, thinking...)
}

// join drops entries that became empty and makes neighbours of one role one.
func (s *sender) join() {
	joined := s.entries[:0]
	for _, e := range s.entries {
		if len(e.blocks) == 0 {
			continue
		}
		if last := len(joined) - 1; last >= 0 && joined[last].role == e.role {
			joined[last].blocks = append(joined[last].blocks, e.blocks...)
			joined[last].foreign = joined[last].foreign || e.foreign
			continue
		}
		joined = append(joined, e)
	}
	s.entries = joined
}

// trimEnd takes spaces from the end of a reply that the model is to continue.
func (s *sender) trimEnd() {
	e := &s.entries[len(s.entries)-1]
	b := &e.blocks[len(e.blocks)-1]
	if e.role != roleAssistant || b.kind != typeText {
		return
	}
	if text := strings.TrimRightFunc(b.text, unicode.IsSpace); text != b.text {
		if o, err := wire.ParseObject("", b.raw); err == nil {
			o.SetText("text", text)
			b.text, b.raw = text, o.Value()
		}
	}
}

// thinkingOff reports whether the request must not ask for thinking: the API rejects to go on
// thinking in a loop of tools that began without it.
func (s *sender) thinkingOff() bool {
	last := len(s.entries) - 1
	if last < 1 || s.entries[last].role != roleUser || s.entries[last].blocks[0].kind != typeToolResult {
		return false
	}
	e := &s.entries[last-1]
	return e.foreign && !e.blocks[0].thinks()
}

// mark writes the cache marks and tells whether the system text gets one. A border's mark goes
// on the last block that its message, or one before it, became; thinking takes none.
func (s *sender) mark(borders []int) (system bool) {
	for _, border := range borders {
		if border < 0 {
			system = true
		} else if b := s.lastBlock(border); b != nil {
			b.raw, b.marked = withMark(b.raw), true
		}
	}
	return system
}

// withMark adds a cache mark as the last field of a block: the provider's cache is to keep what
// it has read up to there. Source: Anthropic's guide to prompt caching.
func withMark(block jsontext.Value) jsontext.Value {
	return slices.Concat(block[:len(block)-1], []byte(`,"cache_control":{"type":"ephemeral"}}`))
}

// lastBlock returns the block that a border's mark goes on, nil where that has one already.
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
