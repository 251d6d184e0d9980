package search

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A message of the time that a question names counts this much more. It is preferred, never required: people
// misremember when it was.
const namedTime = 1.3

var (
	agoPhrase   = regexp.MustCompile(`\b(\d{1,3}) (day|week|month|year)s? ago\b`)
	lastPhrase  = regexp.MustCompile(`\b(last|this) (week|month|year)\b`)
	monthPhrase = regexp.MustCompile(`\b(?:in|of|since|during) (january|february|march|april|may|june|july|august|september|october|november|december)(?:,? (20\d\d))?\b`)
	yearPhrase  = regexp.MustCompile(`\bin (20\d\d)\b`)
	dayPhrase   = regexp.MustCompile(`\b(20\d\d-\d\d-\d\d)\b`)
)

// timeOf returns the time that a question names, like yesterday, last week, in May, 3 days ago; ok is false
// without one.
func timeOf(text string, now time.Time) (from, to time.Time, ok bool) {
	text = strings.ToLower(text)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	span := func(unit string, ago int) (from, to time.Time, ok bool) {
		switch unit {
		case "day":
			from = today.AddDate(0, 0, -ago)
			return from, from.AddDate(0, 0, 1), true
		case "week":
			monday := today.AddDate(0, 0, -(int(today.Weekday())+6)%7-7*ago)
			return monday, monday.AddDate(0, 0, 7), true
		case "month":
			first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location()).AddDate(0, -ago, 0)
			return first, first.AddDate(0, 1, 0), true
		}
		first := time.Date(now.Year()-ago, 1, 1, 0, 0, 0, 0, now.Location())
		return first, first.AddDate(1, 0, 0), true
	}
	if m := dayPhrase.FindString(text); m != "" {
		if day, err := time.ParseInLocation(time.DateOnly, m, now.Location()); err == nil {
			return day, day.AddDate(0, 0, 1), true
		}
	}
	if m := agoPhrase.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return span(m[2], n)
	}
	if m := lastPhrase.FindStringSubmatch(text); m != nil {
		if m[1] == "last" {
			return span(m[2], 1)
		}
		return span(m[2], 0)
	}
	if m := monthPhrase.FindStringSubmatch(text); m != nil {
		month, _ := time.Parse("January", m[1])
		year, _ := strconv.Atoi(m[2])
		if year == 0 {
			if year = now.Year(); month.Month() > now.Month() {
				year-- // the last May that was
			}
		}
		first := time.Date(year, month.Month(), 1, 0, 0, 0, 0, now.Location())
		return first, first.AddDate(0, 1, 0), true
	}
	if m := yearPhrase.FindStringSubmatch(text); m != nil {
		year, _ := strconv.Atoi(m[1])
		return span("year", now.Year()-year)
	}
	switch {
	case strings.Contains(text, "yesterday"):
		return span("day", 1)
	case strings.Contains(text, "today"):
		return span("day", 0)
	}
	return from, to, false
}

// preferNamedTime raises the scores of messages of the time that the question names.
func preferNamedTime(docs []doc, text string, now time.Time) {
	from, to, ok := timeOf(text, now)
	if !ok {
		return
	}
	for i, d := range docs {
		if at := time.UnixMilli(d.docid >> docBits); !at.Before(from) && at.Before(to) {
			docs[i].score *= namedTime
		}
	}
}
