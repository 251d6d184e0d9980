package digest

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"sessiond/internal/session"
)

// Parts of the budget of Lost.
const (
	lostRules     = 0.5
	lostDecisions = 0.4
	lostNumbers   = 0.9 // of what is left; the rest is for files
)

// toldShare is the share of a sentence's words from which on a sentence of a summary says the same.
const toldShare = 0.7

// Lost returns what another program's summary of messages leaves out, within limit tokens: the person's standing rules,
// decisions and results, sentences with numbers, and modified files; "" for nothing. A summary that is not known tells
// nothing. Secrets are masked.
func Lost(msgs []session.Message, givers session.Givers, summary string, modified []string, limit int64,
	count func(string) int64,
) string {
	sp := scanFor(msgs, true, givers)
	told := newTold(summary)
	var o outline
	room := limit
	add := func(s section, budget int64, lines []line) {
		for _, l := range lines {
			n := count("- " + l.text + "\n")
			if len(o.lines[s]) == 0 {
				n += count(s.heading() + "\n\n")
			}
			if n <= min(budget, room) {
				budget -= n
				room -= n
				o.lines[s] = append(o.lines[s], l)
			}
		}
		slices.SortFunc(o.lines[s], func(a, b line) int { return cmp.Compare(a.order, b.order) })
	}
	var missing []line
	for _, l := range slices.Backward(sp.standingRules(nil)) { // the newest are kept if there are too many
		if !told.says(sp.sentences[l.order].terms) {
			missing = append(missing, l)
		}
	}
	add(rules, int64(lostRules*float64(limit)), missing)
	add(decisions, int64(lostDecisions*float64(limit)), sp.untoldFindings(told))
	text := o.render()
	if numbers := sp.alsoStated(nil, summary+"\n"+text, int64(lostNumbers*float64(room)), count); numbers != "" {
		text = strings.TrimPrefix(text+"\n\n"+numbers, "\n\n")
	}
	unnamed := slices.DeleteFunc(slices.Clone(modified), func(file string) bool {
		return strings.Contains(summary, path.Base(file))
	})
	if files := fileLines(nil, unnamed, limit-count(text)-8, count); len(files) > 0 {
		text = strings.TrimPrefix(text+"\n\n"+files[0], "\n\n")
	}
	return text
}

// untoldFindings returns the decisions of the model and the results of tools that nobody told, the best first.
func (sp *span) untoldFindings(t told) []line {
	return sp.bestLines(func(_ int, s *sentence) bool { return s.finding && len(s.terms) > 2 && !t.says(s.terms) })
}

// bestLines returns lines for the wanted sentences, the best first, without those that repeat others.
func (sp *span) bestLines(wanted func(k int, s *sentence) bool) []line {
	scores := sp.scores()
	var found []line
	for k := range sp.sentences {
		s := &sp.sentences[k]
		if !s.duplicate && int(sp.alike[s.shape]) <= maxAlike(byPerson) && wanted(k, s) {
			found = append(found, line{text: sp.quote(s, CutText(s.text, longestLine)), order: k})
		}
	}
	slices.SortFunc(found, func(a, b line) int {
		return cmp.Or(cmp.Compare(scores[b.order], scores[a.order]), cmp.Compare(b.order, a.order))
	})
	return sp.newestResults(found)
}

// mostResults is the limit of lines that quote tools: what failed before is mended or failed again since.
const mostResults = 4

// newestResults drops lines that quote tools but for the newest, of those that are alike one.
func (sp *span) newestResults(lines []line) []line {
	var results []int // sentences
	for _, l := range lines {
		if sp.sentences[l.order].by == byTool {
			results = append(results, l.order)
		}
	}
	slices.Sort(results)
	kept, shapes := map[int]bool{}, map[string]bool{}
	for _, k := range slices.Backward(results) {
		if shape := shapeOfResult(sp.sentences[k].text); !shapes[shape] && len(kept) < mostResults {
			kept[k], shapes[shape] = true, true
		}
	}
	return slices.DeleteFunc(lines, func(l line) bool {
		return sp.sentences[l.order].by == byTool && !kept[l.order]
	})
}

// shapeOfResult returns the words of a result without names and numbers.
func shapeOfResult(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !strings.ContainsRune("./_-:", r)
	})
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.ContainsAny(w, "./_-:") }), " ")
}

// told knows in which sentences of a summary a term occurs.
type told map[uint32][]int

func newTold(summary string) told {
	t := told{}
	for k, s := range scan([]session.Message{personSaid(summary)}).sentences {
		for _, term := range s.terms {
			if at := t[term]; len(at) == 0 || at[len(at)-1] != k {
				t[term] = append(at, k)
			}
		}
	}
	return t
}

// says reports whether one sentence of the summary has most of the terms.
func (t told) says(terms []uint32) bool {
	held := map[int]int{}
	for _, term := range terms {
		for _, k := range t[term] {
			if held[k]++; float64(held[k]) >= toldShare*float64(len(terms)) {
				return true
			}
		}
	}
	return false
}
