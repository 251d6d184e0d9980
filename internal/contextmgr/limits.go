package contextmgr

import (
	"fmt"
	"math"
	"slices"

	"sessiond/internal/session"
)

// limits say how large a part may be that is sent, in tokens of the reference counter. Each context
// records its own, so that the next one shortens the same parts alike.
type limits struct {
	Part  int64 `json:"part"`           // usually; 0: none
	Shown int64 `json:"shown"`          // of a hidden message that is shown again, all parts together; 0: none
	Cuts  []cut `json:"cuts,omitempty"` // smaller limits to make a context fit, in the order of the path
}

// cut is a smaller limit for messages after the cut before, up to a number of tokens of the path.
// Messages never change, so these tokens name the same messages in every copy of a session.
type cut struct {
	Through int64 `json:"through"`        // messages.path_tokens
	Part    int64 `json:"part,omitempty"` // 0: the usual
}

// minPart is the smallest limit of a part, in tokens.
const minPart = 32

// partLimit returns the limit for a part of a message, and whether arguments of calls are cut, too.
func (l *limits) partLimit(m *session.Message) (limit int64, calls bool) {
	for _, c := range l.Cuts {
		if m.PathTokens <= c.Through {
			if c.Part == 0 {
				break
			}
			return c.Part, true
		}
	}
	return l.Part, false
}

// isCut reports whether a smaller limit than usual is in force.
func (l *limits) isCut() bool {
	return slices.ContainsFunc(l.Cuts, func(c cut) bool { return c.Part > 0 })
}

// cutNew returns limits that cut the messages between sent and now, as tokens of the path, and
// nothing before them.
func (l *limits) cutNew(sent, now, part int64) limits {
	next := *l
	next.Cuts = slices.Clone(l.Cuts)
	if n := len(next.Cuts); n == 0 || next.Cuts[n-1].Through < sent {
		next.Cuts = append(next.Cuts, cut{Through: sent})
	}
	next.Cuts = append(next.Cuts, cut{Through: now, Part: part})
	return next
}

// cutAll returns limits that cut everything up to now. Smaller cuts stay.
func (l *limits) cutAll(now, part int64) limits {
	next := *l
	next.Cuts = nil
	for _, c := range append(slices.Clone(l.Cuts), cut{Through: now}) {
		if c.Part == 0 || c.Part > part {
			c.Part = part
		}
		if n := len(next.Cuts); n > 0 && next.Cuts[n-1].Part == c.Part {
			next.Cuts[n-1].Through = c.Through
		} else {
			next.Cuts = append(next.Cuts, c)
		}
	}
	return next
}

// tighterLimits returns the limits to try, in this order, for a context that does not fit. The
// part that a provider has cached stays while cutting the new messages to a quarter helps.
func (s *snapshot) tighterLimits() []limits {
	var all []limits
	part := s.Limits.Part
	if part <= 0 {
		part = s.numbers.Window / 4
	}
	now := s.pathTokens(math.MaxInt64)
	if s.extendsLast() {
		if sent := s.pathTokens(*s.last.HeadID); sent < now {
			all = append(all, s.Limits.cutNew(sent, now, part/2), s.Limits.cutNew(sent, now, part/4))
		}
	}
	for part /= 2; part >= minPart; part /= 2 {
		all = append(all, s.Limits.cutAll(now, part))
	}
	return all
}

// extendsLast reports whether this context begins with the last one.
func (s *snapshot) extendsLast() bool {
	return !s.overlayIsNew && s.last != nil && s.last.HeadID != nil && s.last.Epoch == s.sess.Epoch && s.last.Model == s.model && s.contains(*s.last.HeadID)
}

// pathTokens returns the tokens of the path up to a row.
func (s *snapshot) pathTokens(rowID int64) int64 {
	for i := range slices.Backward(s.Messages) {
		if s.Messages[i].RowID <= rowID {
			return s.Messages[i].PathTokens
		}
	}
	return 0
}

// readLimits takes over the cuts of the last context if this one begins with it.
func (s *snapshot) readLimits() {
	s.Limits = limits{Part: s.numbers.PartMax, Shown: s.numbers.ShownMax}
	var before limits
	if s.last == nil || len(s.last.Limits) == 0 || !decode(s.last.Limits, &before) {
		return
	}
	s.Before = &before
	if s.last.Epoch == s.sess.Epoch && s.last.Model == s.model && sameRow(s.last.CompactionID, s.sess.CompactionID) &&
		before.Part == s.Limits.Part && before.Shown == s.Limits.Shown {
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
	now, calls := l.partLimit(m)
	was, callsBefore := before.partLimit(m)
	if now == was && calls == callsBefore {
		return false
	}
	trimmedTo := func(p *session.Part, limit int64, calls bool) int64 {
		if limit > 0 && p.Tokens > limit && trimmable(p, calls) {
			return limit
		}
		return 0
	}
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool {
		return trimmedTo(&p, now, calls) != trimmedTo(&p, was, callsBefore)
	})
}

func partTokens(m *session.Message) int64 {
	var sum int64
	for i := range m.Parts {
		sum += m.Parts[i].Tokens
	}
	return sum
}

// trimmable reports whether a part may be shortened. Arguments of calls may only if calls is set,
// and signed parts never.
func trimmable(p *session.Part, calls bool) bool {
	switch p.Kind {
	case session.PartToolCall:
		return calls
	case session.PartText, session.PartToolResult, session.PartRefusal:
		return true
	}
	return false
}

// trimParts shortens the parts of an item over a limit, in reference tokens, and returns how many.
func trimParts(item *Item, limit int64, calls bool) int {
	n := 0
	for i := range item.Message.Parts {
		if p := &item.Message.Parts[i]; limit > 0 && p.Tokens > limit && trimmable(p, calls) {
			item.copyParts()
			item.Changed = true
			trimPart(&item.Message.Parts[i], limit)
			n++
		}
	}
	return n
}

// trimPart shortens a part to its head, a marker and its tail. Arguments of calls stay JSON, since
// providers parse them.
func trimPart(p *session.Part, limit int64) {
	if p.Kind == session.PartToolCall {
		p.Arguments = string(session.JSONOf(map[string]string{"arguments_left_out": headAndTail(p.Arguments, p.Tokens, limit)}))
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

// trimTogether shortens the largest parts of an item to one size, so that all parts together
// weigh at most limit, in reference tokens. It returns how many it shortened.
func trimTogether(item *Item, limit int64) int {
	var sizes []int64
	rest, sum := limit, int64(0)
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		if sum += p.Tokens; trimmable(p, false) {
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
			return trimParts(item, max(minPart, share), false)
		}
		rest -= size
	}
	return 0
}

// dropUnsupported replaces parts of a kind that the model does not accept by a note, and returns
// their kinds. modalities are the accepted kinds; none: unknown.
func dropUnsupported(item *Item, modalities []string) []session.PartKind {
	var kinds []session.PartKind
	for i := range item.Message.Parts {
		kind := item.Message.Parts[i].Kind
		switch kind {
		case session.PartImage, session.PartAudio, session.PartFile:
		default:
			continue
		}
		if len(modalities) == 0 || slices.Contains(modalities, string(kind)) {
			continue
		}
		item.copyParts()
		item.Changed = true
		item.Message.Parts[i] = session.TextPart(fmt.Sprintf("[%s left out: this model does not take any]", kind))
		kinds = append(kinds, kind)
	}
	return kinds
}
