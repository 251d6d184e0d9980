package contextmgr

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// A hit is a message, and a tool's output may be a whole file: what answers the question is a
// line or two of it. passages finds the places where the words of the question stand close
// together, over all hits, and ranks those.

const (
	passageNear    = 180 // bytes on each side of a word within which the others count
	passageRunes   = 300 // of a passage, at most
	passageLead    = 80  // bytes of it that stand before the first of its words
	passageOf      = 6   // passages of one message, at most
	passageAnchors = 96  // places of one word in one message that are looked at
)

// passage is a stretch of a hit's text that holds words of the question.
type passage struct {
	hit      int // index
	from, to int // bytes
	score    float64
}

// seeker looks for terms in the texts of hits.
type seeker struct {
	texts  []string // of the hits
	folded []string // in small letters, byte by byte
	terms  []string // without their endings, by which they are found inside other words
	whole  []string // as they were asked
	weight [2][]float64
}

// Indexes of a seeker's weights.
const (
	ofRoot = iota
	ofWhole
)

// passages gives the best stretches of texts, best first; of equal ones that of the newer text,
// which is the one with the larger row. Texts are in the order of the hits.
func passages(texts []string, rows []int64, terms []string) []passage {
	s := seeker{texts: texts, folded: make([]string, len(texts)), whole: terms}
	size := 0
	for i, text := range texts {
		s.folded[i] = fold(text)
		size += len(text)
	}
	for _, t := range terms {
		s.terms = append(s.terms, rootOf(t))
	}
	counts := make([][]int, len(texts)) // of roots, by text
	for i := range texts {
		counts[i] = make([]int, len(terms))
	}
	for k, term := range terms {
		root, whole := 0, 0
		for i, text := range s.folded {
			counts[i][k] = strings.Count(text, s.terms[k])
			root += counts[i][k]
			if counts[i][k] > 0 {
				whole += strings.Count(text, term)
			}
		}
		s.weight[ofRoot] = append(s.weight[ofRoot], inflected*rarity(root, size))
		s.weight[ofWhole] = append(s.weight[ofWhole], rarity(whole, size))
	}
	var all []passage
	for i := range texts {
		all = append(all, s.best(i, counts[i])...)
	}
	slices.SortStableFunc(all, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(rows[b.hit], rows[a.hit]), a.from-b.from)
	})
	taken := map[string]bool{}
	return slices.DeleteFunc(all, func(p passage) bool { return known(texts[p.hit][p.from:p.to], taken) })
}

// known tells whether most of a passage was quoted already, as where a file is read again and
// again, and notes its lines.
func known(text string, taken map[string]bool) bool {
	lines := strings.Split(text, "\n")
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one is cut somewhere
	}
	size, old := 0, 0
	for i, line := range lines {
		// What a tool prints before a line differs.
		line = strings.TrimSpace(strings.TrimLeftFunc(line, func(r rune) bool { return !unicode.IsLetter(r) }))
		lines[i] = line
		size += len(line)
		if taken[line] {
			old += len(line)
		}
	}
	for _, line := range lines {
		taken[line] = true
	}
	return size > 0 && old*10 >= size*6
}

// inflected is what a word counts that stands there in another form.
const inflected = 0.7

// rarity weighs what occurs n times in so many bytes.
func rarity(n, size int) float64 { return math.Log1p(float64(size) / passageNear / float64(max(1, n))) }

// rootOf cuts what inflects off a longer word, in whatever language: it is looked for inside
// other words.
func rootOf(term string) string {
	if isCJK([]rune(term)[0]) || strings.ContainsFunc(term, unicode.IsDigit) {
		return term
	}
	switch r := []rune(term); {
	case len(r) > 6:
		return string(r[:len(r)-2])
	case len(r) > 4:
		return string(r[:len(r)-1])
	}
	return term
}

// fold gives s in small letters, with every byte in its place.
func fold(s string) string {
	out := []byte(s)
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c >= 'A' && c <= 'Z':
			out[i] = c | 0x20
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if l := unicode.ToLower(r); l != r && utf8.RuneLen(l) == size {
				utf8.EncodeRune(out[i:i+size], l)
			}
			i += size - 1
		}
	}
	return string(out)
}

// best gives the passages of one text: around the places of its two rarest terms.
func (s *seeker) best(hit int, counts []int) []passage {
	var order []int
	for k, n := range counts {
		if n > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.weight[ofRoot][b], s.weight[ofRoot][a]) })
	var found []passage
	for _, k := range order[:min(len(order), 3)] {
		text, term := s.folded[hit], s.terms[k]
		for at, n := 0, 0; n < passageAnchors; n++ {
			i := strings.Index(text[at:], term)
			if i < 0 {
				break
			}
			found = append(found, s.around(hit, k, at+i, order))
			at += i + len(term)
		}
	}
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	var out []passage
	for _, p := range found {
		if len(out) == passageOf {
			break
		}
		if !slices.ContainsFunc(out, func(o passage) bool { return p.from < o.to && o.from < p.to }) {
			out = append(out, p)
		}
	}
	return out
}

// around scores the words around the one at byte at, and gives the stretch that holds them.
func (s *seeker) around(hit, term, at int, order []int) passage {
	text := s.folded[hit]
	from, to := max(0, at-passageNear), min(len(text), at+len(s.terms[term])+passageNear)
	before, after := text[from:at], text[at:to]
	p := passage{hit: hit, score: s.worth(term, text[from:to])}
	lo, hi := at, at+len(s.terms[term])
	for _, k := range order {
		if k == term {
			continue
		}
		left, right := strings.LastIndex(before, s.terms[k]), strings.Index(after, s.terms[k])
		var between string
		switch {
		case left < 0 && right < 0:
			continue
		case left < 0 || right >= 0 && right < len(before)-left:
			between = after[:right]
			hi = max(hi, at+right+len(s.terms[k]))
		default:
			between = before[left:]
			lo = min(lo, from+left)
		}
		near := 1 - 0.4*float64(len(between))/passageNear
		if strings.Contains(between, "\n") {
			near *= 0.7
		}
		p.score += s.worth(k, text[from:to]) * near
	}
	p.from, p.to = stretch(s.texts[hit], lo, hi)
	return p
}

// worth is the weight of a term in a text that holds it.
func (s *seeker) worth(k int, text string) float64 {
	if strings.Contains(text, s.whole[k]) {
		return s.weight[ofWhole][k]
	}
	return s.weight[ofRoot][k]
}

// stretch widens text[lo:hi] to a passage: to the beginning of its line if that is near, and on
// until it is full.
func stretch(text string, lo, hi int) (from, to int) {
	from = max(0, lo-passageLead)
	if nl := strings.LastIndexByte(text[from:lo], '\n'); nl >= 0 && from > 0 {
		from += nl + 1
	}
	for from < lo && !utf8.RuneStart(text[from]) {
		from++
	}
	to = from
	for n := 0; to < len(text) && (n < passageRunes || to < hi); n++ {
		_, size := utf8.DecodeRuneInString(text[to:])
		to += size
	}
	return from, to
}

// lookedIn is the text of a message in which a recall looks: what was said, and what tools were
// called with.
func lookedIn(m *session.Message) string {
	text := m.Text()
	for _, p := range m.Calls() {
		text += "\n" + p.ToolName + " " + p.Arguments
	}
	return strings.TrimPrefix(text, "\n")
}
