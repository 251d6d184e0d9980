package contextmgr

import "sessiond/internal/session"

// Plan says what a compaction hides and keeps. Indexes are into the path since the effective
// overlay.
type Plan struct {
	Cut
	NoGain string // why there is nothing to do; "" if there is something

	Hidden       int    // messages newly hidden, of those in the context
	HiddenTokens int64  // their weight
	KeptTokens   int64  // with that of the messages to show again
	ShownTokens  int64  // of the messages to show again
	ShownMax     int64  // one of them may weigh at most so much, in tokens of the model; 0: no limit
	Person       int    // the person's newest message, if it is hidden and shown again; -1: none
	Words        *int64 // preset codex: tokens for copies of the person's newest words; nil: no copies
	WordsRoom    int64  // what those copies may weigh, in tokens of the model; 0: no limit
}

// History returns the hidden entries of finished turns.
func (p *Plan) History() (from, to int) {
	if p.Split() {
		return 0, p.TurnStart
	}
	return 0, p.First
}

// Prefix returns the hidden entries of a split turn.
func (p *Plan) Prefix() (from, to int) {
	if p.Split() {
		return p.TurnStart, p.First
	}
	return p.First, p.First
}

// PlanRoom is the room that a plan must leave: it keeps less until the context fits.
type PlanRoom struct {
	Threshold int64 // 0: no limit
	Fixed     int64 // system, tools, initial blocks, pins
	Summary   int64 // at most
	Shown     int64 // of the messages to show again, at most; 0: they are shown whole
}

func (r *PlanRoom) fits(kept int64) bool {
	return r.Threshold <= 0 || kept+r.Fixed+r.Summary <= r.Threshold
}

// holds reports whether the context of a plan fits.
func (r *PlanRoom) holds(p *Plan) bool {
	kept := p.KeptTokens
	if r.Shown > 0 {
		kept -= max(0, p.ShownTokens-r.Shown)
	}
	return r.fits(kept)
}

// MakePlan plans for the path since the effective overlay. While the kept messages do not fit
// beside the summary, it first drops the rule for messages, then halves the one for tokens.
func MakePlan(path []Entry, rule CutRule, room PlanRoom) Plan {
	if len(path) == 0 {
		return planAt(path, Cut{0, -1})
	}
	p := planAt(path, FindCut(path, rule))
	for rule.KeepTokens+rule.KeepMessages > 0 && !room.holds(&p) {
		if rule.KeepMessages > 0 {
			rule.KeepMessages = 0
		} else {
			rule.KeepTokens /= 2
		}
		if next := planAt(path, FindCut(path, rule)); next.First > p.First {
			p = next
		}
	}
	return p
}

// planAt plans for a given cut.
func planAt(path []Entry, cut Cut) Plan {
	p := Plan{Cut: cut, Person: -1}
	if len(path) == 0 {
		p.NoGain = "nothing to compact: no message came since the last compaction"
		return p
	}
	for i := range path {
		switch {
		case !path[i].InContext:
		case i < p.First:
			p.Hidden++
			p.HiddenTokens += path[i].Tokens
		default:
			p.KeptTokens += path[i].Tokens
		}
	}
	if p.Split() { // the message that began the turn is shown again
		p.ShownTokens += path[p.TurnStart].Tokens
	}
	for i := len(path) - 1; i >= 0; i-- {
		if !path[i].Person || !path[i].InContext {
			continue
		}
		if i < p.First && i != p.TurnStart { // a program began the turns since
			p.Person = i
			p.ShownTokens += path[i].Tokens
		}
		break
	}
	p.KeptTokens += p.ShownTokens
	if !hasContent(path[:p.First]) {
		p.NoGain = "nothing to compact: everything is recent enough to be kept"
		p.Hidden, p.HiddenTokens = 0, 0
	}
	return p
}

// hasContent reports whether a summary of the entries can say anything: system text is never part
// of one.
func hasContent(entries []Entry) bool {
	for i := range entries {
		if entries[i].InContext && entries[i].Role != session.System {
			return true
		}
	}
	return false
}

// planClear hides everything but the open turn. If that does not fit, its beginning is hidden, too, and the
// message that began it is shown again. shows reports whether the overlay before shows anything.
func planClear(path []Entry, room PlanRoom, shows bool) Plan {
	start := openTurn(path)
	cut := Cut{start, -1}
	var weight int64
	for i := start; i < len(path); i++ {
		weight += path[i].Tokens
	}
	if start < len(path) && !room.fits(weight) {
		valid, last, shown := validPoints(path), firstUnanswered(path), path[start].Tokens
		for last > start && (last == len(path) || !valid[last]) {
			last--
		}
		at := start
		for at < last && (!valid[at] || !room.fits(shown+weight)) {
			weight -= path[at].Tokens
			at++
		}
		cut = cutAt(path, at)
	}
	p := planAt(path, cut)
	if p.Person >= 0 { // it is not shown again
		p.KeptTokens, p.ShownTokens = p.KeptTokens-path[p.Person].Tokens, p.ShownTokens-path[p.Person].Tokens
		p.Person = -1
	}
	if p.NoGain = ""; p.Hidden == 0 && !shows {
		p.NoGain = "nothing to clear: the context holds no message before the open turn"
	}
	return p
}

// planTail plans as opencode compacts. Unanswered messages stay in any case.
func planTail(path []Entry, budget int64, room PlanRoom) Plan {
	unanswered := firstUnanswered(path)
	for {
		first := firstOfTail(path, func(i int) bool { return path[i].startsTurn() }, budget, -1)
		if first < 0 || first > unanswered {
			first = unanswered
		}
		p := planAt(path, cutAt(path, first))
		if budget <= 0 || room.holds(&p) {
			return p
		}
		budget /= 2
	}
}

// wordsShare is the part of the threshold that a person's words may fill.
const wordsShare = 0.3

// planWords plans as Codex compacts: only unanswered messages are kept, and copies of the person's
// newest words stand beside the summary.
func planWords(path []Entry, budget int64, room PlanRoom) Plan {
	if len(path) == 0 {
		return planAt(path, Cut{0, -1})
	}
	p := planAt(path, cutAt(path, firstUnanswered(path)))
	if room.Threshold > 0 {
		budget = max(0, min(budget, int64(wordsShare*float64(room.Threshold)),
			room.Threshold-room.Fixed-room.Summary-p.KeptTokens))
		p.WordsRoom = budget
	}
	p.Words = &budget
	return p
}
