package contextmgr

// How much opencode keeps behind a summary: a quarter of what is usable, within these, in tokens.
const (
	leastTail = 2000
	mostTail  = 15000
)

// tailBudget is how many tokens of the newest turns opencode keeps.
func tailBudget(usable int64) int64 { return min(max(usable/4, leastTail), mostTail) }

// selectTail finds the first entry that opencode keeps: the newest turns that fit the budget
// whole, then as much of the end of the one before as fits what is left. starts tells where turns
// begin; most is how many turns count, below 0: all. -1: nothing is kept, and so it is where
// everything would be. Rule: opencode, SessionCompaction.
func selectTail(path []Entry, starts func(int) bool, budget int64, most int) int {
	first, end := -1, len(path)
	valid := validPoints(path)
	for i := len(path) - 1; i >= 0 && most != 0; i-- {
		if !starts(i) {
			continue
		}
		at, size := tailOf(path, valid, i, end, budget)
		if at < 0 {
			break
		}
		first, end, most = at, i, most-1
		if budget -= size; at != i {
			break
		}
	}
	if first == 0 {
		return -1
	}
	return first
}

// tailOf gives the first entry from which on a turn fits, and what that weighs; -1 for none.
func tailOf(path []Entry, valid []bool, start, end int, budget int64) (at int, size int64) {
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

// planTail plans as opencode compacts. What no reply has answered yet stays in any case.
func planTail(path []Entry, budget int64, room PlanRoom) Plan {
	waiting := unanswered(path)
	for {
		first := selectTail(path, func(i int) bool { return path[i].startsTurn() }, budget, -1)
		if first < 0 || first > waiting {
			first = waiting
		}
		p := planAt(path, cutAt(path, first), budget)
		if room.Threshold <= 0 || budget <= 0 || p.KeptTokens+room.Fixed+room.Summary <= room.Threshold {
			return p
		}
		budget /= 2
	}
}
