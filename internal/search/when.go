package search

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/when"
)

// A time that a question names is preferred, never required: people misremember when it was, and what looks like a
// time may be a name, as in "the summer release". docs/performance.md has what each number is worth.
const (
	// A message of the time counts this much more, and so does one that names it: the release of 7 October, the Monday
	// board. Last week is another one in each message.
	namedTime = 1.6
	// So many messages of the time are ranked beside the best of all times.
	mostOfTime = 100
	// A day without a year is looked for in so many years.
	mostYears = 10
)

// NamedTime is the time that a query names.
type NamedTime struct {
	Text   string        `json:"text" doc:"As it was written in the query"`
	Since  *session.Time `json:"since,omitempty" doc:"Its beginning; without a year, that of the last year"`
	Until  *session.Time `json:"until,omitempty" doc:"Its end, if it has one and is over"`
	Filter string        `json:"filter" doc:"What limits the query to that time, if it is added to it"`
	Flags  string        `json:"flags,omitempty" doc:"The same as flags of the command"`

	SinceText string `json:"-"` // as it was written; "" without a beginning
	UntilText string `json:"-"`
}

// namedTime returns the time that the query prefers, nil for none, or if its filters limit the time already.
func (r *run) namedTime() *NamedTime {
	n := r.parsed.when
	if n == nil || r.query.Since != nil || r.query.Until != nil {
		return nil
	}
	out := &NamedTime{Text: n.Text, SinceText: n.Since, UntilText: n.Until}
	var filters []string
	if n.Since != "" {
		out.Since = new(session.At(n.From))
		filters = append(filters, "after:"+quotedIfSpaced(n.Since))
	}
	if n.Until != "" {
		out.Until = new(session.At(n.To))
		filters = append(filters, "before:"+quotedIfSpaced(n.Until))
	}
	out.Filter = strings.Join(filters, " ")
	return out
}

func quotedIfSpaced(value string) string {
	if strings.ContainsAny(value, " \t\n") {
		return `"` + value + `"`
	}
	return value
}

// findTime finds the time that the words of a query name, and marks these words. text is the query's, or what it was
// made of.
func (p *parsed) findTime(text string, now time.Time) {
	if p.when = when.Find(text, now); p.when == nil {
		return
	}
	for i := range p.terms {
		t := &p.terms[i]
		t.time = t.word && !t.not && p.when.Has(t.raw)
	}
}

// words returns a query's text without its quotations, filters and exclusions.
func words(text string) string {
	var kept []string
	for _, f := range fields(text) {
		name, _, named := strings.Cut(f.text, ":")
		if !f.quoted && !f.not && !(named && isFilterName(name+":")) {
			kept = append(kept, f.text)
		}
	}
	return strings.Join(kept, " ")
}

// timeTerms returns the terms that only name the time; none if the query looks for no others.
func (p *parsed) timeTerms() (terms []term) {
	if content := p.content(); len(content) > 0 && content[0].time {
		return nil
	}
	for _, t := range p.terms {
		if t.time {
			terms = append(terms, t)
		}
	}
	return terms
}

// asksForTime reports whether the query asks for a time, whatever happened then: what did we do yesterday? A time alone
// is a word to look for.
func (p *parsed) asksForTime() bool {
	content := p.content()
	return len(content) > 0 && content[0].time && slices.ContainsFunc(p.terms, func(t term) bool { return !t.time })
}

// addOfTime adds the best rows of the time that the query names to those of all times, at most mostOfTime of each
// year. If the query has no other words, it adds what people said then.
func (r *run) addOfTime(ctx context.Context, place queryer, expression string, docs []doc) ([]doc, error) {
	if r.parsed.when == nil {
		return docs, nil
	}
	statement := bestFirst
	if r.parsed.asksForTime() {
		statement, expression = saidFirst, r.expression("tags : "+quote(tag(tagOrigin, string(session.Person))))
	}
	var oldest *int64
	if err := place.QueryRowContext(ctx, `SELECT min(docid) FROM docs`).Scan(&oldest); err != nil || oldest == nil {
		return docs, err
	}
	known := make(map[int64]bool, len(docs))
	for _, d := range docs {
		known[d.docid] = true
	}
	for _, span := range r.parsed.when.Spans(time.UnixMilli(*oldest>>docBits), mostYears) {
		of := r.query
		of.narrow(span)
		from, to := of.docRange()
		found, err := readRows(ctx, place, scanDoc, statement, expression, from, to, rankedDepth, mostOfTime)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if !known[d.docid] {
				docs = append(docs, d)
			}
		}
	}
	return docs, nil
}

// saidFirst is bestFirst without scores: the newest first.
const saidFirst = `
	SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, d.tool, 0.0
	FROM (SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT min(+?, +?)) w
	CROSS JOIN docs d ON d.docid = w.rowid`

// narrow limits a query to a span as well.
func (q *Query) narrow(span when.Span) {
	if from := session.At(span.From); !span.From.IsZero() && (q.Since == nil || q.Since.Before(from.Time)) {
		q.Since = &from
	}
	if to := session.At(span.To); !span.To.IsZero() && (q.Until == nil || to.Before(q.Until.Time)) {
		q.Until = &to
	}
}

// preferTime raises the scores of messages of the time that the query names. Without other words in the query, they
// come before all others.
func (r *run) preferTime(docs []doc) {
	if r.parsed.when == nil {
		return
	}
	lift := 0.0
	if r.parsed.asksForTime() {
		for _, d := range docs {
			lift = math.Max(lift, d.score)
		}
		lift = 2*lift + 1 // than several messages of a session together
	}
	for i, d := range docs {
		switch {
		case r.parsed.when.Contains(time.UnixMilli(d.docid >> docBits)):
			docs[i].score = d.score*namedTime + lift
		case !r.parsed.when.Relative && d.namesTime:
			docs[i].score *= namedTime
		}
	}
}
