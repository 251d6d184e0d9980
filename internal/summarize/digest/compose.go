package digest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// share is each section's share of the text's budget. The critical context gets what is left.
var share = [sectionCount]float64{
	goal: 0.12, rules: ruleShare, constraints: 0.3, alsoSaid: 0.25, done: 0.18, inProgress: 0.08,
	blocked: 0.08, decisions: 0.12, next: 0.06, critical: 1,
}

const (
	finding      = 0.8 // what a decision or a result scores above narration
	overRequest  = 2   // what a person's statement scores above a request of the moment
	mostRequests = 3   // the newest of a span
)

// worth is what a section adds to the scores of its old lines: done work can be looked up, a person's wishes cannot be
// guessed.
var worth = [sectionCount]float64{goal: 3, constraints: 1, alsoSaid: 1, decisions: 1, stated: 1, blocked: 0.5}

// longestLine is the limit of a line in bytes.
const longestLine = 320

// composer chooses sentences for the sections of one digest.
type composer struct {
	span    *span
	count   func(string) int64
	limit   int64 // tokens of the summary
	budget  int64 // tokens of the text without the index, for what is not strong
	room    int64 // tokens of the text without the files of the index
	tokens  int64 // of the lines so far
	out     outline
	has     map[string]bool
	alike   map[uint16]int // new lines, by shape
	dropped []line
	scores  []float64
	idle    int64 // tokens that lines of the model which state nothing may still have
}

// compose merges the span into the summary before it.
func (c *composer) compose(old *outline) *outline {
	c.has, c.alike = map[string]bool{}, map[uint16]int{}
	c.scores = c.span.scores()
	c.idle = int64(idleShare * float64(c.budget))
	fresh := c.candidates(len(old.lines[goal]) == 0)
	c.addRules(old)
	c.keepOld(old, fresh)
	for _, s := range [...]section{goal, constraints, alsoSaid, decisions, inProgress, blocked, next, done, critical} {
		c.fill(s, fresh[s], min(int64(share[s]*float64(c.budget)), c.room-c.tokens))
	}
	if c.out.empty() && len(c.span.msgs) > 0 {
		c.addLine(critical, fmt.Sprintf("%d messages that say nothing to keep.", len(c.span.msgs)), 0)
	}
	for s := range c.out.lines {
		slices.SortStableFunc(c.out.lines[s], func(a, b line) int { return cmp.Compare(a.order, b.order) })
	}
	return &c.out
}

// addRules adds the standing rules, the old ones first. Those that do not fit their budget are among the person's
// wishes, with their message, by which the next digest knows them.
func (c *composer) addRules(old *outline) {
	known := slices.Clone(old.lines[rules])
	old.lines[constraints] = slices.DeleteFunc(old.lines[constraints], func(l line) bool {
		if !nameBehind.MatchString(l.text) {
			return false
		}
		known = append(known, l)
		return true
	})
	known = slices.DeleteFunc(known, func(l line) bool { return c.span.wasQuoted(l.text) })
	in := rules
	room := map[section]int64{rules: rulesBudget(c.limit), constraints: int64(share[constraints] * float64(c.budget))}
	for i, l := range c.span.standingRules(known) {
		n := c.addLine(in, l.text, room[in])
		if n == 0 && in == rules && room[constraints] > 0 {
			in = constraints
			n = c.addLine(in, l.text, room[in])
		}
		if n == 0 {
			c.dropped = append(c.dropped, l)
			continue
		}
		room[in] = max(room[in]-n, 1)
		c.out.lines[in][len(c.out.lines[in])-1].order = i
		c.has[nameBehind.ReplaceAllString(l.text, "")] = true // no constraint repeats it
	}
}

// keepOld copies the lines of the old summary and drops some if they leave too little room for new
// ones. New next steps and work in progress replace old ones.
func (c *composer) keepOld(old *outline, fresh [sectionCount][]int) {
	idle := c.oldIdle(old)
	for s := range sectionCount {
		for k, l := range old.lines[s] {
			if c.has[l.text] || s == rules || idle[l.text] {
				continue
			}
			if (s == inProgress || s == next) && len(fresh[s]) > 0 {
				c.dropped = append(c.dropped, l)
				continue
			}
			c.has[l.text] = true
			l.order = k - len(old.lines[s])
			l.tokens = c.count("- " + l.text + "\n")
			c.tokens += l.tokens
			c.out.lines[s] = append(c.out.lines[s], l)
		}
	}
	if free := headings + c.wanted(fresh); c.tokens > c.budget-free {
		c.dropWorst(c.budget-free, c.room-free)
	}
}

