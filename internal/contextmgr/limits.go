package contextmgr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"sessiond/internal/session"
)

// limits say how large a part may be that is sent, in tokens of the reference counter. Each context
// records its own, so that the next one shortens the same parts alike.
type limits struct {
	Output int64 `json:"output"`         // of a tool's output, usually; 0: none
	Said   int64 `json:"said,omitempty"` // of what a person or the model said, usually; 0: none, as today
	Shown  int64 `json:"shown"`          // of a hidden message that is shown again, all parts together; 0: none
	Cuts   []cut `json:"cuts,omitempty"` // smaller limits to make a context fit, in the order of the path

	Part *int64 `json:"part,omitempty"` // of older records, instead of Output and Said; their cuts have one, too
}

// cut is a smaller limit for messages after the cut before, up to a number of tokens of the path.
// Messages never change, so these tokens name the same messages in every copy of a session.
type cut struct {
	Through int64 `json:"through"`          // messages.path_tokens
	Output  int64 `json:"output,omitempty"` // 0: the usual
	Said    int64 `json:"said,omitempty"`   // also of arguments of calls; 0: the usual

	Part int64 `json:"part,omitempty"`
}

// minPart is the smallest limit of a part, in tokens.
const minPart = 32

// UnmarshalJSON reads older records, too: they had one limit for all parts.
func (l *limits) UnmarshalJSON(raw []byte) error {
	type plain limits
	if err := json.Unmarshal(raw, (*plain)(l)); err != nil {
		return err
	}
	if l.Part == nil {
		return nil
	}
	l.Output, l.Said, l.Part = *l.Part, *l.Part, nil
	for i := range l.Cuts {
		c := &l.Cuts[i]
		c.Output, c.Said, c.Part = c.Part, c.Part, 0
	}
	return nil
}

// partLimits are the limits for the parts of one message.
type partLimits struct {
	output, said int64 // 0: none
	calls        bool  // arguments of calls are cut like what was said
}

// of returns the limit of a part, 0 for none.
func (p partLimits) of(m *session.Message, part *session.Part) int64 {
	switch part.Kind {
	case session.PartToolCall:
		if p.calls {
			return p.said
		}
	case session.PartToolResult:
		return p.output
	case session.PartText, session.PartRefusal:
		if m.Role == session.Tool || m.Kind == session.KindBash {
			return p.output
		}
		return p.said
	}
	return 0
}

