package digest

import (
	"cmp"
	"slices"

	"sessiond/internal/session"
)

// The largest share of a summary's budget for the lines that say what the model left out, and their share of the
// index's budget where the model leaves no room.
const (
	statedShare     = 0.25
	statedOfTheRest = 0.5
)

// alsoStated returns the section of lines whose numbers, versions or URLs the model's text lacks, within limit
// tokens; "" for none. They are what a person or the model said and what a tool established, the best first chosen,
// then the lines of the section before. A number is the same in every language.
func (sp *span) alsoStated(old []line, text string, limit int64, count func(string) int64) string {
	missing := sp.missingFrom(text)
	fresh := sp.bestLines(func(k int, s *sentence) bool {
		said := s.by == byPerson && !s.pasted && !s.rule && !isQuestion(s.text)
		return missing[k] && (said || s.finding || s.by == byModel && !s.isNoProse())
	})
	before := make([]session.Message, len(old))
	for i := range old {
		before[i] = personSaid(old[i].text)
	}
	past := scan(before)
	kept := map[int]bool{}
	for k := range past.missingFrom(text) {
		kept[past.sentences[k].msg] = true
	}
	for i, l := range slices.Backward(old) { // the newest first
		if kept[i] {
			fresh = append(fresh, line{text: l.text, order: i - len(old)})
		}
	}
	limit -= count("\n\n" + stated.heading() + "\n")
	var o outline
	for _, l := range fresh {
		if n := count("- " + l.text + "\n"); n <= limit {
			limit -= n
			o.lines[stated] = append(o.lines[stated], l)
		}
	}
	slices.SortFunc(o.lines[stated], func(a, b line) int { return cmp.Compare(a.order, b.order) })
	return o.render()
}

// missingFrom returns the sentences with a number, a version or a URL that a text lacks.
func (sp *span) missingFrom(text string) map[int]bool {
	missing := map[int]bool{}
	for _, f := range sp.facts {
		switch f.kind {
		case factNumber, factVersion, factURL, factAmount:
			if !containsWhole(text, f.text) {
				missing[f.sentence] = true
			}
		case factName, factIdentifier, factPath:
		}
	}
	return missing
}
