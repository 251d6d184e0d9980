package contextmgr

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
	lang "sessiond/internal/text"
)

// A hit may be a tool's output with a whole file, of which a line or two answer the question.
// quoteHits quotes passages: places where the terms of the question stand close together.

// quoteInput is what a recall block is made of.
type quoteInput struct {
	hits   []Hit
	terms  []string
	quoted string // what the context quotes already
	budget int64  // tokens
	mask   func(string) string
	weigh  Weigh
}

// quotable is a message that may be quoted.
type quotable struct {
	message *session.Message
	text    string
	hit     *Hit // nil: it comes with a person's message
	prompt  int  // the person's message that began its turn; -1: unknown
}

// quoter collects passages while there is room.
type quoter struct {
	quoteInput
	all    []quotable
	found  map[int]bool      // those with a relevant passage
	beside map[int][2]string // quotes of messages before and after, by index
	alone  map[int]bool      // those without room for what is beside them
	chosen [][]passage       // by index
	order  []int             // those with chosen passages, best first
	room   int64             // tokens
}

const (
	hitsWithNeighbours = 2   // best hits that are quoted with the messages beside them
	neighbourRunes     = 150 // quoted of a message beside a hit
	relevantShare      = 0.6 // of the best passage's score: the rest would use up what later questions may recall
	promptShare        = 0.5 // of its weight that a term lends the rest of the turn whose prompt holds it
	askedShare         = 0.5 // of its score that a passage keeps which only asks
	// Below this share of the weight of a question's terms nothing is quoted. A passage may have more than all of it:
	// terms in the form in which they were asked count more.
	leastEvidence = 0.5
	evidenceTerms = 5 // heaviest terms of a question that count for it: a long one is about several things
	mostQuoted    = 6 // passages of one recall: more that are as good are none that were asked for
)

// quoteHits quotes the best passages of the hits within the budget, each with the role that said
// it. The text is empty if nothing fits.
func quoteHits(in quoteInput) frozenText {
	const open, shut = session.QuotesOpen + "From what is hidden of this conversation, word for word:\n",
		session.QuotesClose
	q := quoter{
		quoteInput: in, beside: map[int][2]string{}, alone: map[int]bool{}, found: map[int]bool{},
		room: in.budget - in.weigh.Text(open+shut),
	}
	q.gather()
	q.chosen = make([][]passage, len(q.all))
	relevant := q.relevant()
	for _, p := range relevant {
		q.found[p.source] = true
	}
	for quoted := 0; quoted < mostQuoted && len(relevant) > 0; relevant = relevant[1:] {
		if q.addIfRoom(relevant[0]) {
			quoted++
		}
	}
	if len(q.order) == 0 {
		return frozenText{}
	}
	out := frozenText{}
	var body strings.Builder
	for _, i := range q.order {
		body.WriteString(q.quote(i))
		out.Sources = append(out.Sources, q.all[i].message.ID)
	}
	out.Text = open + body.String() + shut
	out.Tokens = in.weigh.Text(out.Text)
	return out
}

// gather collects the messages that may be quoted: the hits, then the rest of the turns that prompts
// among them began, as far as it holds a term or is a reply.
func (q *quoter) gather() {
	at := map[int64]int{} // by row
	for i, size := 0, 0; i < len(q.hits) && size < maxHitsBytes; i++ {
		h := &q.hits[i]
		at[h.Message.RowID] = len(q.all)
		q.add(quotable{message: &h.Message, hit: h, prompt: -1})
		size += len(q.all[len(q.all)-1].text)
	}
	size := 0
	for prompt := range q.all {
		rest := q.all[prompt].hit.Rest
		for i := range rest {
			m := &rest[i]
			if k, known := at[m.RowID]; known {
				q.all[k].prompt = prompt
			} else if raw := searchableText(m); size+len(raw) < maxRestBytes && holdsAny(raw, q.terms) {
				at[m.RowID], size = len(q.all), size+len(raw)
				q.add(quotable{message: m, prompt: prompt})
			}
		}
	}
}

