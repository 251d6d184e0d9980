// Package when parses the times that people name, in English, German and French: "last week", "7 October",
// "vor zwei Wochen", "depuis lundi". A flag is one such time; a question may name one among other words.
package when

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Span is a stretch of time, From included, To excluded. A zero end is open.
type Span struct {
	From, To time.Time
	// Yearly says that no year was named: the span is that of the last year in which it began, and any other year's
	// is meant as well.
	Yearly bool
}

// Contains reports whether a time is in the span, of any year if that is meant.
func (s Span) Contains(t time.Time) bool {
	if !s.Yearly {
		return (s.From.IsZero() || !t.Before(s.From)) && (s.To.IsZero() || t.Before(s.To))
	}
	t = t.In(s.From.Location())
	// a winter begins the year before
	for years := t.Year() - s.From.Year() - 1; years <= t.Year()-s.From.Year(); years++ {
		if shifted := s.shifted(years); !t.Before(shifted.From) && t.Before(shifted.To) {
			return true
		}
	}
	return false
}

// Spans returns the span, or that of each year if no year was named, newest first, until one ends before the oldest
// time or there are most of them.
func (s Span) Spans(oldest time.Time, most int) []Span {
	if !s.Yearly {
		return []Span{s}
	}
	var spans []Span
	for years := 0; len(spans) < most; years-- {
		one := s.shifted(years)
		if one.To.Before(oldest) {
			break
		}
		spans = append(spans, one)
	}
	return spans
}

// shifted returns the span of another year.
func (s Span) shifted(years int) Span {
	return Span{From: s.From.AddDate(years, 0, 0), To: s.To.AddDate(years, 0, 0)}
}

// Named is a time that a text names among other words.
type Named struct {
	Span
	Text         string // as written, with a word like since before it, without one like in
	Since, Until string // what Parse accepts for the ends of the span; "" for an open end, and for one that is not over

	Relative bool // it is another time each day: yesterday, last week

	words []string // without case and diacritics
}

// Has reports whether a piece of the text only names the time.
func (n *Named) Has(piece string) bool {
	tokens := tokensOf(piece)
	for _, t := range tokens {
		if !slices.Contains(n.words, t.word) && len(t.word) > 1 { // l'été
			return false
		}
	}
	return len(tokens) > 0
}

// Forms describes what Parse accepts, for errors and help.
const Forms = `a day (2026-02-11, yesterday, monday, 7 October), "last week", 2026-W47, a month (May 2025), a time (2026-02-11T10:00) or an age (30m, 12h, 7d, 2w)`

var layouts = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.RFC3339}

// Parse parses a text that is a time as a whole, in the zone of now. An age (7d, 12h) and a time of day last until now.
func Parse(text string, now time.Time) (Span, bool) {
	text = strings.TrimSpace(text)
	for i, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			if i == 0 {
				return day(t), true
			}
			return Span{From: t}, true
		}
	}
	if week, ok := Week(text, now.Location()); ok {
		return week, true
	}
	if at, ok := parseAge(text, now); ok {
		return Span{From: at}, true
	}
	p := newParser(text, now)
	if span, n, ok := p.time(p.skip(0, p.articles), true); ok && n == len(p.tokens) {
		return span, true
	}
	return Span{}, false
}

// Week parses a week of ISO 8601, like 2026-W47.
func Week(text string, zone *time.Location) (Span, bool) {
	var year, week int
	if _, err := fmt.Sscanf(text, "%4d-W%2d", &year, &week); err != nil || fmt.Sprintf("%04d-W%02d", year, week) != text {
		return Span{}, false
	}
	fourth := time.Date(year, 1, 4, 0, 0, 0, 0, zone) // is in the first week
	from := fourth.AddDate(0, 0, 7*(week-1)-(int(fourth.Weekday())+6)%7)
	y, w := from.ISOWeek()
	return Span{From: from, To: from.AddDate(0, 0, 7)}, y == year && w == week
}

// Moment parses a text as Parse does and returns the beginning of its time.
func Moment(text string, now time.Time) (time.Time, bool) {
	span, ok := Parse(text, now)
	return span.From, ok
}

// parseAge parses 30m, 12h, 7d, 2w, and 30 minutes ago, which is no day.
func parseAge(text string, now time.Time) (time.Time, bool) {
	units := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	words := strings.Fields(text)
	if len(words) == 3 && strings.EqualFold(words[2], "ago") {
		words = []string{words[0] + strings.TrimSuffix(strings.ToLower(words[1]), "s")}
		units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour}
	}
	if len(words) != 1 {
		return time.Time{}, false
	}
	var n int
	var unit string
	if _, err := fmt.Sscanf(words[0], "%d%s", &n, &unit); err != nil || n < 0 {
		return time.Time{}, false
	}
	d, known := units[unit]
	return now.Add(-time.Duration(n) * d), known
}

// Find returns the first time that a text names among other words, nil for none.
func Find(text string, now time.Time) *Named {
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "")
	}
	p := newParser(text, now)
	for i := range p.tokens {
		if n := p.named(i); n != nil {
			return n
		}
	}
	return nil
}

// mostText is how much of a text is read for a time: what a person pastes goes on.
const mostText = 4 << 10

func day(t time.Time) Span { return Span{From: t, To: t.AddDate(0, 0, 1)} }
