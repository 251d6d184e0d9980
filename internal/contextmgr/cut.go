package contextmgr

import "sessiond/internal/session"

// Entry is a message as cutting and planning see it: no content.
type Entry struct {
	RowID     int64
	Kind      session.Kind
	Role      session.Role
	Tokens    int64 // as it would be sent
	InContext bool
	Person    bool     // a person's message
	Reasoning bool     // a reply of nothing but reasoning: it belongs to what follows
	Calls     []string // ids of the calls it makes
	Results   []string // ids of the calls it answers
	Outputs   []Output // the finished outputs it holds, in order
}

// gives tells whether the entry puts anything into a context.
func (e *Entry) gives() bool { return e.InContext }

// cuttable tells whether kept messages may begin here.
func (e *Entry) cuttable() bool {
	if !e.gives() {
		return false
	}
	switch e.Kind {
	case session.KindMessage:
		return e.Role == session.User || e.Role == session.Assistant
	case session.KindBash, session.KindCustomMessage, session.KindBranchSummary:
		return true
	}
	return false
}

// startsTurn tells whether the entry is what a turn begins with.
func (e *Entry) startsTurn() bool {
	return e.cuttable() && e.Role != session.Assistant
}

// CutRule says how much to keep.
type CutRule struct {
	KeepTokens   int64
	KeepMessages int64 // at least, as far as KeepMost allows
	KeepMost     int64 // tokens that KeepMessages may fill
	// MetadataSplits is pi's own reading of a cut that was moved back onto entries without
	// content: it looks for the turn of the entry at the cut, not of the first message after it.
	MetadataSplits bool
}

// Cut says where a path is cut: entries from First on are kept. TurnStart is the entry that
// began the turn which the cut splits, -1 where no turn is split.
type Cut struct {
	First     int
	TurnStart int
}

// Split tells whether the cut lies inside a turn.
func (c Cut) Split() bool { return c.TurnStart >= 0 }

// FindCut finds the first entry to keep verbatim: back from the newest until both keep rules
// are met, then the nearest valid point at or after. It never separates a call from its
// result or a reasoning item from its call. Rule: pi, findCutPoint.
func FindCut(path []Entry, rule CutRule) Cut {
	valid := validPoints(path)
	first, last := -1, -1
	for i := range path {
		if valid[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return Cut{0, -1}
	}
	cut := first
	if reached := walkBack(path, rule); reached >= 0 {
		cut = last
		for i := reached; i < len(path); i++ {
			if valid[i] {
				cut = i
				break
			}
		}
	}
	message := cut
	for cut > 0 && !path[cut-1].gives() {
		cut--
	}
	if !rule.MetadataSplits {
		return Cut{cut, turnStart(path, message)}
	}
	return Cut{cut, turnStart(path, cut)}
}

// walkBack gives the entry at which both keep rules are met, -1 if the path is too short.
func walkBack(path []Entry, rule CutRule) int {
	var sum, count int64
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Tokens == 0 || !path[i].gives() {
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

// turnStart gives the beginning of the turn that a cut at i splits, -1 where it splits none.
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

// validPoints marks where a cut may lie: never at a result, never between a call and its
// result, however late that came, never between reasoning and what it led to.
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
	reach := -1 // the furthest result of a call before i
	for i := range path {
		afterReasoning := i > 0 && path[i-1].Reasoning && path[i].Role == session.Assistant
		valid[i] = path[i].cuttable() && i > reach && !afterReasoning
		if len(path[i].Calls) > 0 {
			reach = max(reach, answered[i])
		}
	}
	return valid
}
