package contextmgr

import (
	"math"
	"slices"

	"sessiond/internal/session"
)

// limits say how large a part may be that is sent, in tokens of the reference counter. Sent in a
// context they are recorded with it, so that the next one shortens what it repeats alike.
type limits struct {
	Part  int64 `json:"part"`           // usually; 0: none
	Shown int64 `json:"shown"`          // a hidden message that is shown again, whole; 0: none
	Cuts  []cut `json:"cuts,omitempty"` // what was cut smaller to make a context fit, in the order of the path
}

// cut is a smaller limit, for parts of the messages behind the cut before, up to and with those
// whose path has so many tokens. Messages never change, nor does what lies before them, so this
// names the same ones in every copy of a session.
type cut struct {
	Through int64 `json:"through"`        // messages.path_tokens
	Part    int64 `json:"part,omitempty"` // 0: the usual
}

// of gives the limit for a part of a message, and whether arguments of calls are cut, too: only
// where a context would not fit.
func (l *limits) of(m *session.Message) (most int64, calls bool) {
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

// isCut tells whether anything is cut smaller than usual.
func (l *limits) isCut() bool {
	return slices.ContainsFunc(l.Cuts, func(c cut) bool { return c.Part > 0 })
}

// cutAfter cuts what lies behind sent and up to now, both as tokens of the path, and leaves alone
// what lies before.
func (l *limits) cutAfter(sent, now, most int64) limits {
	next := *l
	next.Cuts = slices.Clone(l.Cuts)
	if n := len(next.Cuts); n == 0 || next.Cuts[n-1].Through < sent {
		next.Cuts = append(next.Cuts, cut{Through: sent})
	}
	next.Cuts = append(next.Cuts, cut{Through: now, Part: most})
	return next
}

// cutAll cuts everything up to now; what was cut smaller stays so.
func (l *limits) cutAll(now, most int64) limits {
	next := *l
	next.Cuts = nil
	for _, c := range append(slices.Clone(l.Cuts), cut{Through: now}) {
		if c.Part == 0 || c.Part > most {
			c.Part = most
		}
		if n := len(next.Cuts); n > 0 && next.Cuts[n-1].Part == c.Part {
			next.Cuts[n-1].Through = c.Through
		} else {
			next.Cuts = append(next.Cuts, c)
		}
	}
	return next
}

// tighter gives limits to try where a context does not fit, one after the other. What a provider
// has in its cache stays as long as what came since can be cut down to a quarter of the usual.
func (r *reading) tighter() []limits {
	var all []limits
	most := r.limits.Part
	if most <= 0 {
		most = r.numbers.Window / 4
	}
	now := r.pathTokens(math.MaxInt64)
	if r.extends() {
		if sent := r.pathTokens(*r.last.HeadID); sent < now {
			all = append(all, r.limits.cutAfter(sent, now, most/2), r.limits.cutAfter(sent, now, most/4))
		}
	}
	for most /= 2; most >= leastPart; most /= 2 {
		all = append(all, r.limits.cutAll(now, most))
	}
	return all
}

// extends tells whether this context begins with the last one that was handed out.
func (r *reading) extends() bool {
	return !r.fresh && r.last != nil && r.last.HeadID != nil && r.last.Epoch == r.sess.Epoch && r.last.Model == r.model && r.holds(*r.last.HeadID)
}

// changed tells whether an item that both limits are for is shortened otherwise by the one than by
// the other. It is asked before the item is shortened.
func (l *limits) changed(before *limits, item *Item) bool {
	m := &item.Message
	if item.shownAgain() && l.Shown != before.Shown && partsOf(m) > min(l.Shown, before.Shown) {
		return true
	}
	most, calls := l.of(m)
	was, callsWere := before.of(m)
	if most == was && calls == callsWere {
		return false
	}
	shortened := func(p *session.Part, most int64, calls bool) int64 {
		if most > 0 && p.Tokens > most && trimmable(p, calls) {
			return most
		}
		return 0
	}
	return slices.ContainsFunc(m.Parts, func(p session.Part) bool {
		return shortened(&p, most, calls) != shortened(&p, was, callsWere)
	})
}

// shownAgain tells whether it is a hidden message that is shown whole.
func (item *Item) shownAgain() bool { return item.Kind == ItemTurnStart || item.Kind == ItemPerson }

func partsOf(m *session.Message) int64 {
	var sum int64
	for i := range m.Parts {
		sum += m.Parts[i].Tokens
	}
	return sum
}

// settleLimits takes over what the last context cut, while this one is to begin with it.
func (r *reading) settleLimits() {
	r.limits = limits{Part: r.numbers.PartMax, Shown: r.numbers.ShownMax}
	if r.last == nil || len(r.last.Limits) == 0 {
		return
	}
	var before limits
	if !decode(r.last.Limits, &before) {
		return
	}
	r.before = &before
	if r.last.Epoch == r.sess.Epoch && r.last.Model == r.model && sameRow(r.last.CompactionID, r.sess.CompactionID) &&
		before.Part == r.limits.Part && before.Shown == r.limits.Shown {
		r.limits.Cuts = before.Cuts
	}
}

func sameRow(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// pathTokens gives how many tokens the path has up to and with a row, or the newest one before it.
func (r *reading) pathTokens(rowID int64) int64 {
	for i := range slices.Backward(r.path) {
		if r.path[i].RowID <= rowID {
			return r.path[i].PathTokens
		}
	}
	return 0
}
