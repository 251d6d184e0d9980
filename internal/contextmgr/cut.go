package contextmgr

import (
	"slices"

	"sessiond/internal/session"
)

// Entry is a message as cutting and planning see it: no content.
type Entry struct {
	Kind      session.Kind
	Role      session.Role
	Tokens    int64 // as it would be sent
	InContext bool
	Person    bool     // a person's message
	Reasoning bool     // a reply of nothing but reasoning: it belongs to the next entry
	Failed    bool     // a reply that the provider or the network broke off
	Calls     []string // ids of the calls it makes
	Results   []string // ids of the calls it answers
	Outputs   []Output // the finished outputs it holds, in order
}

// cuttable reports whether kept messages may begin here. A reminder of a program in the system's role
// stands within a turn.
func (e *Entry) cuttable() bool {
	if !e.InContext {
		return false
	}
	switch e.Kind {
	case session.KindMessage:
		return e.Role == session.User || e.Role == session.Assistant
	case session.KindCustomMessage:
		return e.Role != session.System
	case session.KindBash, session.KindBranchSummary:
		return true
	}
	return false
}

// startsTurn reports whether a turn begins here.
func (e *Entry) startsTurn() bool {
	return e.cuttable() && e.Role != session.Assistant
}

// CutRule says how much to keep.
type CutRule struct {
	KeepTokens   int64
	KeepMessages int64 // at least, within KeepMost
	KeepMost     int64 // tokens that KeepMessages may fill
	// MetadataSplits follows pi when a cut moves back onto entries without content: the turn is
	// that of the entry at the cut, not of the first message after it.
	MetadataSplits bool
}

// Cut divides a path: entries from First on are kept. TurnStart is the entry that began the turn
// which the cut splits, -1 if it splits none.
type Cut struct {
	First     int
	TurnStart int
}

// Split reports whether the cut lies inside a turn.
func (c Cut) Split() bool { return c.TurnStart >= 0 }

// FindCut returns the cut at the nearest valid point at or after the entry at which both keep
// rules are met, counted back from the newest. It never separates a call from its result, or
// reasoning from its call. Where that keeps fewer messages than the rule wants, as at a result of
// a call, the valid point before it is taken if it fits. Rule: pi, findCutPoint.
func FindCut(path []Entry, rule CutRule) Cut {
	valid := validPoints(path)
	cut := slices.Index(valid, true)
	if cut < 0 {
		return Cut{0, -1}
	}
	if enough := keepFrom(path, rule); enough >= 0 {
		if next := slices.Index(valid[enough:], true); next >= 0 {
			cut = backToMessages(path, valid, enough+next, rule)
		} else {
			for i, ok := range valid { // the last valid point
				if ok {
					cut = i
				}
			}
		}
	}
	message := cut
	for cut > 0 && !path[cut-1].InContext {
		cut--
	}
	if rule.MetadataSplits {
		message = cut
	}
	return Cut{cut, turnStart(path, message)}
}

// backToMessages returns the valid point before a cut if fewer messages than KeepMessages are behind the cut and those
// from that point on fit into KeepMost, else the cut.
func backToMessages(path []Entry, valid []bool, cut int, rule CutRule) int {
	var sum, count int64
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Tokens > 0 && path[i].InContext {
			sum += path[i].Tokens
			count++
		}
		switch {
		case i > cut:
		case i == cut && count >= rule.KeepMessages, sum > rule.KeepMost:
			return cut
		case i < cut && valid[i]:
			return i
		}
	}
	return cut
}

// keepFrom returns the newest entry from which on both keep rules are met, -1 if the path is too
// short.
func keepFrom(path []Entry, rule CutRule) int {
	var sum, count int64
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Tokens == 0 || !path[i].InContext {
			continue
		}
		sum += path[i].Tokens
		count++
		if sum >= rule.KeepTokens && (count >= rule.KeepMessages || sum >= rule.KeepMost) {
			return i
		}
	}
	return -1
}

// turnStart returns the beginning of the turn that a cut at i splits, -1 if it splits none.
func turnStart(path []Entry, i int) int {
	if path[i].startsTurn() {
		return -1
	}
	for j := i - 1; j >= 0; j-- {
		if path[j].startsTurn() {
			return j
		}
	}
	return -1
}

