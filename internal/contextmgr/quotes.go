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

// A hit may be a tool's output with a whole file, of which a line or two answer the question.
// quoteHits quotes passages: places where the terms of the question stand close together.

// quoteInput is what a recall block is made of.
type quoteInput struct {
	hits   []Hit
	terms  []string
	budget int64 // tokens
	mask   func(string) string
	weigh  Weigh
}

// quoter collects passages while there is room.
type quoter struct {
	quoteInput
	texts  []string
	beside map[int][2]string // quotes of the neighbours before and after, by hit
	chosen [][]passage       // by hit
	order  []int             // hits with passages, best first
	room   int64             // tokens
}

const (
	hitsWithNeighbours = 3   // best hits that are quoted with the messages beside them
	neighbourRunes     = 150 // quoted of a message beside a hit
	relevantShare      = 0.6 // of the best passage's score: the rest would use up what later questions may recall
)

// quoteHits quotes the best passages of the hits within the budget, each with the role that said
// it. The text is empty if nothing fits.
func quoteHits(in quoteInput) frozenText {
	const open, shut = session.QuotesOpen + "From what is hidden of this conversation, word for word:\n", session.QuotesClose
	var texts []string
	var rows []int64
	for i, size := 0, 0; i < len(in.hits) && size < maxHitsBytes; i++ {
		texts = append(texts, in.mask(searchableText(&in.hits[i].Message))) // before cutting: half a secret has no pattern
		rows = append(rows, in.hits[i].Message.RowID)
		size += len(texts[i])
	}
	q := quoter{quoteInput: in, texts: texts, beside: map[int][2]string{}, chosen: make([][]passage, len(in.hits)), room: in.budget - in.weigh.Text(open+shut)}
	found := findPassages(texts, rows, in.terms)
	for _, p := range found {
		if p.score >= relevantShare*found[0].score {
			q.addIfRoom(p)
		}
	}
	if len(q.order) == 0 {
		return frozenText{}
	}
	out := frozenText{}
	var body strings.Builder
	for _, i := range q.order {
		body.WriteString(q.quote(i))
		out.Sources = append(out.Sources, in.hits[i].Message.ID)
	}
	out.Text = open + body.String() + shut
	out.Tokens = in.weigh.Text(out.Text)
	return out
}

// searchableText returns what was said in a message, and the tools and arguments that it calls.
func searchableText(m *session.Message) string {
	text := session.WithoutEcho(m.Text())
	for _, p := range m.Calls() {
		text += "\n" + p.ToolName + " " + p.Arguments
	}
	return strings.TrimPrefix(text, "\n")
}

func (q *quoter) addIfRoom(p passage) {
	before := int64(0)
	if len(q.chosen[p.hit]) > 0 {
		before = q.weigh.Text(q.quote(p.hit))
	} else {
		q.order = append(q.order, p.hit)
	}
	q.chosen[p.hit] = append(q.chosen[p.hit], p)
	cost := q.weigh.Text(q.quote(p.hit)) - before
	if cost <= q.room {
		q.room -= cost
		return
	}
	q.chosen[p.hit] = q.chosen[p.hit][:len(q.chosen[p.hit])-1]
	if len(q.chosen[p.hit]) == 0 {
		q.order = q.order[:len(q.order)-1]
	}
}

// quote returns the chosen passages of a hit, in the order of its text, with its neighbours.
func (q *quoter) quote(i int) string {
	text := quoteOf(&q.hits[i].Message, joinPassages(q.texts[i], q.chosen[i]))
	if slices.Index(q.order, i) >= hitsWithNeighbours {
		return text
	}
	beside, known := q.beside[i]
	if !known {
		for k := range q.hits[i].Neighbours {
			n, side := &q.hits[i].Neighbours[k], 0
			if n.RowID > q.hits[i].Message.RowID {
				side = 1
			}
			beside[side] += quoteOf(n, excerpt(q.mask(session.WithoutEcho(n.Text())), q.terms, neighbourRunes))
		}
		q.beside[i] = beside
	}
	return beside[0] + text + beside[1]
}

// quoteOf quotes a text of a message; "" if it is blank.
func quoteOf(m *session.Message, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return session.Quote(m.ID, string(m.Role), text)
}

