package digest

import (
	"cmp"
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"

	"sessiond/internal/pattern"
)

// indexShare is the index's share of a summary's budget.
const indexShare = 0.15

// mostOfALabel is the limit of numbers with the same label: of "ok 2.4s", a hundred times.
const mostOfALabel = 3

// lineBehind is the line number behind a path in a search's output.
var lineBehind = pattern.New(`[:\-]\d+[:\-]?.*$`)

// index returns the facts of the span that the summary lacks: amounts, versions, URLs, identifiers,
// names, numbers and paths, literally, the best first. A number comes with its label. budget is in
// tokens as count counts them. Entries of an earlier index that the summary lacks get at most half
// of the budget, and what new ones leave. New entries come first.
func (sp *span) index(previous []string, summary string, files []string, budget int64,
	count func(string) int64,
) []string {
	var entries []string
	used := int64(0)
	has := map[string]bool{}
	fileText := strings.Join(files, "\n")
	add := func(entry, literal string, limit int64) (fits bool) {
		if has[entry] || containsWhole(summary, literal) || namesFile(fileText, literal) {
			return true
		}
		n := count(entry) + 2 // the separator
		if used+n > limit {
			return false
		}
		has[entry] = true
		used += n
		entries = append(entries, entry)
		return true
	}
	addPrevious := func(limit int64) {
		for _, entry := range previous {
			if !add(entry, entry, limit) {
				return
			}
		}
	}
	fresh := sp.rankFacts()
	if len(fresh) > 0 {
		addPrevious(budget / 2)
	} else {
		addPrevious(budget)
	}
	old := len(entries)
	misses, labels, places := 0, map[string]int{}, map[string]bool{}
	for _, f := range fresh {
		if f.label != "" {
			if labels[f.label]++; labels[f.label] > mostOfALabel {
				continue
			}
		}
		if place := lineBehind.ReplaceAllString(f.text, ""); f.kind == factPath || place != f.text {
			if places[place] {
				continue
			}
			places[place] = true
		}
		entry := f.text
		if f.label != "" && !strings.Contains(f.label, "·") {
			entry = f.label + " " + f.text
		}
		if !add(entry, f.text, budget) {
			if misses++; misses > 8 {
				break
			}
		}
	}
	addPrevious(budget)
	return slices.Concat(entries[old:], entries[:old])
}

// namesFile reports whether file lines, grouped by directory, name a path.
func namesFile(lines, literal string) bool {
	dir, name := path.Split(literal)
	return dir != "" && name != "" && containsWhole(lines, name) && strings.Contains(lines, dir)
}

// rankFacts returns the different facts of the span with a positive score, the best first.
func (sp *span) rankFacts() []fact {
	type ranked struct {
		fact
		score float64
	}
	index := map[string]int{}
	var facts []ranked
	for _, f := range sp.facts {
		score := sp.scoreFact(&f)
		if k, ok := index[f.text]; ok {
			if score > facts[k].score {
				facts[k] = ranked{f, score}
			}
		} else if score > 0 {
			index[f.text] = len(facts)
			facts = append(facts, ranked{f, score})
		}
	}
	slices.SortStableFunc(facts, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	const wanted = 400 // more never fit
	best := make([]fact, min(len(facts), wanted))
	for i := range best {
		best[i] = facts[i].fact
	}
	return best
}

// emptyWords look like names where they begin a sentence or a comment, or stand in program text everywhere.
var emptyWords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`a also an and any are as at be both but by can could did do does each either every few for
		from had has have he her here his how i if in into is it its just let like many may might more most must my neither no
		none not note now of on one only or other our per she should since so some such than that the their them then there
		these they this those to too two until use used using very via was we were what when where which while who why will
		with would yes yet you your after all again see todo fixme true false null nil undefined return returns
		bool boolean byte char const error float float32 float64 func function int int8 int16 int32 int64 integer
		string uint uint8 uint16 uint32 uint64 usize var void`) {
		set[w] = true
	}
	return set
})

// scoreFact scores a fact by its kind, its speaker, its rarity and whether a person used the word.
// Facts in lists of numbers score less.
func (sp *span) scoreFact(f *fact) float64 {
	score := [...]float64{
		factName: 1.8, factNumber: 1, factIdentifier: 2, factPath: 2.4, factVersion: 2.8, factURL: 3.2,
		factAmount: 3.4,
	}[f.kind]
	s := &sp.sentences[f.sentence]
	switch s.by {
	case byPerson:
		score += 1.5
	case byModel:
		score += 0.6
	case byTool, byProgram:
		if s.isNoProse() {
			score -= 0.5
			if f.kind == factName { // a word of program text or of a licence
				score -= 2
			}
		}
		if s.isLicence() {
			score -= 3
		}
	}
	k := sp.counter(f.term)
	score -= 0.35 * log2(sp.count[k])
	score -= 0.5 * log2(sp.alike[s.shape])
	if s.by != byPerson && sp.asked[k] {
		score += 0.8
	}
	if s.numbers > 4 {
		score -= 0.25 * float64(min(s.numbers-4, 8))
	}
	if f.label != "" {
		score += 0.3
	}
	if len(f.text) > 60 {
		score -= 0.8
	}
	if f.kind == factIdentifier && len(f.text) >= 24 && strings.Count(f.text, "_") == 0 {
		score -= 1.2 // a hash or a uuid
	}
	return score
}

// log2 returns the logarithm of n, rounded down; 0 for 0.
func log2(n uint16) float64 { return float64(max(1, bits.Len16(n)) - 1) }

// containsWhole reports whether text contains literal as a whole: $990 does not contain $99.
func containsWhole(text, literal string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], literal)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(literal)
		if !joinsWord(text, from-1, literal[0]) && !joinsWord(text, to, literal[len(literal)-1]) {
			return true
		}
		at = from + 1
	}
}

// joinsWord reports whether the byte at i continues a word or number that has c at its edge.
func joinsWord(text string, i int, c byte) bool {
	return i >= 0 && i < len(text) && isAlnum(text[i]) && isAlnum(c)
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
