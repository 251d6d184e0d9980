package summarize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// share is the part of the text's budget that each section may fill before the others had
// their turn. What is left over goes to the critical context.
var share = [sectionCount]float64{
	goal: 0.12, constraints: 0.42, done: 0.18, inProgress: 0.08,
	blocked: 0.08, decisions: 0.12, next: 0.06, critical: 1,
}

// longestLine is the length in bytes to which a sentence is cut.
const longestLine = 320

// composer chooses sentences for the sections of one digest.
type composer struct {
	span    *span
	count   func(string) int64
	budget  int64 // of the text without the index
	used    int64
	out     outline
	taken   map[string]bool
	alike   map[uint16]int // lines taken, by shape
	dropped []line
	scores  []float64
}

// compose merges what the span says into the summary before it.
func (c *composer) compose(old *outline) *outline {
	c.taken, c.alike = map[string]bool{}, map[uint16]int{}
	c.scores = c.span.scores()
	fresh := c.candidates(len(old.lines[goal]) == 0)
	c.keepOld(old, fresh)
	for _, s := range [...]section{goal, constraints, decisions, inProgress, blocked, next, done, critical} {
		limit := min(int64(share[s]*float64(c.budget)), c.budget-c.used)
		c.fill(s, fresh[s], limit)
	}
	if c.out.empty() && len(c.span.msgs) > 0 {
		c.put(critical, fmt.Sprintf("%d messages without text.", len(c.span.msgs)), 0)
	}
	for s := range c.out.lines {
		slices.SortStableFunc(c.out.lines[s], func(a, b line) int { return cmp.Compare(a.order, b.order) })
	}
	return &c.out
}

// keepOld takes over the lines of the summary before, as far as they leave room for what is
// new. Old next steps and work in progress give way to newer ones.
func (c *composer) keepOld(old *outline, fresh [sectionCount][]int) {
	any := false
	for s := range fresh {
		any = any || len(fresh[s]) > 0
	}
	for s := range sectionCount {
		for k, l := range old.lines[s] {
			if c.taken[l.text] {
				continue
			}
			if (s == inProgress || s == next) && len(fresh[s]) > 0 {
				c.dropped = append(c.dropped, l)
				continue
			}
			c.taken[l.text] = true
			l.order = k - len(old.lines[s])
			l.tokens = c.count("- " + l.text + "\n")
			c.used += l.tokens
			c.out.lines[s] = append(c.out.lines[s], l)
		}
	}
	limit := c.budget - 24 // headings
	if any {
		limit = c.budget * 65 / 100
	}
	if c.used > limit {
		for _, s := range [...]section{critical, decisions, constraints} {
			leastTellingFirst(c.out.lines[s])
		}
	}
	for c.used > limit {
		l, ok := c.out.dropOldest(true)
		if !ok {
			break
		}
		c.used -= l.tokens
		c.dropped = append(c.dropped, l)
	}
}

// leastTellingFirst orders lines so that those go first which say the least: by the facts that
// they hold and the rarity of their words, as if a person had said them now. What is finished
// goes by its age instead.
func leastTellingFirst(lines []line) {
	msgs := make([]session.Message, len(lines))
	for i := range lines {
		msgs[i] = session.Message{Kind: session.KindMessage, Role: session.User, Origin: session.Person, Parts: []session.Part{session.TextPart(lines[i].text)}}
	}
	sp := scan(msgs, nil)
	best := make(map[string]float64, len(lines))
	for i := range lines {
		best[lines[i].text] = math.Inf(-1)
	}
	for k, score := range sp.scores() {
		text := lines[sp.sentences[k].msg].text
		best[text] = max(best[text], score)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(best[a.text], best[b.text]) })
}