func (q *quoter) add(s quotable) {
	s.text = q.mask(searchableText(s.message)) // before cutting: half a secret has no pattern
	q.all = append(q.all, s)
}

// holdsAny reports whether a text holds the stem of one of the terms.
func holdsAny(text string, terms []string) bool {
	text = lang.SmallLetters(text)
	return slices.ContainsFunc(terms, func(term string) bool { return strings.Contains(text, lang.Beginning(term)) })
}

// relevant returns the passages to quote, best first. The rest of a turn is found by the words of its
// prompt, too. A passage that only asks answers nothing: what was asked before is hardly worth a quote.
func (q *quoter) relevant() []passage {
	texts, rows := make([]string, len(q.all)), make([]int64, len(q.all))
	for i := range q.all {
		texts[i], rows[i] = q.all[i].text, q.all[i].message.RowID
	}
	f := newPassageFinder(texts, q.terms)
	found := f.find(rows)
	enough := leastEvidence * f.questionWeight()
	for i := range found {
		p := &found[i]
		s := &q.all[p.source]
		evidence := p.score
		if s.prompt >= 0 {
			lent := f.lent(s.prompt, p)
			evidence += lent
			p.score += promptShare * lent
		}
		p.fits = evidence >= enough
		if s.prompt < 0 && s.message.Role == session.User && onlyAsks(s.text[p.from:p.to], q.terms) {
			p.score *= askedShare
			p.asks = true
		}
	}
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	best := 0.0
	for _, p := range found {
		if s := &q.all[p.source]; !p.asks && (s.hit == nil || len(s.hit.Rest) == 0) {
			best = max(best, p.score)
		}
	}
	if best == 0 && len(found) > 0 {
		best = found[0].score
	}
	return slices.DeleteFunc(found, func(p passage) bool {
		s := &q.all[p.source]
		answered := s.hit == nil || len(s.hit.Rest)+len(s.hit.Neighbours) > 0
		return !p.fits || p.score < relevantShare*best || p.asks && !answered ||
			strings.Contains(q.quoted, session.EscapeBlocks(strings.TrimSpace(s.text[p.from:p.to])))
	})
}

// onlyAsks reports whether a passage holds terms in questions alone.
func onlyAsks(text string, terms []string) bool {
	asks := false
	for _, s := range sentenceForm.FindAllString(text, -1) {
		if holdsAny(s, terms) {
			if !strings.ContainsAny(s, "?？") {
				return false
			}
			asks = true
		}
	}
	return asks
}

var sentenceForm = pattern.New(`[^.!?。！？\n]+([.!?。！？\n]+|$)`)

// searchableText returns what was said in a message, and the tools and arguments that it calls.
func searchableText(m *session.Message) string {
	text := session.WithoutEcho(m.Text())
	for _, p := range m.Calls() {
		text += "\n" + p.ToolName + " " + p.Arguments
	}
	return strings.TrimPrefix(text, "\n")
}

// addIfRoom chooses a passage if it fits, and reports whether it does.
func (q *quoter) addIfRoom(p passage) bool {
	before := int64(0)
	first := len(q.chosen[p.source]) == 0
	if first {
		q.order = append(q.order, p.source)
	} else {
		before = q.weigh.Text(q.quote(p.source))
	}
	q.chosen[p.source] = append(q.chosen[p.source], p)
	cost := q.weigh.Text(q.quote(p.source)) - before
	if cost > q.room && first {
		q.alone[p.source] = true
		cost = q.weigh.Text(q.quote(p.source))
	}
	if cost <= q.room {
		q.room -= cost
		return true
	}
	q.chosen[p.source] = q.chosen[p.source][:len(q.chosen[p.source])-1]
	if first {
		q.order = q.order[:len(q.order)-1]
	}
	return false
}

// quote returns the chosen passages of a message, in the order of its text, with what is beside it.
func (q *quoter) quote(i int) string {
	text := quoteOf(q.all[i].message, joinPassages(q.all[i].text, q.chosen[i]))
	if q.alone[i] || slices.Index(q.order, i) >= hitsWithNeighbours {
		return text
	}
	beside, known := q.beside[i]
	if !known {
		beside = q.quoteBeside(i)
		q.beside[i] = beside
	}
	return beside[0] + text + beside[1]
}

