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
	Head    int64 // row id: the path's end
	Before  int64 // row id: hidden messages of the path are smaller
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

	recallHits    = 8
	recallLook    = 3 // newest messages of a person that are looked at for a query
	recallTerms   = 2 // rare terms that a query needs
	recallExcerpt = 4 // a hit may take one such part of the budget
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

// recallBlock quotes hits with the role that they had, as many as the budget holds. Each is
// an excerpt around the terms. An empty text means that nothing is worth its tokens.
func recallBlock(in recallInput) frozenText {
	const open, shut = "<recalled_messages>\nFrom the part of this conversation that is summarised, word for word:\n", "</recalled_messages>"
	out := frozenText{}
	used := in.weigh.Text(open + shut)
	var body strings.Builder
	for _, hit := range in.hits {
		if slices.Contains(out.Sources, hit.Message.ID) {
			continue
		}
		quote := quoteOf(&hit, in)
		cost := in.weigh.Text(quote)
		if used+cost > in.most {
			continue
		}
		used += cost
		body.WriteString(quote)
		out.Sources = append(out.Sources, hit.Message.ID)
	}
	if len(out.Sources) == 0 {
		return frozenText{}
	}
	out.Text = open + body.String() + shut
	out.Tokens = in.weigh.Text(out.Text)
	return out
}

func quoteOf(hit *Hit, in recallInput) string {
	runes := int(in.most) * 3 / recallExcerpt // a token is some three characters
	lines := []session.Message{hit.Message}
	lines = append(lines, hit.Neighbours...)
	slices.SortStableFunc(lines, func(a, b session.Message) int { return int(a.RowID - b.RowID) })
	var b strings.Builder
	for i := range lines {
		room := runes
		if lines[i].RowID != hit.Message.RowID {
			room = runes / 5
		}
		text := excerpt(in.mask(lines[i].Text()), in.terms, room) // half a secret has no shape any more
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "[%s %s] %s\n", lines[i].ID, lines[i].Role, escape(text))
		}
	}
	return b.String()
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