// fill takes the best of the candidates of a section until limit tokens are used.
func (c *composer) fill(s section, candidates []int, limit int64) {
	for _, k := range candidates {
		sen := &c.span.sentences[k]
		text := cutRunes(sen.text, longestLine)
		if s == decisions {
			text = c.answer(k)
		}
		if c.taken[text] || c.taken[sen.text] || c.alike[sen.shape] >= variants(sen.by) {
			continue
		}
		if n := c.put(s, text, limit); n > 0 {
			limit -= n
			c.taken[sen.text] = true
			c.alike[sen.shape]++
			l := c.out.lines[s]
			l[len(l)-1].order = k
		}
		if limit < 8 {
			return
		}
	}
}

// variants is how many lines that differ only in their numbers a digest takes.
func variants(by speaker) int {
	if by == byPerson {
		return 6
	}
	return 3
}

// put adds a line if it is within limit (0: in any case) and gives its tokens.
func (c *composer) put(s section, text string, limit int64) int64 {
	n := c.count("- " + text + "\n")
	if len(c.out.lines[s]) == 0 {
		n += c.count(s.heading() + "\n\n")
	}
	if limit > 0 && n > limit {
		return 0
	}
	c.used += n
	c.taken[text] = true
	c.out.lines[s] = append(c.out.lines[s], line{text: text, tokens: n})
	return n
}

// answer writes a person's answer behind the question that the model had asked.
func (c *composer) answer(k int) string {
	s := c.span.sentences
	q := c.questionBefore(k)
	if q < 0 {
		return cutRunes(s[k].text, longestLine)
	}
	return cutRunes(s[q].text, longestLine/2) + " → " + cutRunes(s[k].text, longestLine/2)
}

// questionBefore gives the model's question that the person's sentence k answers: the last
// sentence of the message right before, or -1.
func (c *composer) questionBefore(k int) int {
	s := c.span.sentences
	if s[k].by != byPerson || s[k].nth != 0 || k == 0 {
		return -1
	}
	q := k - 1
	if s[q].by == byModel && s[q].msg < s[k].msg && question(s[q].text) {
		return q
	}
	return -1
}

// candidates gives, for each section, the sentences that may stand there, the best first.
func (c *composer) candidates(needGoal bool) (found [sectionCount][]int) {
	sp := c.span
	unresolved := sp.unresolved()
	lastPerson, lastModel, final := sp.lastTurn()
	firstPerson := int32(-1)
	for k := range sp.sentences {
		s := &sp.sentences[k]
		if s.by == byPerson && firstPerson < 0 && s.terms[1]-s.terms[0] > 2 { // a bare command is no goal
			firstPerson = s.msg
		}
		if s.duplicate || math.IsInf(c.scores[k], -1) {
			continue
		}
		switch {
		case s.by == byPerson && needGoal && s.msg == firstPerson && s.nth < 2:
			found[goal] = append(found[goal], k)
			continue
		case s.by == byPerson && c.questionBefore(k) >= 0:
			found[decisions] = append(found[decisions], k)
		case s.by == byPerson && s.msg == lastPerson && !final && s.nth == 0:
			found[inProgress] = append(found[inProgress], k)
		case s.by == byPerson && !question(s.text) && !s.pasted:
			found[constraints] = append(found[constraints], k)
		case s.failed && unresolved[s.msg]:
			found[blocked] = append(found[blocked], k)
		case s.by == byModel && s.msg == lastModel && s.last:
			if final {
				found[next] = append(found[next], k)
			} else {
				found[inProgress] = append(found[inProgress], k)
			}
		case s.by == byModel && (s.nth == 0 || s.last) && sp.closes(int(s.msg)):
			found[done] = append(found[done], k)
		}
		found[critical] = append(found[critical], k)
	}
	for s := range found {
		if section(s) != goal {
			found[s] = c.best(found[s], s == int(critical))
		}
	}
	return found
}