// joinPassages joins passages in the order of their text, with … for what is left out.
func joinPassages(text string, chosen []passage) string {
	chosen = slices.SortedFunc(slices.Values(chosen), func(a, b passage) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, p := range chosen {
		if p.from > at {
			b.WriteString("… ")
		}
		b.WriteString(strings.TrimSpace(text[p.from:p.to]) + " ")
		at = p.to
	}
	if at < len(text) {
		b.WriteString("…")
	}
	return strings.TrimSpace(b.String())
}

// excerpt returns a stretch of at most limit runes that holds the most different terms.
func excerpt(text string, terms []string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	lower := make([]rune, len(runes)) // rune by rune, so that positions stay
	for i, r := range runes {
		lower[i] = unicode.ToLower(r)
	}
	type place struct{ at, term int }
	var places []place
	for k, term := range terms {
		const maxPlaces = 64 // of one term
		want, found := []rune(term), 0
		for i := 0; i+len(want) <= len(lower) && found < maxPlaces; i++ {
			if slices.Equal(lower[i:i+len(want)], want) {
				places, found = append(places, place{i, k}), found+1
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return a.at - b.at })
	start, best := 0, 0
	for i, p := range places {
		distinct := map[int]bool{}
		for _, later := range places[i:] {
			if later.at-p.at > limit*2/3 {
				break
			}
			distinct[later.term] = true
		}
		if len(distinct) > best {
			best, start = len(distinct), p.at
		}
	}
	from := max(0, min(start-limit/6, len(runes)-limit))
	to := from + limit
	out := string(runes[from:to])
	if from > 0 {
		out = "… " + out
	}
	if to < len(runes) {
		out += " …"
	}
	return out
}

const (
	passageReach   = 180 // bytes on each side of a term in which other terms count
	passageRunes   = 300 // of a passage, at most
	passageLead    = 80  // bytes of a passage before the first of its terms
	maxPassages    = 6   // of one message
	maxTermPlaces  = 96  // of one term in one message
	maxAnchorTerms = 3   // rarest terms of a message around which passages are found
	inflected      = 0.7 // weight of a term in another form
)

// passage is a stretch of a hit's text that holds terms.
type passage struct {
	hit      int // index
	from, to int // bytes
	score    float64
}

// passageFinder finds passages in the texts of hits.
type passageFinder struct {
	texts       []string // of the hits
	folded      []string // lower-case, byte by byte
	words       []string // the terms as asked
	stems       []string // the terms without their endings
	wordWeights []float64
	stemWeights []float64
}

// findPassages returns the best passages, best first; of equal ones that of the newer text, which
// has the larger row.
func findPassages(texts []string, rows []int64, terms []string) []passage {
	f := passageFinder{texts: texts, folded: make([]string, len(texts)), words: terms}
	size := 0
	for i, text := range texts {
		f.folded[i] = foldCase(text)
		size += len(text)
	}
	counts := make([][]int, len(texts)) // of stems, by text
	for i := range texts {
		counts[i] = make([]int, len(terms))
	}
	for k, word := range terms {
		stem := stemOf(word)
		stems, whole := 0, 0
		for i, text := range f.folded {
			counts[i][k] = strings.Count(text, stem)
			stems += counts[i][k]
			if counts[i][k] > 0 {
				whole += strings.Count(text, word)
			}
		}
		f.stems = append(f.stems, stem)
		f.stemWeights = append(f.stemWeights, inflected*rarity(stems, size))
		f.wordWeights = append(f.wordWeights, rarity(whole, size))
	}
	var all []passage
	for i := range texts {
		all = append(all, f.best(i, counts[i])...)
	}
	slices.SortStableFunc(all, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(rows[b.hit], rows[a.hit]), a.from-b.from)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p passage) bool { return repeats(texts[p.hit][p.from:p.to], seen) })
}

// repeats reports whether most lines of a passage were seen before, as in a file that is read again
// and again. It adds its lines to seen.
func repeats(text string, seen map[string]bool) bool {
	lines := strings.Split(text, "\n")
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one is cut somewhere
	}
	size, old := 0, 0
	for i, line := range lines {
		// Tools print different things before a line.
		line = strings.TrimSpace(strings.TrimLeftFunc(line, func(r rune) bool { return !unicode.IsLetter(r) }))
		lines[i] = line
		size += len(line)
		if seen[line] {
			old += len(line)
		}
	}
	for _, line := range lines {
		seen[line] = true
	}
	return size > 0 && old*10 >= size*6
}

// rarity weighs a term that occurs n times in this many bytes.
func rarity(n, size int) float64 {
	return math.Log1p(float64(size) / passageReach / float64(max(1, n)))
}

// stemOf cuts the ending off a longer word, in whatever language.
func stemOf(term string) string {
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

// foldCase returns s in lower case, with every byte in its place.
func foldCase(s string) string {
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

// best returns the best passages of one text, around its rarest terms.
func (f *passageFinder) best(hit int, counts []int) []passage {
	var order []int
	for k, n := range counts {
		if n > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.stemWeights[b], f.stemWeights[a]) })
	var found []passage
	for _, k := range order[:min(len(order), maxAnchorTerms)] {
		text, stem := f.folded[hit], f.stems[k]
		for at, n := 0, 0; n < maxTermPlaces; n++ {
			i := strings.Index(text[at:], stem)
			if i < 0 {
				break
			}
			found = append(found, f.around(hit, k, at+i, order))
			at += i + len(stem)
		}
	}
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	var out []passage
	for _, p := range found {
		if len(out) == maxPassages {
			break
		}
		if !slices.ContainsFunc(out, func(o passage) bool { return p.from < o.to && o.from < p.to }) {
			out = append(out, p)
		}
	}
	return out
}

// around returns the passage around a term at a byte, scored by the terms near it.
func (f *passageFinder) around(hit, term, at int, order []int) passage {
	text := f.folded[hit]
	from, to := max(0, at-passageReach), min(len(text), at+len(f.stems[term])+passageReach)
	before, after := text[from:at], text[at:to]
	p := passage{hit: hit, score: f.weight(term, text[from:to])}
	lo, hi := at, at+len(f.stems[term])
	for _, k := range order {
		if k == term {
			continue
		}
		left, right := strings.LastIndex(before, f.stems[k]), strings.Index(after, f.stems[k])
		var between string
		switch {
		case left < 0 && right < 0:
			continue
		case left < 0 || right >= 0 && right < len(before)-left:
			between = after[:right]
			hi = max(hi, at+right+len(f.stems[k]))
		default:
			between = before[left:]
			lo = min(lo, from+left)
		}
		nearness := 1 - 0.4*float64(len(between))/passageReach
		if strings.Contains(between, "\n") {
			nearness *= 0.7
		}
		p.score += f.weight(k, text[from:to]) * nearness
	}
	p.from, p.to = widen(f.texts[hit], lo, hi)
	return p
}

// weight returns the weight of a term in a text that holds its stem.
func (f *passageFinder) weight(k int, text string) float64 {
	if strings.Contains(text, f.words[k]) {
		return f.wordWeights[k]
	}
	return f.stemWeights[k]
}

// widen extends text[lo:hi] to a passage: back to the beginning of its line, if that is near, and
// on until the passage is full.
func widen(text string, lo, hi int) (from, to int) {
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