// partLimits returns the limits for the parts of a message.
func (l *limits) partLimits(m *session.Message) partLimits {
	usual := partLimits{output: l.Output, said: l.Said}
	for _, c := range l.Cuts {
		if m.PathTokens <= c.Through {
			if c.Said > 0 {
				usual.said, usual.calls = c.Said, true
			}
			usual.output = smaller(usual.output, c.Output)
			break
		}
	}
	return usual
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// isCut reports whether a smaller limit than usual is in force.
func (l *limits) isCut() bool {
	return slices.ContainsFunc(l.Cuts, func(c cut) bool { return c.Output+c.Said > 0 })
}

// cutNew returns limits that cut the messages between sent and now, as tokens of the path, and
// nothing before them. said is 0 where only outputs are cut.
func (l *limits) cutNew(sent, now, output, said int64) limits {
	next := *l
	next.Cuts = slices.Clone(l.Cuts)
	if n := len(next.Cuts); n == 0 || next.Cuts[n-1].Through < sent {
		next.Cuts = append(next.Cuts, cut{Through: sent})
	}
	next.Cuts = append(next.Cuts, cut{Through: now, Output: output, Said: said})
	return next
}

// cutAll returns limits that cut everything up to now. Smaller cuts stay.
func (l *limits) cutAll(now, output, said int64) limits {
	next := *l
	next.Cuts = nil
	for _, c := range append(slices.Clone(l.Cuts), cut{Through: now}) {
		c.Output, c.Said = smaller(c.Output, output), smaller(c.Said, said)
		if n := len(next.Cuts); n > 0 && next.Cuts[n-1].Output == c.Output && next.Cuts[n-1].Said == c.Said {
			next.Cuts[n-1].Through = c.Through
		} else {
			next.Cuts = append(next.Cuts, c)
		}
	}
	return next
}

// tighterLimits returns the limits to try, in this order, for a context that does not fit: first
// those that cut only outputs of tools, then those that cut also what was said. The part that a
// provider has cached stays while cutting the new messages to a quarter helps.
func (s *snapshot) tighterLimits() []limits {
	var all []limits
	part, now, sent := cmp.Or(s.Limits.Output, s.numbers.Window/4), s.pathTokens(math.MaxInt64), int64(-1)
	if s.extendsLast() {
		if at := s.pathTokens(*s.last.HeadID); at < now {
			sent = at
		}
	}
	for _, share := range []int64{0, 1} { // of the limit that what was said has
		if sent >= 0 {
			all = append(all, s.Limits.cutNew(sent, now, part/2, share*part/2), s.Limits.cutNew(sent, now, part/4, share*part/4))
		}
		for part := part / 2; part >= minPart; part /= 2 {
			all = append(all, s.Limits.cutAll(now, part, share*part))
		}
	}
	return all
}

// extendsLast reports whether this context begins with the last one.
func (s *snapshot) extendsLast() bool {
	return !s.overlayIsNew && s.last != nil && s.last.HeadID != nil && s.last.Epoch == s.sess.Epoch &&
		s.last.Model == s.model && s.contains(*s.last.HeadID)
}

// pathTokens returns the tokens of the path up to a row, as far as its messages are shown: a compaction may hide all
// but those that are shown again.
func (s *snapshot) pathTokens(rowID int64) (tokens int64) {
	for _, m := range []*session.Message{s.TurnStart, s.Person} {
		if m != nil && m.RowID <= rowID {
			tokens = max(tokens, m.PathTokens)
		}
	}
	for i := range slices.Backward(s.Messages) {
		if s.Messages[i].RowID <= rowID {
			return max(tokens, s.Messages[i].PathTokens)
		}
	}
	return tokens
}

// readLimits takes over the cuts of the last context if this one begins with it.
func (s *snapshot) readLimits() {
	s.Limits = limits{Output: s.numbers.PartMax, Shown: cmp.Or(s.details.Shown, s.numbers.ShownMax)}
	var before limits
	if s.last == nil || len(s.last.Limits) == 0 || !decode(s.last.Limits, &before) {
		return
	}
	s.Before = &before
	if s.last.Epoch == s.sess.Epoch && s.last.Model == s.model && sameRow(s.last.CompactionID, s.sess.CompactionID) &&
		before.Output == s.Limits.Output && before.Shown == s.Limits.Shown {
		s.Limits.Cuts = before.Cuts
	}
}

func sameRow(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// cutsDifferently reports whether an item, not trimmed yet, is shortened differently than by the
// limits before.
func (l *limits) cutsDifferently(before *limits, item *Item) bool {
	m := &item.Message
	if item.isShownAgain() && l.Shown != before.Shown && partTokens(m) > min(l.Shown, before.Shown) {
		return true
	}
	now, was := l.partLimits(m), before.partLimits(m)
	if now == was {
		return false
	}
	trimmedTo := func(p *session.Part, limit int64) int64 {
		if limit > 0 && p.Tokens > limit {
			return limit
		}
		return 0
	}
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool {
		return trimmedTo(&p, now.of(m, &p)) != trimmedTo(&p, was.of(m, &p))
	})
}

func partTokens(m *session.Message) int64 {
	var sum int64
	for i := range m.Parts {
		sum += m.Parts[i].Tokens
	}
	return sum
}

// trimParts shortens the parts of an item over their limits, in reference tokens. It returns how many
// outputs of tools and how many parts that were said it shortened.
func trimParts(item *Item, limits partLimits) (outputs, said int) {
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		limit := limits.of(&item.Message, p)
		if limit <= 0 || p.Tokens <= limit {
			continue
		}
		item.copyParts()
		item.Changed = true
		trimPart(&item.Message.Parts[i], limit)
		if (partLimits{output: 1}).of(&item.Message, p) > 0 {
			outputs++
		} else {
			said++
		}
	}
	return outputs, said
}

// trimPart shortens a part to its head, a marker and its tail. Arguments of calls stay JSON, since
// providers parse them.
func trimPart(p *session.Part, limit int64) {
	if p.Kind == session.PartToolCall {
		p.Arguments = string(session.JSONOf(map[string]string{"arguments_left_out": headAndTail(p.Arguments, p.Tokens,
			limit)}))
	} else {
		p.Text = headAndTail(p.Content(), p.Tokens, limit)
		p.Blob, p.BlobSHA = nil, nil
	}
	p.Tokens = limit
}

// headAndTail cuts by runes, in proportion to the tokens, so that a text is always cut alike.
func headAndTail(s string, tokens, limit int64) string {
	text := []rune(s)
	keep := int(float64(len(text)) * float64(limit) / float64(tokens) * 0.9)
	head := keep * 2 / 3
	tail := keep - head
	marker := fmt.Sprintf("\n[… %d characters left out; the whole text is in the session's log …]\n", len(text)-keep)
	return string(text[:head]) + marker + string(text[len(text)-tail:])
}

// trimTogether shortens the largest texts of an item to one size, so that all parts together weigh
// at most limit, in reference tokens. It returns how many it shortened.
func trimTogether(item *Item, limit int64) int {
	var sizes []int64
	rest, sum := limit, int64(0)
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		if sum += p.Tokens; (partLimits{output: 1, said: 1}).of(&item.Message, p) > 0 {
			sizes = append(sizes, p.Tokens)
		} else {
			rest -= p.Tokens
		}
	}
	if limit <= 0 || sum <= limit {
		return 0
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := rest / int64(len(sizes)-i); size > share {
			share = max(minPart, share)
			outputs, said := trimParts(item, partLimits{output: share, said: share})
			return outputs + said
		}
		rest -= size
	}
	return 0
}