// best sorts sentences by score, the newer first among equals, and keeps as many as could
// ever fit. With spread, one message gives at most three.
func (c *composer) best(ks []int, spread bool) []int {
	slices.SortFunc(ks, func(a, b int) int {
		if d := cmp.Compare(c.scores[b], c.scores[a]); d != 0 {
			return d
		}
		return cmp.Compare(b, a)
	})
	wanted := int(c.budget/4) + 8
	if !spread {
		return ks[:min(len(ks), wanted)]
	}
	per := map[int32]int{}
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

// scores gives each sentence its weight. A sentence of no use has minus infinity.
func (sp *span) scores() []float64 {
	out := make([]float64, len(sp.sentences))
	total := float64(max(1, len(sp.msgs)))
	for k := range sp.sentences {
		s := &sp.sentences[k]
		n := int(s.terms[1] - s.terms[0])
		if n == 0 {
			out[k] = math.Inf(-1)
			continue
		}
		alike := log2(sp.alike[s.shape])
		score := [...]float64{byPerson: 3, byModel: 1.4, byTool: 0.4, byProgram: 0.2}[s.by]
		score += 0.45 * float64(min(s.facts, 4))
		rare, asked, wanted := 0.0, 0, 0
		for _, t := range sp.terms[s.terms[0]:s.terms[1]] {
			b := sp.place(t)
			rare += 1 / float64(max(1, sp.count[b]))
			if sp.asked[b] && sp.count[b] < 12 {
				asked++
			}
			if sp.wanted[t] && sp.count[b] < 12 {
				wanted++
			}
		}
		score += float64(min(wanted, 2))
		score += rare / math.Sqrt(float64(n)+6)
		if s.by != byPerson {
			score += 0.25 * float64(min(asked, 4))
		}
		switch at := float64(s.msg) / total; {
		case at > 0.7:
			score += 0.3
		case at < 0.05:
			score += 0.2
		}
		if s.by == byModel && (s.nth == 0 || s.last) {
			score += 0.3
		}
		if s.by == byPerson { // what a person says often may be meant so
			alike /= 2
		}
		score -= 0.7 * alike
		if s.by == byPerson && s.nth > 5 { // far down in what a person sent stands what was pasted
			score -= min(2.5, 0.4*float64(s.nth-5))
		}
		if s.pasted {
			score -= 2
		}
		if s.failed {
			score += 0.4
		}
		if n < 3 {
			score--
		}
		if s.numbers > 6 {
			score -= 0.2 * float64(min(s.numbers-6, 8))
		}
		if s.by == byPerson { // short ones leave room for each other
			score -= float64(len(s.text)) / 300
		}
		out[k] = score - float64(len(s.text))/500
	}
	return out
}

// want marks the words of the user's instructions: what holds a rare one of them is preferred.
func (sp *span) want(instructions string) {
	if strings.TrimSpace(instructions) == "" {
		return
	}
	sp.wanted = map[uint32]bool{}
	for _, t := range sp.reader.read(passage{text: instructions, by: byPerson}).terms {
		sp.wanted[t] = true
		sp.use(t, byPerson)
	}
}

// closes tells whether message i ends a piece of work: a reply without calls that was not
// cut off.
func (sp *span) closes(i int) bool {
	m := &sp.msgs[i]
	return m.Role == session.Assistant && len(m.Calls()) == 0 && (m.Finish == "" || m.Finish == session.FinishStop)
}

// lastTurn gives the last message of a person and of the model, and whether the model's
// closes the turn.
func (sp *span) lastTurn() (person, model int32, final bool) {
	person, model = -1, -1
	for i := len(sp.msgs) - 1; i >= 0 && (person < 0 || model < 0); i-- {
		switch by := speakerOf(&sp.msgs[i]); {
		case by == byPerson && person < 0:
			person = int32(i)
		case by == byModel && model < 0 && sp.msgs[i].Text() != "":
			model = int32(i)
		}
	}
	return person, model, model > person && sp.closes(int(model))
}

// unresolved gives the messages with a failed result after which no call of the same tool
// succeeded: what may still be in the way.
func (sp *span) unresolved() map[int32]bool {
	open := map[int32]bool{}
	succeeded := map[string]bool{}
	for i := len(sp.msgs) - 1; i >= 0; i-- {
		for _, p := range sp.msgs[i].Results() {
			if p.IsError != nil && *p.IsError {
				open[int32(i)] = !succeeded[p.ToolName]
			} else {
				succeeded[p.ToolName] = true
			}
		}
	}
	return open
}
