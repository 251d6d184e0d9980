package summarize

import (
	"cmp"
	"math/bits"
	"path"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// indexShare is the part of a summary's budget that its index may take.
const indexShare = 0.22

// Index gives the pieces of the span that a reader may ask for by name and that the summary
// lacks: amounts, versions, URLs, identifiers, names, numbers and paths, literally, the most
// telling first. A number comes with the word that says what it is of. budget is in the
// tokens that count gives. No model is asked; the same span gives the same index. Secrets
// are masked.
func Index(msgs []session.Message, summary string, budget int64, count func(string) int64) []string {
	return scan(msgs, nil).index(nil, summary, nil, budget, count)
}

// index is Index over a scanned span. Entries of an earlier index come first when they are
// still missing from the summary, and give way to new ones from the half of the budget on.
func (sp *span) index(previous []string, summary string, files []string, budget int64, count func(string) int64) []string {
	var out []string
	used := int64(0)
	taken := map[string]bool{}
	named := strings.Join(files, "\n")
	take := func(entry, literal string, limit int64) bool {
		if taken[entry] || holds(summary, literal) || named != "" && namesFile(named, literal) {
			return true
		}
		n := count(entry) + 2 // the separator
		if used+n > limit {
			return false
		}
		taken[entry] = true
		used += n
		out = append(out, entry)
		return true
	}
	fresh := sp.ranked()
	half := budget / 2
	if len(fresh) == 0 {
		half = budget
	}
	for _, entry := range previous {
		if !take(entry, entry, half) {
			break
		}
	}
	kept := len(out)
	misses := 0
	for _, f := range fresh {
		entry := f.text
		if f.label != "" && !strings.Contains(f.label, "·") {
			entry = f.label + " " + f.text
		}
		if !take(entry, f.text, budget) {
			if misses++; misses > 8 {
				break
			}
		}
	}
	for _, entry := range previous { // what new ones left free
		if !take(entry, entry, budget) {
			break
		}
	}
	return append(out[kept:len(out):len(out)], out[:kept]...)
}

// namesFile tells whether lines of files, collapsed by directory, name a path.
func namesFile(lines, literal string) bool {
	dir, name := path.Split(literal)
	return dir != "" && name != "" && holds(lines, name) && strings.Contains(lines, dir)
}

// ranked gives the different facts of the span, the most telling first.
func (sp *span) ranked() []fact {
	best := make(map[string]int, 1024)
	var facts []fact
	var scores []float64
	for _, f := range sp.facts {
		score := sp.telling(&f)
		if k, ok := best[f.text]; ok {
			if score > scores[k] {
				facts[k], scores[k] = f, score
			}
			continue
		}
		if score <= 0 {
			continue
		}
		best[f.text] = len(facts)
		facts = append(facts, f)
		scores = append(scores, score)
	}
	order := make([]int, len(facts))
	for i := range order {
		order[i] = i
	}
	const wanted = 400 // more never fit
	slices.SortFunc(order, func(a, b int) int {
		if scores[a] != scores[b] {
			return cmp.Compare(scores[b], scores[a])
		}
		return a - b
	})
	order = order[:min(len(order), wanted)]
	out := make([]fact, len(order))
	for i, k := range order {
		out[i] = facts[k]
	}
	return out
}

// telling scores a fact by its form, who said it, how rare it is, whether a person used the
// word, and against lists of numbers, in which no single one stands out.
func (sp *span) telling(f *fact) float64 {
	score := [...]float64{factName: 1.8, factNumber: 1, factIdentifier: 2, factPath: 2.4, factVersion: 2.8, factURL: 3.2, factAmount: 3.4}[f.kind]
	s := &sp.sentences[f.sentence]
	switch s.by {
	case byPerson:
		score += 1.5
	case byModel:
		score += 0.6
	case byTool, byProgram:
	}
	k := sp.place(sp.terms[f.term])
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

// log2 is the logarithm of n, rounded down; 0 of 0.
func log2(n uint16) float64 { return float64(max(1, bits.Len16(n)) - 1) }

// holds tells whether text has literal as a whole: $99 is not in $990.
func holds(text, literal string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], literal)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(literal)
		if !joins(text, from-1, literal[0]) && !joins(text, to, literal[len(literal)-1]) {
			return true
		}
		at = from + 1
	}
}

// joins tells whether the byte at i continues a word or number whose edge is c.
func joins(text string, i int, c byte) bool {
	return i >= 0 && i < len(text) && alnum(text[i]) && alnum(c)
}

func alnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
