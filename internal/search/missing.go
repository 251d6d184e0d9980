package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/session"
	"sessiond/internal/spelling"
	"sessiond/internal/text"
)

// Missing is a word that no searched message has.
type Missing struct {
	Word       string `json:"word" doc:"As it was written in the query"`
	DidYouMean string `json:"did_you_mean,omitempty" doc:"A word that messages have, one letter different"`
	Searched   bool   `json:"searched,omitempty" doc:"Nothing else was found, so did_you_mean was searched instead"`
}

// nameMissing names a term that no message has. A name that a slip of the finger makes of a known one becomes that;
// n is the number of messages that have it.
func (r *run) nameMissing(ctx context.Context, t term) (better term, n int, err error) {
	m := Missing{Word: shortened(cmp.Or(t.run, t.raw))}
	if t.quoted || t.isOfPhrase() {
		return t, 0, nil
	}
	if slices.ContainsFunc(r.parsed.terms, func(t term) bool { return t.quoted && !t.not }) {
		alone, err := r.count(ctx, r.parsed.filters.match(r.sharedIn, r.languages)+t.match())
		if err != nil || alone > 0 { // only not together with what stands in quotes
			return t, 0, err
		}
	}
	switch {
	case t.prefix && t.run == "":
		m.Word += "*"
	case t.word && isCapital(t.raw) && !r.query.Rare && len(r.missing) < mostSuggestions:
		if m.DidYouMean, err = r.similar(ctx, t.raw); err != nil {
			return t, 0, err
		}
		if m.Searched = m.DidYouMean != ""; m.Searched {
			better, _ = field{text: m.DidYouMean}.term()
			better.addLanguages(r.languages)
			r.replace(t, better)
			n, err = r.count(ctx, r.expression(better.match()))
			t = better
		}
	}
	r.addMissing(m)
	return t, n, err
}

func (r *run) addMissing(m Missing) {
	if !slices.ContainsFunc(r.missing, func(other Missing) bool { return other.Word == m.Word }) {
		r.missing = append(r.missing, m)
	}
}

func isCapital(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(first)
}

// isOfPhrase reports whether a term is a word of what stands in quotes and in no message.
func (t term) isOfPhrase() bool { return strings.HasPrefix(t.run, `"`) }

// replace replaces a term of the query by others.
func (r *run) replace(t term, by ...term) {
	p := parsed{}
	for _, other := range r.parsed.terms {
		these := []term{other}
		if other.raw == t.raw && other.quoted == t.quoted && other.not == t.not {
			these = by
		}
		for _, these := range these {
			if p.hasRoomFor(these) {
				p.terms = append(p.terms, these)
			}
		}
	}
	r.parsed.terms = p.terms
}

// relaxQuotes names what stands in quotes and in no message, and looks for its words instead. With asWritten, a phrase
// in other forms is none.
func (r *run) relaxQuotes(ctx context.Context, asWritten bool) error {
	for _, t := range r.parsed.terms {
		if !t.quoted || t.not {
			continue
		}
		n, err := r.count(ctx, r.parsed.filters.match(r.sharedIn, r.languages)+t.match())
		if err != nil {
			return err
		}
		if n > 0 && asWritten {
			alone := *r
			alone.query.Group, alone.query.Order, alone.query.Limit, alone.query.Expand = GroupMessage, OrderNewest, 1, 0
			alone.parsed.terms, alone.hits, alone.seen = []term{t}, nil, map[int64]bool{}
			if err := alone.find(ctx); err != nil {
				return err
			}
			n = len(alone.hits)
		}
		if n > 0 {
			continue
		}
		r.addMissing(Missing{Word: `"` + shortened(t.raw) + `"`})
		if t.path {
			continue
		}
		var words []term
		for _, w := range fields(strings.ReplaceAll(t.raw, `"`, " ")) {
			w.not = false
			for _, word := range w.terms() {
				word.addLanguages(r.languages)
				word.run = `"` + t.raw
				words = append(words, word)
			}
		}
		r.replace(t, words...)
	}
	return nil
}

const (
	mostSuggestions = 3 // words of a query; each costs hundreds of lookups
	leastGuessed    = 4 // letters of a word that a typo can be told in
)

// explain names the words that no message has. If nothing was found, it searches what was meant instead, and says
// which filters would find something.
func (r *run) explain(ctx context.Context) error {
	if scope, _ := session.ScopeOf(ctx); scope.Source != "" || scope.Key != "" {
		r.missing = nil // words are counted in all sessions of the owner, of which this token sees some
		return nil
	}
	found := len(r.hits) > 0 || len(r.found) > 0
	if !found && r.query.Order == OrderNewest { // which counts no words
		if _, _, err := r.byRarity(ctx, r.parsed.content()); err != nil {
			return err
		}
	}
	corrected := false
	for i := range r.missing {
		m := &r.missing[i]
		if i >= mostSuggestions {
			break
		}
		if m.Searched || found && isCapital(m.Word) {
			continue
		}
		var err error
		if m.DidYouMean, err = r.similar(ctx, m.Word); err != nil {
			return err
		}
		if m.DidYouMean != "" && !found {
			m.Searched, corrected = true, true
			better, _ := field{text: m.DidYouMean}.term()
			better.addLanguages(r.languages)
			r.replace(term{raw: m.Word}, better)
		}
	}
	if corrected {
		missing := r.missing
		if err := r.find(ctx); err != nil {
			return err
		}
		r.missing = missing
		found = len(r.hits) > 0 || len(r.found) > 0
	}
	if found {
		return nil
	}
	return r.findElsewhere(ctx)
}