// quoteBeside quotes the beginning, or where terms meet, of messages beside one that is quoted: of
// results of its calls, of a hit's neighbours, and of a turn of which nothing else is quoted the newest
// result and the reply.
func (q *quoter) quoteBeside(i int) (beside [2]string) {
	s := &q.all[i]
	add := func(m *session.Message) bool {
		side := 0
		if m.RowID > s.message.RowID {
			side = 1
		}
		quote := quoteOf(m, excerpt(q.mask(session.WithoutEcho(m.Text())), q.terms, neighbourRunes))
		beside[side] += quote
		return quote != ""
	}
	if s.prompt >= 0 {
		for _, m := range q.resultsOf(s.message, q.all[s.prompt].hit.Rest) {
			add(m)
		}
		return beside
	}
	for k := range s.hit.Neighbours {
		add(&s.hit.Neighbours[k])
	}
	for k := range q.all {
		if q.found[k] && q.all[k].prompt == i {
			return beside
		}
	}
	var newest [2]*session.Message // result and reply
	for k := range s.hit.Rest {
		switch m := &s.hit.Rest[k]; {
		case m.Text() == "":
		case m.Role == session.Tool:
			newest[0] = m
		case m.Role == session.Assistant:
			newest[1] = m
		}
	}
	for _, m := range newest {
		if m != nil {
			add(m)
		}
	}
	return beside
}

// resultsOf returns the results of a message's calls that are short or hold a term, and of which no passage
// is quoted.
func (q *quoter) resultsOf(calling *session.Message, rest []session.Message) (results []*session.Message) {
	calls := map[string]bool{}
	for _, p := range calling.Calls() {
		calls[p.CallID] = true
	}
	for k := range rest {
		m := &rest[k]
		answers := slices.ContainsFunc(m.Results(), func(p *session.Part) bool { return calls[p.CallID] })
		if answers && !q.quotes(m.RowID) && (utf8.RuneCountInString(m.Text()) <= passageRunes ||
			holdsAny(m.Text(), q.terms)) {
			results = append(results, m)
		}
	}
	return results
}

// quotes reports whether a message has a relevant passage.
func (q *quoter) quotes(row int64) bool {
	for k := range q.all {
		if q.found[k] && q.all[k].message.RowID == row {
			return true
		}
	}
	return false
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
	source   int // index of its text
	from, to int // bytes
	score    float64
	holds    uint32 // the terms that count, by index
	asks     bool   // it only asks
	fits     bool   // it holds enough of the question
}

// passageFinder finds passages in the texts of hits.
type passageFinder struct {
	texts       []string // of the hits
	folded      []string // lower-case, byte by byte
	words       []string // the terms as asked
	stems       []string // the terms without their endings
	wordWeights []float64
	stemWeights []float64
	counts      [][]int // of stems, by text and term
	held        []bool  // whether a text holds the term
}

func newPassageFinder(texts, terms []string) *passageFinder {
	f := &passageFinder{texts: texts, folded: make([]string, len(texts)), words: terms, counts: make([][]int, len(texts))}
	size := 0
	for i, text := range texts {
		f.folded[i] = lang.SmallLetters(text)
		size += len(text)
		f.counts[i] = make([]int, len(terms))
	}
	for k, word := range terms {
		stem := lang.Beginning(word)
		stems, whole := 0, 0
		for i, text := range f.folded {
			for at := f.index(i, stem, 0, len(text)); at >= 0; at = f.index(i, stem, at+len(stem), len(text)) {
				f.counts[i][k]++
			}
			stems += f.counts[i][k]
			if f.counts[i][k] > 0 {
				whole += strings.Count(text, word)
			}
		}
		f.stems, f.held = append(f.stems, stem), append(f.held, stems > 0)
		f.stemWeights = append(f.stemWeights, inflected*rarity(stems, size))
		f.wordWeights = append(f.wordWeights, rarity(whole, size))
	}
	return f
}