// idleShare is the share of the budget for lines of the model that state nothing, half of it for old ones.
const idleShare = 0.12

// oldIdle returns the old lines of the model which state nothing and have no room, the oldest first, as far as more
// than half of the summary is used. It counts the others.
func (c *composer) oldIdle(old *outline) map[string]bool {
	used := c.tokens
	for _, lines := range old.lines {
		for _, l := range lines {
			used += c.count("- " + l.text + "\n")
		}
	}
	var texts []string
	var msgs []session.Message
	for _, s := range [...]section{critical, done, decisions} {
		for _, l := range old.lines[s] {
			if strings.HasPrefix(l.text, "model: ") && !strings.Contains(l.text, answered) {
				texts, msgs = append(texts, l.text), append(msgs, saidBy(l.text))
			}
		}
	}
	states := map[int]bool{}
	sp := scanFor(msgs, false, session.Givers{})
	for k := range sp.sentences {
		states[sp.sentences[k].msg] = states[sp.sentences[k].msg] || !sp.sentences[k].isIdle()
	}
	idle, excess := map[string]bool{}, -c.idle/2
	for i, text := range texts {
		if !states[i] {
			excess += c.count("- " + text + "\n")
		}
	}
	for i, text := range texts {
		n := c.count("- " + text + "\n")
		switch {
		case states[i]:
		case excess > 0 && used-n >= c.limit/2:
			idle[text] = true
			excess, used = excess-n, used-n
		default:
			c.idle -= n
		}
	}
	return idle
}

const (
	headings = 24 // tokens

	// A line with this score takes the place of entries of the index: what a person stated with a name or a number,
	// a decision, a result of a tool.
	strong = 5

	// Limits of what new lines get of a full summary, as shares: as much as the strong ones need.
	leastNew = 0.12
	mostNew  = 0.3
)

// wanted returns the tokens that old lines leave to new ones.
func (c *composer) wanted(fresh [sectionCount][]int) int64 {
	wanted, counted := int64(0), map[int]bool{}
	for _, ks := range fresh {
		for _, k := range ks {
			if c.scores[k] >= strong && !counted[k] {
				counted[k] = true
				wanted += c.count("- " + CutText(c.span.sentences[k].text, longestLine) + "\n")
			}
		}
	}
	return min(max(wanted, int64(leastNew*float64(c.budget))), int64(mostNew*float64(c.budget)))
}

// dropWorst drops the old lines with the lowest scores, the oldest first among equals, until few tokens are left, or
// many if the rest is strong.
func (c *composer) dropWorst(few, many int64) {
	type place struct {
		s     section
		text  string
		score float64
	}
	var places []place
	var msgs []session.Message
	for s := range sectionCount {
		for _, l := range c.out.lines[s] {
			if s != rules && !(s == constraints && nameBehind.MatchString(l.text)) {
				places = append(places, place{s, l.text, math.Inf(-1)})
				msgs = append(msgs, saidBy(l.text))
			}
		}
	}
	sp := scanFor(msgs, false, session.Givers{})
	for k, score := range sp.scores() {
		p := &places[sp.sentences[k].msg]
		p.score = max(p.score, score+worth[p.s])
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.score, b.score) })
	for _, p := range places {
		if c.tokens <= few || c.tokens <= many && p.score >= strong {
			return
		}
		lines := c.out.lines[p.s]
		i := slices.IndexFunc(lines, func(l line) bool { return l.text == p.text })
		c.tokens -= lines[i].tokens
		c.dropped = append(c.dropped, lines[i])
		c.out.lines[p.s] = slices.Delete(lines, i, i+1)
	}
}

// saidBy returns the message that a line of a digest quotes.
func saidBy(text string) session.Message {
	m := personSaid(text)
	if said, ok := strings.CutPrefix(text, "model: "); ok {
		m.Role, m.Origin, m.Parts[0].Text = session.Assistant, session.Model, said
	} else if said, ok := strings.CutPrefix(text, "tool: “"); ok {
		m.Role, m.Origin, m.Parts[0].Text = session.Tool, session.ByTool, strings.TrimSuffix(said, "”")
	}
	return m
}

