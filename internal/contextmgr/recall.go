package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
)

// Recall finds hidden originals. It answers within the query's budget: what was not looked
// at by then is left, and timedOut says so.
type Recall interface {
	Recall(ctx context.Context, q RecallQuery) (hits []Hit, timedOut bool, err error)
}

// RecallQuery asks for messages of a path that an overlay hides.
type RecallQuery struct {
	Session session.ID
	Head    int64   // row id: the path's end
	Before  int64   // row id: hidden messages of the path are smaller
	Pruned  []int64 // row ids of kept messages with outputs that are hidden
	Text    string
	Terms   []string // the rare words of Text, lower-case; CJK as bigrams
	Limit   int
	Budget  time.Duration
}

// Hit is a hidden message that answers a query, best first, with its neighbours.
type Hit struct {
	Message    session.Message
	Neighbours []session.Message
	Score      float64
}

const (
	// A turn never waits for a recall longer than this, unless it is told to.
	defaultRecallMS = 5

	recallHits  = 24
	recallLook  = 3         // newest messages of a person that are looked at for a query
	recallTerms = 2         // rare terms that a query needs
	recallReads = 256 << 10 // bytes of hits that are looked at, about: a few milliseconds
)

// Query chooses what to look up: the newest of a person's messages, given newest first, that
// has at least two terms worth looking for; none of three: no recall.
func Query(newest []string) (text string, terms []string) {
	for i, t := range newest {
		if i == recallLook {
			break
		}
		if terms := Terms(t); len(terms) >= recallTerms {
			return t, terms
		}
	}
	return "", nil
}

// mostTerms bounds a query that is made of a long paste.
const mostTerms = 24

// Terms gives the distinct words of a text that say what it is about, lower-case: no stop
// words, none shorter than three letters unless it holds a digit; CJK runs as bigrams.
func Terms(text string) []string {
	var terms []string
	add := func(t string) {
		if len(terms) < mostTerms && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && !unicode.Is(unicode.Mn, r)
	}) {
		if len(terms) == mostTerms {
			break
		}
		var plain strings.Builder
		var cjk []rune
		flush := func() {
			if w := strings.ToLower(plain.String()); w != "" && telling(w) {
				add(w)
			}
			plain.Reset()
			for i := 0; i+1 < len(cjk); i++ {
				add(string(cjk[i : i+2]))
			}
			cjk = cjk[:0]
		}
		for _, r := range word {
			if isCJK(r) != (len(cjk) > 0) {
				flush()
			}
			if isCJK(r) {
				cjk = append(cjk, r)
			} else {
				plain.WriteRune(r)
			}
		}
		flush()
	}
	return terms
}

func isCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func telling(w string) bool {
	if strings.ContainsFunc(w, unicode.IsDigit) {
		return true
	}
	return utf8.RuneCountInString(w) > 2 && !slices.Contains(stopWords(), w)
}

// stopWords are words of talk that are in every message of a language. Search ranks by
// rarity as well: the list only keeps "what was that again" from being a query.
func stopWords() []string {
	return strings.Fields(`
		the and was were are been being what when where which who whom whose why how that this these those there then than
		with from for not you your yours our ours his her hers its their them they have has had will would could should can
		may might must shall did does doing done about again please tell just now some any all out into over under also only
		let get got give make made want need know think thanks thank yes okay more most very much here but because while
		die der das den dem des ein eine einen einem einer und oder aber nicht mit von vom für auf aus bei nach noch mal
		was war wer wie wann warum wieso welche welcher welches ist sind waren wird werden hat haben hatte ich mir mich
		wir uns ihr euch sie ihm ihn dass wenn dann doch bitte danke nochmal kannst kann soll`)
}

// recallInput is what a recall block is made from.
type recallInput struct {
	hits  []Hit
	terms []string
	most  int64 // tokens
	mask  func(string) string
	weigh Weigh
}

