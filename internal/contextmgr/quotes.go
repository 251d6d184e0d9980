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
	found := findPassages(texts, rows, in.terms, passageRunes)
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

// excerpt returns a stretch of at most limit runes that holds the rarest terms, else the beginning.
func excerpt(text string, terms []string, limit int) string {
	spans := windows(text, limit)
	if len(spans) == 1 {
		return text
	}
	best := passage{span: spans[0]}
	if found := findPassages([]string{text}, []int64{0}, terms, limit); len(found) > 0 {
		best = found[0]
	}
	return joinPassages(text, []passage{best})
}

const (
	passageRunes = 300 // of a passage, at most
	inflected    = 0.7 // weight of a term in another form
)

// span is a range of a text, in bytes.
type span struct{ from, to int }

// passage is a stretch of a hit's text that holds terms.
type passage struct {
	span
	hit   int // index
	score float64
}

// findPassages returns the stretches of at most limit runes that hold terms, best first; of equal ones that of the
// newer text, which has the larger row, and the later of a text, in which more follows the terms. None overlap.
func findPassages(texts []string, rows []int64, terms []string, limit int) []passage {
	weigh := weigher(texts, terms)
	var all []passage
	for i, text := range texts {
		for _, s := range windows(text, limit) {
			if score := weigh(text[s.from:s.to]); score > 0 {
				all = append(all, passage{s, i, score})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(rows[b.hit], rows[a.hit]), b.from-a.from)
	})
	seen, taken := map[string]bool{}, make([][]passage, len(texts))
	return slices.DeleteFunc(all, func(p passage) bool {
		if slices.ContainsFunc(taken[p.hit], func(o passage) bool { return p.from < o.to && o.from < p.to }) {
			return true
		}
		taken[p.hit] = append(taken[p.hit], p)
		return repeats(texts[p.hit][p.from:p.to], seen)
	})
}

// windows returns overlapping stretches of at most limit runes: one begins in the middle of the one before, between
// words where the script has spaces.
func windows(text string, limit int) (spans []span) {
	starts := []int{0}
	n, word := 0, 0 // runes since the last start; where the word begins
	for i, r := range text {
		if n++; n > limit/2 {
			if word <= starts[len(starts)-1] {
				word = i
			}
			starts = append(starts, word)
			n = utf8.RuneCountInString(text[word:i]) + 1
		}
		if unicode.IsSpace(r) {
			word = i + utf8.RuneLen(r)
		}
	}
	for i, from := range starts {
		if i+2 >= len(starts) {
			return append(spans, span{from, len(text)})
		}
		spans = append(spans, span{from, starts[i+2]})
	}
	return spans
}

// weigher returns a function that sums the weights of the terms in a stretch of the texts.
func weigher(texts, terms []string) func(string) float64 {
	var folded []string
	size := 0
	for _, text := range texts {
		folded = append(folded, strings.ToLower(text))
		size += len(text)
	}
	type weighted struct {
		word, stem     string
		whole, another float64
	}
	found := make([]weighted, len(terms))
	for k, word := range terms {
		stem := stemOf(word)
		stems, whole := 0, 0
		for _, text := range folded {
			stems += strings.Count(text, stem)
			whole += strings.Count(text, word)
		}
		found[k] = weighted{word, stem, rarity(whole, size), inflected * rarity(stems, size)}
	}
	return func(text string) (sum float64) {
		text = strings.ToLower(text)
		for _, t := range found {
			switch {
			case !strings.Contains(text, t.stem):
			case strings.Contains(text, t.word):
				sum += t.whole
			default:
				sum += t.another
			}
		}
		return sum
	}
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
	return math.Log1p(float64(size) / passageRunes / float64(max(1, n)))
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