// fill adds the candidates of a section, the best first, within limit tokens.
func (c *composer) fill(s section, candidates []int, limit int64) {
	for _, k := range candidates {
		sen := &c.span.sentences[k]
		text := c.span.quote(sen, CutText(sen.text, longestLine))
		if s == decisions {
			text = c.withQuestion(k)
		}
		if c.has[text] || c.has[sen.text] || c.alike[sen.shape] >= maxAlike(sen.by) {
			continue
		}
		most := limit
		if c.scores[k] < strong {
			most = min(limit, c.budget-c.tokens)
		}
		if sen.isIdle() {
			most = min(most, c.idle)
		}
		if most < 8 {
			continue
		}
		if n := c.addLine(s, text, most); n > 0 {
			limit -= n
			if sen.isIdle() {
				c.idle -= n
			}
			c.has[sen.text] = true
			c.alike[sen.shape]++
			l := c.out.lines[s]
			l[len(l)-1].order = k
		}
		if limit < 8 {
			return
		}
	}
}

// maxAlike returns the limit of lines that differ only in their numbers.
func maxAlike(by speaker) int {
	if by == byPerson {
		return 6
	}
	return 3
}

// addLine adds a line if it fits the limit (0: none) and returns its tokens; 0 if it does not fit.
func (c *composer) addLine(s section, text string, limit int64) int64 {
	n := c.count("- " + text + "\n")
	if len(c.out.lines[s]) == 0 {
		n += c.count(s.heading() + "\n\n")
	}
	if limit > 0 && n > limit {
		return 0
	}
	c.tokens += n
	c.has[text] = true
	c.out.lines[s] = append(c.out.lines[s], line{text: text, tokens: n})
	return n
}

// answered stands between the model's question and a person's answer.
const answered = " → "

// withQuestion returns a person's answer behind the model's question.
func (c *composer) withQuestion(k int) string {
	s := c.span.sentences
	q := c.questionBefore(k)
	if q < 0 {
		return c.span.quote(&s[k], CutText(s[k].text, longestLine))
	}
	return byModel.quote(CutText(s[q].text, longestLine/2)) + answered + c.span.answer(&s[k])
}

// answer returns a person's answer behind the question.
func (sp *span) answer(s *sentence) string {
	short := CutText(s.text, longestLine/2)
	if text := sp.quote(s, short); text != short {
		return text
	}
	return byPerson.label() + ": " + short
}

// questionBefore returns the model's question that sentence k, a person's, answers: the last
// sentence of the message before; -1 if there is none.
func (c *composer) questionBefore(k int) int {
	s := c.span.sentences
	if s[k].by != byPerson || s[k].nth != 0 || k == 0 {
		return -1
	}
	q := k - 1
	if s[q].by == byModel && s[q].msg < s[k].msg && isQuestion(s[q].text) {
		return q
	}
	return -1
}

