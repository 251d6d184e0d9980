package search

import (
	"context"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// Missing is a word that no searched message has.
type Missing struct {
	Word       string `json:"word" doc:"As it was written in the query"`
	DidYouMean string `json:"did_you_mean,omitempty" doc:"A word that messages have, one letter different"`
	Searched   bool   `json:"searched,omitempty" doc:"Nothing else was found, so did_you_mean was searched instead"`
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
	found := len(r.hits) > 0 || len(r.sessions) > 0
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
		var err error
		if m.DidYouMean, err = r.similar(ctx, strings.ToLower(m.Word)); err != nil {
			return err
		}
		if m.DidYouMean != "" && !found {
			m.Searched, corrected = true, true
			for j, t := range r.parsed.terms {
				if t.raw == m.Word && t.word {
					r.parsed.terms[j], _ = field{text: m.DidYouMean}.term()
				}
			}
		}
	}
	if corrected {
		missing := r.missing
		if err := r.find(ctx); err != nil {
			return err
		}
		r.missing = missing
		found = len(r.hits) > 0 || len(r.sessions) > 0
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
	if r.parsed.filters.owner != "" || len(word) < leastGuessed || len(word) > longestStemmed || !isLowerASCII(word) {
		return "", nil
	}
	best, most := "", 0
	for _, place := range r.places {
		tried := map[string]bool{}
		for i, w := range append([]string{word}, slips(word)...) {
			s := stem(w)
			if tried[s] || i > 0 && isStopWord(w) {
				continue
			}
			tried[s] = true
			n := 0
			if err := place.QueryRowContext(ctx, messagesWithWord, "stems : "+quote(s)).Scan(&n); err != nil {
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

// slips returns the words that differ from one by a letter, swapped ones first: the likeliest slip.
func slips(w string) (found []string) {
	for i := 1; i < len(w); i++ {
		found = append(found, w[:i-1]+w[i:i+1]+w[i-1:i]+w[i+1:])
	}
	for i := range len(w) {
		found = append(found, w[:i]+w[i+1:])
	}
	for i := range len(w) + 1 {
		for c := 'a'; c <= 'z'; c++ {
			found = append(found, w[:i]+string(c)+w[i:])
			if i < len(w) {
				found = append(found, w[:i]+string(c)+w[i+1:])
			}
		}
	}
	return found
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
		if was == "" || value == "" || strings.EqualFold(value, was) || strings.HasSuffix(value, "/"+was) || len(r.elsewhere) == mostElsewhere {
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
