package geminitakeout

import (
	"strconv"
	"strings"
	"time"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// A time of a page is in the account's language: a date, then a clock with its zone.
var (
	clock   = pattern.New(`^(.*?),?\s+(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([AaPp]\.?\s?[Mm]\.?)?\s+(\S+)$`)
	numeric = pattern.New(`^(\d{1,2})[./](\d{1,2})[./](\d{4})$`)
	ordered = pattern.New(`^(\d{4})[-./年]\s?(\d{1,2})[-./月]\s?(\d{1,2})日?\.?$`)
	word    = pattern.New(`\p{L}+`)
	digits  = pattern.New(`\d+`)
)

// months are the beginnings of their names in English, Portuguese, Spanish, French, German and Italian.
var months = [...][]string{
	{"jan", "ene", "gen"},
	{"feb", "fev", "fév"},
	{"mar", "mär", "mrz"},
	{"apr", "abr", "avr"},
	{"may", "mai", "mag"},
	{"jun", "juin", "giu"},
	{"jul", "juil", "lug"},
	{"aug", "ago", "aoû"},
	{"sep", "set"},
	{"oct", "out", "okt", "ott"},
	{"nov"},
	{"dec", "dez", "dic", "déc"},
}

// zones are the hours that clocks are ahead of UTC. A name that several countries have for different clocks is that of
// the most people who write it so on these pages; others are not known.
var zones = map[string]float64{
	"UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	"BST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "JST": 9, "KST": 9, "BRT": -3,
}

// parseTime reads a time of a page; zone is its zone's name if that is not known.
func parseTime(text string) (at session.Time, zone string, ok bool) {
	const longest = 80
	text = strings.TrimSpace(strings.NewReplacer("\u202f", " ", "\u00a0", " ").Replace(text))
	m := clock.FindStringSubmatch(text)
	if len(text) > longest || m == nil {
		return at, "", false
	}
	year, month, day, ok := parseDate(strings.TrimSpace(m[1]))
	hour, minute, second := number(m[2]), number(m[3]), number(m[4])
	if half := strings.ToLower(m[5]); half != "" {
		if hour %= 12; half[0] == 'p' {
			hour += 12
		}
	}
	ahead, known := hoursAhead(m[6])
	if !ok || hour > 23 || minute > 59 || second > 60 {
		return at, "", false
	}
	if !known {
		zone = m[6]
	}
	utc := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return session.At(utc.Add(-time.Duration(ahead * float64(time.Hour)))), zone, true
}

// parseDate reads a day: its numbers in a known order, or a month's name beside a day and a year.
func parseDate(text string) (year, month, day int, ok bool) {
	switch {
	case numeric.MatchString(text):
		m := numeric.FindStringSubmatch(text)
		day, month, year = number(m[1]), number(m[2]), number(m[3])
	case ordered.MatchString(text):
		m := ordered.FindStringSubmatch(text)
		year, month, day = number(m[1]), number(m[2]), number(m[3])
	default:
		for _, name := range word.FindAllString(strings.ToLower(text), -1) {
			for i, starts := range months {
				for _, start := range starts {
					if month == 0 && strings.HasPrefix(name, start) {
						month = i + 1
					}
				}
			}
		}
		for _, d := range digits.FindAllString(text, -1) {
			if len(d) == 4 {
				year = number(d)
			} else {
				day = number(d)
			}
		}
	}
	return year, month, day, year >= 2000 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // of digits alone, or none
	return n
}

var offset = pattern.New(`^(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d{2}))?$`)

func hoursAhead(zone string) (hours float64, known bool) {
	if m := offset.FindStringSubmatch(zone); m != nil {
		hours = float64(number(m[2])) + float64(number(m[3]))/60
		if m[1] == "-" {
			hours = -hours
		}
		return hours, true
	}
	hours, known = zones[zone]
	return hours, known
}