const messagesWithWord = `SELECT COUNT(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT 1000)`

// similar returns the word in most messages among those that a slip of the finger makes this one: a letter too
// many, too few, another, or two swapped. "": none, or the words of other owners would be told.
func (r *run) similar(ctx context.Context, word string) (string, error) {
	word = text.Plain(word)
	if r.parsed.filters.owner != "" || len(word) < leastGuessed || len(word) > text.LongestStemmed ||
		!text.IsLowerASCII(word) {
		return "", nil
	}
	best, most := "", 0
	for _, place := range r.places {
		tried := map[string]bool{}
		for i, w := range append([]string{word}, spelling.Slips(word)...) {
			t := term{raw: w, norm: text.Tokens{Stems: text.Stem(w)}, word: true}
			t.addLanguages(r.languages)
			match := t.match()
			if tried[match] || i > 0 && text.IsStopWord(w) {
				continue
			}
			tried[match] = true
			n := 0
			if err := place.QueryRowContext(ctx, messagesWithWord, match).Scan(&n); err != nil {
				return "", err
			}
			if i == 0 && n > 0 { // it is no slip: only the filters keep it out
				return "", nil
			}
			if n > most {
				best, most = w, n
			}
		}
	}
	return best, nil
}

const mostElsewhere = 10

// findElsewhere lists filters and times that would find something, of the kinds that the query has: filters
// within its times, else times with its filters, else both.
func (r *run) findElsewhere(ctx context.Context) error {
	given, timed := r.parsed.filters, r.query.Since != nil || r.query.Until != nil
	for _, drop := range []struct{ filters, times bool }{{true, false}, {false, true}, {true, true}} {
		if drop.filters && given == (filters{owner: given.owner}) || drop.times && !timed {
			continue
		}
		other := *r
		other.query.Group, other.query.Limit = GroupMessage, 50
		other.hits, other.missing, other.seen = nil, nil, map[int64]bool{}
		if drop.filters {
			other.parsed.filters, other.shared, other.sharedIn = filters{owner: given.owner}, nil, nil
		}
		if drop.times {
			other.query.Since, other.query.Until = nil, nil
		}
		if err := other.find(ctx); err != nil {
			return err
		}
		if drop.times {
			r.addTimesOf(other.hits)
		}
		if drop.filters {
			if err := r.addFiltersOf(ctx, other.hits); err != nil {
				return err
			}
		}
		if len(r.elsewhere) > 0 {
			r.missing = nil // the words are there, only not in what was searched
			return nil
		}
	}
	return nil
}

// addTimesOf adds the times that are nearest to those of the query.
func (r *run) addTimesOf(hits []Hit) {
	if len(hits) == 0 {
		return
	}
	byTime := func(a, b Hit) int { return a.CreatedAt.Compare(b.CreatedAt.Time) }
	day := func(h Hit, days int) string {
		return h.CreatedAt.In(r.query.Now.Location()).AddDate(0, 0, days).Format(time.DateOnly)
	}
	if newest := slices.MaxFunc(hits, byTime); r.query.Since != nil && newest.CreatedAt.Before(r.query.Since.Time) {
		r.elsewhere = append(r.elsewhere, "after:"+day(newest, 0))
	}
	if oldest := slices.MinFunc(hits, byTime); r.query.Until != nil && !oldest.CreatedAt.Before(r.query.Until.Time) {
		r.elsewhere = append(r.elsewhere, "before:"+day(oldest, 1))
	}
}

func (r *run) addFiltersOf(ctx context.Context, hits []Hit) error {
	given := r.parsed.filters
	add := func(name, value string) {
		was := withoutSlash(*given.field(name))
		has := func(was string) bool { return strings.EqualFold(value, was) || strings.HasSuffix(value, "/"+was) }
		if was == "" || value == "" || slices.ContainsFunc(alternatives(was), has) || len(r.elsewhere) == mostElsewhere {
			return
		}
		if filter := name + ":" + value; !slices.Contains(r.elsewhere, filter) {
			r.elsewhere = append(r.elsewhere, filter)
		}
	}
	for _, h := range hits {
		s, err := r.ix.src.Session(ctx, h.SessionID)
		if err != nil && session.CodeOf(err) != session.NotFound {
			return err
		}
		add("role", string(h.Role))
		add("origin", string(h.origin))
		add("session", string(h.SessionID))
		add("source", string(s.Source))
		add("project", s.Project)
		add("key", s.Key)
		for _, tool := range h.tools {
			add("tool", tool)
		}
	}
	return nil
}

// Notes say in words what became of the missing words. quote quotes a word.
func (r *Result) Notes(quote func(string) string) (notes []string) {
	for _, m := range r.Missing {
		text := "no searched message has " + quote(m.Word)
		switch {
		case m.Searched:
			text += "; searched for " + quote(m.DidYouMean) + " instead"
		case len(r.Hits)+len(r.Sessions) > 0:
			text += "; what was found is without it"
		}
		if m.DidYouMean != "" && !m.Searched {
			text += ". Did you mean " + quote(m.DidYouMean) + "?"
		}
		notes = append(notes, text)
	}
	return notes
}