// candidates returns the sentences that fit each section, the best first.
func (c *composer) candidates(needGoal bool) (found [sectionCount][]int) {
	sp := c.span
	unresolved := sp.unresolved()
	lastPerson, lastModel, final := sp.lastTurn()
	var asked []int
	firstPerson, asker := -1, byPerson
	if !slices.ContainsFunc(sp.sentences, func(s sentence) bool { return s.by == byPerson }) {
		asker = byProgram // the task of a sub-agent
	}
	for k := range sp.sentences {
		s := &sp.sentences[k]
		if s.by == asker && firstPerson < 0 && len(s.terms) > 2 && !s.rule { // a bare command is no goal, nor is a rule
			firstPerson = s.msg
		}
		if s.duplicate || math.IsInf(c.scores[k], -1) ||
			s.isOwn() && !s.noGiver && (s.rule || ruleForgot.MatchString(s.text)) {
			continue
		}
		if s.by == asker && needGoal && s.msg == firstPerson && (s.nth == 0 || s.nth == 1 && !s.pasted && !s.quoted) {
			found[goal] = append(found[goal], k)
			if s.by != byPerson || s.request || !s.isOwn() {
				continue
			}
		}
		switch {
		case s.by == byPerson && c.questionBefore(k) >= 0:
			found[decisions] = append(found[decisions], k)
		case s.by == byPerson && s.msg == lastPerson && !final && s.nth == 0 && s.request:
			found[inProgress] = append(found[inProgress], k)
		case s.isOwn() && s.request:
			asked = append(asked, k)
			continue
		case s.isOwn() && !s.noGiver && wishForm.MatchString(s.text):
			found[constraints] = append(found[constraints], k)
		case s.isOwn() && !s.saysNothing():
			found[alsoSaid] = append(found[alsoSaid], k)
		case s.failed && unresolved[s.msg] && s.isStatement():
			found[blocked] = append(found[blocked], k)
		case s.by == byModel && s.msg != lastModel && s.finding:
			found[decisions] = append(found[decisions], k)
		case s.by == byModel && s.msg == lastModel && final && !s.saysNothing() &&
			(isQuestion(s.text) || nextForm.MatchString(s.text)):
			found[next] = append(found[next], k)
		case s.by == byModel && s.msg == lastModel && s.last && !final:
			found[inProgress] = append(found[inProgress], k)
		case s.by == byModel && (s.nth == 0 || s.last) && sp.closes(s.msg) && !isQuestion(s.text) && !s.saysNothing() &&
			!s.isNoProse():
			found[done] = append(found[done], k)
		case (s.by == byTool || s.by == byProgram) && !s.isStatement(), s.saysNothing():
			continue
		}
		found[critical] = append(found[critical], k)
	}
	found[alsoSaid] = append(found[alsoSaid], asked[max(0, len(asked)-mostRequests):]...)
	c.lastWords(&found)
	for s := range found {
		if section(s) != goal {
			found[s] = c.best(found[s], s == int(critical))
		}
	}
	return found
}

// lastWords adds the model's last sentence where nothing else of the model was found: "That is worse." is
// better than nothing.
func (c *composer) lastWords(found *[sectionCount][]int) {
	sentences := c.span.sentences
	for _, ks := range found {
		if slices.ContainsFunc(ks, func(k int) bool { return sentences[k].by == byModel }) {
			return
		}
	}
	for k := len(sentences) - 1; k >= 0; k-- {
		if s := &sentences[k]; s.by == byModel && !s.duplicate && !announced.MatchString(s.text) {
			found[done] = append(found[done], k)
			return
		}
	}
}

// best sorts sentences by score, the newer first among equals, and returns as many as could ever
// fit. With spread, it returns at most three of one message.
func (c *composer) best(ks []int, spread bool) []int {
	slices.SortFunc(ks, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.scores[b], c.scores[a]), cmp.Compare(b, a))
	})
	wanted := int(c.budget/4) + 8
	if !spread {
		return ks[:min(len(ks), wanted)]
	}
	per := map[int]int{}
	out := ks[:0]
	for _, k := range ks {
		if msg := c.span.sentences[k].msg; per[msg] < 3 {
			per[msg]++
			out = append(out, k)
		}
		if len(out) == wanted {
			break
		}
	}
	return out
}

// closes reports whether message i ends a piece of work: a complete reply without calls.
func (sp *span) closes(i int) bool {
	m := &sp.msgs[i]
	return m.Role == session.Assistant && len(m.Calls()) == 0 && (m.Finish == "" || m.Finish == session.FinishStop)
}

// lastTurn returns the indexes of the last messages of a person and of the model, and whether the
// model's closes the turn.
func (sp *span) lastTurn() (person, model int, final bool) {
	person, model = -1, -1
	for i := len(sp.msgs) - 1; i >= 0 && (person < 0 || model < 0); i-- {
		switch by := speakerOf(&sp.msgs[i]); {
		case by == byPerson && person < 0:
			person = i
		case by == byModel && model < 0 && sp.msgs[i].Text() != "":
			model = i
		}
	}
	return person, model, model > person && sp.closes(model)
}

// unresolved returns the messages with a failed result after which no call of the same tool
// succeeded.
func (sp *span) unresolved() map[int]bool {
	failed, succeeded := map[int]bool{}, map[string]bool{}
	for i, m := range slices.Backward(sp.msgs) {
		for _, p := range m.Results() {
			if p.Failed() {
				failed[i] = !succeeded[p.ToolName]
			} else {
				succeeded[p.ToolName] = true
			}
		}
	}
	return failed
}
