package contextmgr

import "sessiond/internal/session"

// Plan says what a compaction would hide and keep. Indexes are into the path since the
// effective overlay. The pruning of old tool outputs will stand before the cut: where it
// frees enough, there is none.
type Plan struct {
	Cut
	NoGain string // why there is nothing to do; "" when there is
	Keep   int64  // the keep rule that was used at last, in tokens

	Hidden       int   // messages newly hidden, of those that are in the context
	HiddenTokens int64 // what they weigh
	KeptTokens   int64
	Person       int    // the person's newest message, if it would be hidden and is shown again; -1: none
	Words        *int64 // preset codex: tokens for copies of the person's newest words; nil: none are kept
	WordsRoom    int64  // what those copies may weigh, in tokens of the model; 0: whatever they do
}

// History are the entries of finished turns that the compaction hides.
func (p *Plan) History() (from, to int) {
	if p.Split() {
		return 0, p.TurnStart
	}
	return 0, p.First
}

// Prefix are the entries of a split turn that the compaction hides.
func (p *Plan) Prefix() (from, to int) {
	if p.Split() {
		return p.TurnStart, p.First
	}
	return p.First, p.First
}

// PlanRoom is what a plan must leave room for: it keeps less until the context fits.
type PlanRoom struct {
	Threshold int64 // 0: as large as it comes
	Fixed     int64 // system, tools, initial blocks, pins
	Summary   int64 // at most
}

// MakePlan finds the cut for the path since the effective overlay. Where what is kept would
// not fit beside the summary, it keeps half as much, and half again, down to the last reply.
func MakePlan(path []Entry, rule CutRule, room PlanRoom) Plan {
	p := planOnce(path, rule)
	for room.Threshold > 0 && rule.KeepTokens+rule.KeepMessages > 0 &&
		p.KeptTokens+room.Fixed+room.Summary > room.Threshold {
		if rule.KeepMessages > 0 { // the number of messages yields first
			rule.KeepMessages = 0
		} else {
			rule.KeepTokens /= 2
		}
		if next := planOnce(path, rule); next.First > p.First {
			p = next
		}
	}
	return p
}

func planOnce(path []Entry, rule CutRule) Plan {
	if len(path) == 0 {
		return planAt(path, Cut{0, -1}, 0)
	}
	return planAt(path, FindCut(path, rule), rule.KeepTokens)
}

// planAt says what a cut hides and keeps.
func planAt(path []Entry, cut Cut, keep int64) Plan {
	p := Plan{Cut: cut, Keep: keep, Person: -1}
	if len(path) == 0 {
		p.NoGain = "nothing came since the last compaction"
		return p
	}
	for i := range path {
		switch {
		case !path[i].gives():
		case i < p.First:
			p.Hidden++
			p.HiddenTokens += path[i].Tokens
		default:
			p.KeptTokens += path[i].Tokens
		}
	}
	if p.Split() { // the message that began the turn is shown again
		p.KeptTokens += path[p.TurnStart].Tokens
	}
	for i := len(path) - 1; i >= 0; i-- {
		if !path[i].Person || !path[i].gives() {
			continue
		}
		if i < p.First && i != p.TurnStart { // a program began the turns since
			p.Person = i
			p.KeptTokens += path[i].Tokens
		}
		break
	}
	from, to := p.History()
	pfrom, pto := p.Prefix()
	if !summarises(path[from:to]) && !summarises(path[pfrom:pto]) {
		p.NoGain = "everything that is not hidden already is within what is kept verbatim"
		p.Hidden, p.HiddenTokens = 0, 0
	}
	return p
}

// summarises tells whether there is something to say about the entries: system text is
// never part of a summary.
func summarises(entries []Entry) bool {
	for i := range entries {
		if entries[i].gives() && entries[i].Role != session.System {
			return true
		}
	}
	return false
}