// recallBlock quotes what hits say around the terms, with the role that said it, the best
// places first, as many as the budget holds. An empty text means that nothing is worth its
// tokens.
func recallBlock(in recallInput) frozenText {
	const open, shut = "<recalled_messages>\nFrom what is hidden of this conversation, word for word:\n", "</recalled_messages>"
	var texts []string
	var rows []int64
	for i, size := 0, 0; i < len(in.hits) && size < recallReads; i++ {
		texts = append(texts, in.mask(lookedIn(&in.hits[i].Message))) // half a secret has no shape any more
		rows = append(rows, in.hits[i].Message.RowID)
		size += len(texts[i])
	}
	quotes := quotesOf{recallInput: in, texts: texts, chosen: make([][]passage, len(in.hits)), room: in.most - in.weigh.Text(open+shut)}
	for _, p := range passages(texts, rows, in.terms) {
		quotes.take(p)
	}
	if len(quotes.order) == 0 {
		return frozenText{}
	}
	out := frozenText{}
	var body strings.Builder
	for _, i := range quotes.order {
		body.WriteString(quotes.of(i))
		out.Sources = append(out.Sources, in.hits[i].Message.ID)
	}
	out.Text = open + body.String() + shut
	out.Tokens = in.weigh.Text(out.Text)
	return out
}

// quotesOf collects passages while there is room.
type quotesOf struct {
	recallInput
	texts  []string
	chosen [][]passage // by hit
	order  []int       // hits with passages, best first
	room   int64       // tokens
}

// withNeighbours is how many hits, the best ones, come with the messages beside them: a price
// may stand in a tool's output, what it is the price of in the question before.
const withNeighbours = 3

func (q *quotesOf) take(p passage) {
	was := int64(0)
	if len(q.chosen[p.hit]) > 0 {
		was = q.weigh.Text(q.of(p.hit))
	} else {
		q.order = append(q.order, p.hit)
	}
	q.chosen[p.hit] = append(q.chosen[p.hit], p)
	cost := q.weigh.Text(q.of(p.hit)) - was
	if cost <= q.room {
		q.room -= cost
		return
	}
	q.chosen[p.hit] = q.chosen[p.hit][:len(q.chosen[p.hit])-1]
	if len(q.chosen[p.hit]) == 0 {
		q.order = q.order[:len(q.order)-1]
	}
}

// neighbourRunes is how much of a message beside a hit is quoted.
const neighbourRunes = 150

// of writes what was chosen of a hit, in the order of the text, with its neighbours.
func (q *quotesOf) of(i int) string {
	hit := &q.hits[i]
	var b strings.Builder
	write := func(m *session.Message, text string) {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "[%s %s] %s\n", m.ID, m.Role, escape(text))
		}
	}
	beside := slices.Index(q.order, i) < withNeighbours
	for k := range hit.Neighbours {
		if n := &hit.Neighbours[k]; beside && n.RowID < hit.Message.RowID {
			write(n, excerpt(q.mask(n.Text()), q.terms, neighbourRunes))
		}
	}
	write(&hit.Message, joinPassages(q.texts[i], q.chosen[i]))
	for k := range hit.Neighbours {
		if n := &hit.Neighbours[k]; beside && n.RowID > hit.Message.RowID {
			write(n, excerpt(q.mask(n.Text()), q.terms, neighbourRunes))
		}
	}
	return b.String()
}

// joinPassages writes passages of a text in its order, with marks where something is left out.
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

// excerpt gives the stretch of a text, of at most this many runes, that holds the most
// different terms.
func excerpt(text string, terms []string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	lower := make([]rune, len(runes)) // rune by rune, so that positions stay
	for i, r := range runes {
		lower[i] = unicode.ToLower(r)
	}
	var hits []termAt
	for k, term := range terms {
		hits = append(hits, positions(lower, []rune(term), k)...)
	}
	slices.SortFunc(hits, func(a, b termAt) int { return a.at - b.at })
	start, best := 0, 0
	for i, h := range hits {
		distinct := map[int]bool{}
		for _, later := range hits[i:] {
			if later.at-h.at > most*2/3 {
				break
			}
			distinct[later.term] = true
		}
		if len(distinct) > best {
			best, start = len(distinct), h.at
		}
	}
	from := max(0, min(start-most/6, len(runes)-most))
	to := from + most
	out := string(runes[from:to])
	if from > 0 {
		out = "… " + out
	}
	if to < len(runes) {
		out += " …"
	}
	return out
}

type termAt struct{ at, term int }

// mostPositions bounds the work on a text that repeats a term.
const mostPositions = 64

func positions(text, term []rune, k int) []termAt {
	var found []termAt
	for i := 0; i+len(term) <= len(text) && len(found) < mostPositions; i++ {
		if slices.Equal(text[i:i+len(term)], term) {
			found = append(found, termAt{i, k})
		}
	}
	return found
}