// find returns the best passages, best first; of equal ones that of the newer text, which has the
// larger row.
func (f *passageFinder) find(rows []int64) []passage {
	var all []passage
	for i := range f.texts {
		all = append(all, f.best(i, f.counts[i])...)
	}
	slices.SortStableFunc(all, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(rows[b.source], rows[a.source]), a.from-b.from)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p passage) bool { return repeats(f.texts[p.source][p.from:p.to], seen) })
}

// questionWeight returns the weight of the question's heaviest terms. Those that no text holds are the heaviest, but
// pairs of a language without spaces do not count then: most of them are no words.
func (f *passageFinder) questionWeight() (sum float64) {
	var heaviest []float64
	for k, weight := range f.stemWeights {
		if f.held[k] || !lang.IsUnspaced([]rune(f.words[k])[0]) {
			heaviest = append(heaviest, weight)
		}
	}
	slices.Sort(heaviest)
	for _, w := range heaviest[max(0, len(heaviest)-evidenceTerms):] {
		sum += w
	}
	return sum
}

// lent returns the weights of the terms that a prompt holds and a passage of its turn lacks.
func (f *passageFinder) lent(prompt int, p *passage) (sum float64) {
	for k, n := range f.counts[prompt] {
		if p.holds&(1<<k) == 0 && n > 0 {
			sum += f.stemWeights[k]
		}
	}
	return sum
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

// shortStem is the length up to which a stem counts only where a word begins: "port" is no part of a report.
const shortStem = 4

// index returns the first place of a stem in a stretch of a text, -1 for none.
func (f *passageFinder) index(source int, stem string, from, to int) int {
	text := f.folded[source]
	for from < to {
		i := strings.Index(text[from:to], stem)
		if i < 0 || len(stem) > shortStem || f.beginsWord(source, from+i) {
			if i >= 0 {
				i += from
			}
			return i
		}
		from += i + 1
	}
	return -1
}

// lastIndex is index for the last place.
func (f *passageFinder) lastIndex(source int, stem string, from, to int) int {
	text := f.folded[source]
	for from < to {
		i := strings.LastIndex(text[from:to], stem)
		if i < 0 || len(stem) > shortStem || f.beginsWord(source, from+i) {
			if i >= 0 {
				i += from
			}
			return i
		}
		to = from + i + len(stem) - 1
	}
	return -1
}

// beginsWord reports whether a word begins at a byte of a text, as File does in openFile. A script
// without spaces has no beginnings.
func (f *passageFinder) beginsWord(source, at int) bool {
	text := f.texts[source]
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	first, _ := utf8.DecodeRuneInString(text[at:])
	return at == 0 || !unicode.IsLetter(before) || unicode.IsUpper(first) || lang.IsUnspaced(first)
}

// rarity weighs a term that occurs n times in this many bytes.
func rarity(n, size int) float64 {
	return math.Log1p(float64(size) / passageReach / float64(max(1, n)))
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
			if at = f.index(hit, stem, at, len(text)); at < 0 {
				break
			}
			found = append(found, f.around(hit, k, at, order))
			at += len(stem)
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
	p := passage{source: hit, score: f.weight(term, text[from:to]), holds: 1 << term}
	lo, hi := at, at+len(f.stems[term])
	for _, k := range order {
		if k == term {
			continue
		}
		left, right := f.lastIndex(hit, f.stems[k], from, at), f.index(hit, f.stems[k], at, to)
		var between string
		switch {
		case left < 0 && right < 0:
			continue
		case left < 0 || right >= 0 && right-at < at-left:
			between = text[at:right]
			hi = max(hi, right+len(f.stems[k]))
		default:
			between = text[left:at]
			lo = min(lo, left)
		}
		nearness := 1 - 0.4*float64(len(between))/passageReach
		if strings.Contains(between, "\n") {
			nearness *= 0.7
		}
		p.score += f.weight(k, text[from:to]) * nearness
		p.holds |= 1 << k
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
