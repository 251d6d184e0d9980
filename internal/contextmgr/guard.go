package contextmgr

import (
	"slices"

	"sessiond/internal/session"
)

// Need is what a context's size asks for.
type Need string

// The needs.
const (
	NeedNothing  Need = ""
	NeedStage    Need = "stage"    // above the soft threshold: make a summary ready
	NeedCompact  Need = "compact"  // above the threshold
	NeedChoice   Need = "choice"   // above the threshold, and the caller wants to choose
	NeedRequired Need = "required" // above the limit, and nothing may compact unasked
)

// Decide holds a context's size against the numbers. grown is how many tokens the path has
// grown since the last compaction or undo: until that is 5 % of the window nothing compacts
// by itself, unless the context passes the limit.
func Decide(t Tokens, n Numbers, grown int64) Need {
	over := t.Total > n.Limit
	above := t.Upper() > n.Threshold || over
	switch {
	case over && (n.Off || n.Strategy == StrategyAsk):
		return NeedRequired
	case n.Off:
		return NeedNothing
	case above && n.Strategy == StrategyAsk:
		return NeedChoice
	case above && (over || grown >= n.Window/20):
		return NeedCompact
	case t.Upper() > n.Soft:
		return NeedStage
	}
	return NeedNothing
}

// BestStaged gives the index of the staged overlay to activate, -1 for none: it must follow
// the effective overlay and end on the path. A model's summary goes before a digest, then
// the newest.
func BestStaged(all []session.Compaction, effective *session.Compaction, onPath func(through int64) bool) int {
	best := -1
	for i := range all {
		c := &all[i]
		if c.Status != session.StatusStaged || c.Undone || c.ThroughID == nil || !follows(c, effective) || !onPath(*c.ThroughID) {
			continue
		}
		if best < 0 || byModel(c) || !byModel(&all[best]) {
			best = i
		}
	}
	return best
}

// lateStaged gives the index of a staged summary of just what the effective overlay hides, -1
// for none: it frees nothing, but it is a model's where the effective one is a digest.
func lateStaged(all []session.Compaction, effective *session.Compaction) int {
	if effective == nil || effective.ThroughID == nil {
		return -1
	}
	for i, c := range slices.Backward(all) {
		if c.Status == session.StatusStaged && !c.Undone && follows(&c, effective) && c.ThroughID != nil && *c.ThroughID == *effective.ThroughID {
			return i
		}
	}
	return -1
}

// digestProvider is what digests name as their provider: every other made a model's summary.
const digestProvider = "extractive"

func byModel(c *session.Compaction) bool { return c.Provider != "" && c.Provider != digestProvider }

func follows(c, effective *session.Compaction) bool {
	if c.PreviousID == nil || effective == nil {
		return c.PreviousID == nil && effective == nil
	}
	return *c.PreviousID == effective.RowID
}

// overflowKeep halves what is kept for each overflow in a row.
func overflowKeep(keep int64, inARow int) int64 { return keep >> min(inARow, 40) }