// validPoints marks where a cut may lie: never at a result, never between a call and its result,
// however late that came, never between reasoning and its reply.
func validPoints(path []Entry) []bool {
	valid := make([]bool, len(path))
	answered := make([]int, len(path)) // by the entry that calls: the last entry that answers it
	open := map[string]int{}
	for i := range path {
		for _, id := range path[i].Calls {
			open[id] = i
		}
		for _, id := range path[i].Results {
			if caller, ok := open[id]; ok {
				answered[caller] = i
				delete(open, id)
			}
		}
	}
	lastResult := -1 // of a call before i
	for i := range path {
		afterReasoning := i > 0 && path[i-1].Reasoning && path[i].Role == session.Assistant
		valid[i] = path[i].cuttable() && i > lastResult && !afterReasoning
		if len(path[i].Calls) > 0 {
			lastResult = max(lastResult, answered[i])
		}
	}
	return valid
}

// firstUnanswered returns the first entry that must stay as it is: messages after the last reply,
// or the reply whose calls still wait for results, with the reasoning before it.
func firstUnanswered(path []Entry) int {
	first, waiting := len(path), map[string]bool{}
	for i := range path {
		for _, id := range path[i].Calls {
			waiting[id] = true
		}
		for _, id := range path[i].Results {
			delete(waiting, id)
		}
	}
	for i := range slices.Backward(path) {
		switch e := &path[i]; {
		case !e.InContext:
		case slices.ContainsFunc(e.Calls, func(id string) bool { return waiting[id] }):
			for first = i; first > 0 && path[first-1].Reasoning; first-- {
			}
			return first
		case e.Role == session.Assistant:
			return first
		case e.Role == session.Tool:
			if len(waiting) == 0 {
				return first
			}
		default:
			if first == len(path) || path[first].startsTurn() {
				first = i
			}
		}
	}
	return first
}

// openTurn returns the first entry of the turn that is open: it has no reply yet, or its last reply called tools or
// failed. It returns len(path) if the last turn is complete.
func openTurn(path []Entry) int {
	first := firstUnanswered(path)
	last := first
	if first == len(path) || path[first].startsTurn() { // what came before may be the same turn
		for last--; last >= 0 && !path[last].InContext; last-- {
		}
		if last < 0 || path[last].startsTurn() || path[last].Role == session.Assistant && len(path[last].Calls) == 0 &&
			!path[last].Failed {
			return first
		}
	}
	start := max(0, turnStart(path, last))
	for i := start - 1; i >= 0 && (!path[i].InContext || path[i].startsTurn()); i-- {
		if path[i].InContext {
			start = i
		}
	}
	return start
}

// cutAt returns the cut that keeps the path from first on, with the beginning of the turn that it
// splits: one whose reply is not complete before the cut.
func cutAt(path []Entry, first int) Cut {
	cut := Cut{first, -1}
	if first < len(path) && path[first].startsTurn() {
		return cut
	}
	last := first - 1
	for last >= 0 && !path[last].InContext {
		last--
	}
	switch {
	case last < 0:
	case path[last].startsTurn():
		cut.TurnStart = last
	case path[last].Role == session.Tool || len(path[last].Calls) > 0 || first < len(path):
		cut.TurnStart = turnStart(path, last)
	}
	return cut
}

// firstOfTail returns the first entry that opencode keeps: the newest turns that fit the budget
// whole, then the end of the turn before, as far as it fits. starts reports where turns begin;
// turns is how many may be kept, negative: all. -1: nothing is kept, also if everything would be.
// Rule: opencode, SessionCompaction.
func firstOfTail(path []Entry, starts func(int) bool, budget int64, turns int) int {
	first, end := -1, len(path)
	valid := validPoints(path)
	for i := len(path) - 1; i >= 0 && turns != 0; i-- {
		if !starts(i) {
			continue
		}
		at, size := fittingEnd(path, valid, i, end, budget)
		if at < 0 {
			break
		}
		first, end, turns = at, i, turns-1
		if budget -= size; at != i {
			break
		}
	}
	if first == 0 {
		return -1
	}
	return first
}

// fittingEnd returns the first entry of a turn from which on it fits the budget, and the weight
// of that end; -1 if nothing fits.
func fittingEnd(path []Entry, valid []bool, start, end int, budget int64) (at int, size int64) {
	for i := start; i < end; i++ {
		size += path[i].Tokens
	}
	for i := start; i < end; i++ {
		if size <= budget && valid[i] {
			return i, size
		}
		size -= path[i].Tokens
	}
	return -1, 0
}
