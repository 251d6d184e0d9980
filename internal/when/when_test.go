package when

import (
	"testing"
	"time"
)

var (
	zone = time.FixedZone("east", 2*3600)
	now  = time.Date(2026, 11, 25, 0, 30, 0, 0, zone) // a Wednesday; still Tuesday in UTC
)

func short(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Hour() == 0 && t.Minute() == 0:
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04")
}

func (s Span) String() string {
	text := short(s.From) + "…" + short(s.To)
	if s.Yearly {
		text += " yearly"
	}
	return text
}

func TestFlagsAreTimes(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-05":               "2026-01-05…2026-01-06",
		"2026-01-05T10:00":         "2026-01-05T10:00…",
		"2026-06":                  "2026-06-01…2026-07-01",
		"30m":                      "2026-11-25…",
		"7d":                       "2026-11-18T00:30…",
		"30 minutes ago":           "2026-11-25…",
		"3 days ago":               "2026-11-22…2026-11-23",
		"1 week ago":               "2026-11-16…2026-11-23",
		"two weeks ago":            "2026-11-09…2026-11-16",
		"today":                    "2026-11-25…2026-11-26",
		"Yesterday":                "2026-11-24…2026-11-25",
		"wednesday":                "2026-11-25…2026-11-26",
		"last Wednesday":           "2026-11-18…2026-11-19",
		"thu":                      "2026-11-19…2026-11-20",
		"Monday":                   "2026-11-23…2026-11-24",
		"this week":                "2026-11-23…2026-11-30",
		"last  week":               "2026-11-16…2026-11-23",
		"this month":               "2026-11-01…2026-12-01",
		"last month":               "2026-10-01…2026-11-01",
		"last quarter":             "2026-07-01…2026-10-01",
		"last 3 days":              "2026-11-22…",
		"may":                      "2026-05-01…2026-06-01 yearly",
		"June 2025":                "2025-06-01…2025-07-01",
		"dec":                      "2025-12-01…2026-01-01 yearly",
		"2025":                     "2025-01-01…2026-01-01",
		"last summer":              "2026-06-01…2026-09-01",
		"winter 2024":              "2024-12-01…2025-03-01",
		"letzte Woche":             "2026-11-16…2026-11-23",
		"vorgestern":               "2026-11-23…2026-11-24",
		"vor zwei Wochen":          "2026-11-09…2026-11-16",
		"März":                     "2026-03-01…2026-04-01 yearly",
		"la semaine dernière":      "2026-11-16…2026-11-23",
		"semaine dernière":         "2026-11-16…2026-11-23",
		"il y a deux semaines":     "2026-11-09…2026-11-16",
		"avant-hier":               "2026-11-23…2026-11-24",
		"l'été":                    "2026-06-01…2026-09-01 yearly",
		"1er mars":                 "2026-03-01…2026-03-02 yearly",
		"12.11.2026":               "2026-11-12…2026-11-13",
		"the day before yesterday": "2026-11-23…2026-11-24",
		"2026-W47":                 "2026-11-16…2026-11-23",
		"2020-W53":                 "2020-12-28…2021-01-04",
		"2025-W01":                 "2024-12-30…2025-01-06",
	} {
		if span, ok := Parse(text, now); !ok || span.String() != want {
			t.Errorf("%q is %s, %v; want %s", text, span, ok, want)
		}
	}
	for _, text := range []string{
		"", "soon", "-3d", "3 days", "3 moons ago", "d", "last", "thursday next", "30 February",
		"31.11.2026", "12/11/2026", "2026-13", "since monday", "2031", "2025-W53", "2026-W00", "2026-W4", "2026-W+7",
	} {
		if span, ok := Parse(text, now); ok {
			t.Errorf("%q is %s", text, span)
		}
	}
}

// Questions name times among other words. want is the text of the time and its span.
func TestQuestionsNameTimes(t *testing.T) {
	for text, want := range map[string]string{
		"what did we decide about the cache last week?":      "last week: 2026-11-16…2026-11-23",
		"who broke the build yesterday":                      "yesterday: 2026-11-24…2026-11-25",
		"what failed on 13 March":                            "13 March: 2026-03-13…2026-03-14 yearly",
		"notes from the 13th of March 2025":                  "13th of March 2025: 2025-03-13…2025-03-14",
		"7 October outage":                                   "7 October: 2026-10-07…2026-10-08 yearly",
		"what happened on October 7th, 2024?":                "October 7th, 2024: 2024-10-07…2024-10-08",
		"the outage of 12.11.2026":                           "12.11.2026: 2026-11-12…2026-11-13",
		"where did we stop two weeks ago":                    "two weeks ago: 2026-11-09…2026-11-16",
		"which bug did I fix last Tuesday?":                  "last Tuesday: 2026-11-24…2026-11-25",
		"what changed since Monday":                          "since Monday: 2026-11-23…",
		"which port did we use before June 2025?":            "before June 2025: …2025-06-01",
		"what did we try until June 2025?":                   "until June 2025: …2025-07-01",
		"after 13 March 2026 what changed":                   "after 13 March 2026: 2026-03-14…",
		"what was the plan for the summer release":           "summer: 2026-06-01…2026-09-01 yearly",
		"who is on the Monday board":                         "Monday: 2026-11-23…2026-11-24",
		"what did we do in May?":                             "May: 2026-05-01…2026-06-01 yearly",
		"the prices of early 2025":                           "2025: 2025-01-01…2026-01-01",
		"everything in the year 2024":                        "2024: 2024-01-01…2025-01-01",
		"what broke between 3 May and 5 June 2026":           "between 3 May and 5 June 2026: 2026-05-03…2026-06-06",
		"what did I say in the last two weeks":               "last two weeks: 2026-11-11…",
		"the error of the last few days, since last weekend": "since last weekend: 2026-11-21…",
		"was haben wir letzte Woche beschlossen":             "letzte Woche: 2026-11-16…2026-11-23",
		"was lief vor zwei Wochen schief?":                   "vor zwei Wochen: 2026-11-09…2026-11-16",
		"welche Preise galten vor dem 3. März 2026?":         "vor dem 3. März 2026: …2026-03-03",
		"welcher Fehler kam am 12.11. zurück":                "12.11: 2026-11-12…2026-11-13 yearly",
		"was war im März mit dem Server":                     "März: 2026-03-01…2026-04-01 yearly",
		"wer hat seit Montag committed":                      "seit Montag: 2026-11-23…",
		"was stand letzten Sommer im Vertrag":                "letzten Sommer: 2026-06-01…2026-09-01",
		"in den letzten drei Tagen":                          "letzten drei Tagen: 2026-11-22…",
		"qu'avons-nous décidé la semaine dernière ?":         "semaine dernière: 2026-11-16…2026-11-23",
		"le bug du 13 mars":                                  "13 mars: 2026-03-13…2026-03-14 yearly",
		"les tests d'il y a trois jours":                     "il y a trois jours: 2026-11-22…2026-11-23",
		"ce qu'on a dit mardi dernier":                       "mardi dernier: 2026-11-24…2026-11-25",
		"depuis lundi, quels tests échouent":                 "depuis lundi: 2026-11-23…",
		"le serveur avant juin 2025":                         "avant juin 2025: …2025-06-01",
		"le budget de l'été dernier":                         "été dernier: 2026-06-01…2026-09-01",
		"la réunion d'hier":                                  "hier: 2026-11-24…2026-11-25",
		"jusqu'en mars 2026, quel hôte":                      "jusqu'en mars 2026: …2026-04-01",
		"what was in the invoice of 2026-03-13":              "2026-03-13: 2026-03-13…2026-03-14",
	} {
		n := Find(text, now)
		if n == nil || n.Text+": "+n.Span.String() != want {
			t.Errorf("%q names %v, want %s", text, n, want)
		}
	}
	for _, text := range []string{
		"may I use the march script", "how does it work in Spring Boot", "return the last 5 messages",
		"the second last commit",
		"a fall in coverage", "port 2025 of the proxy", "version 1.2.3", "was ist der Plan", "il a été fait", "sun and moon",
		"section 3.2 of the spec",
		"before we merge", "bis bald", "vor dem Merge", "avant le merge", "in 2000 lines", "since then", "the next week",
		"one day",
	} {
		if n := Find(text, now); n != nil {
			t.Errorf("%q names %s", text, n.Text)
		}
	}
}

// A day without a year is of any year; a winter goes on in the next one.
func TestYearlySpansAreOfAnyYear(t *testing.T) {
	october, _ := Parse("7 October", now)
	winter, _ := Parse("winter", now)
	for text, want := range map[string][2]bool{
		"2026-10-07": {true, false}, "2019-10-07": {true, false}, "2019-10-08": {false, false},
		"2025-12-31": {false, true}, "2020-02-29": {false, true}, "2020-03-01": {false, false},
	} {
		at, _ := time.ParseInLocation(time.DateOnly, text, zone)
		if got := [2]bool{october.Contains(at), winter.Contains(at)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	oldest := time.Date(2024, 1, 1, 0, 0, 0, 0, zone)
	if got := october.Spans(oldest, 10); len(got) != 3 || got[2].String() != "2024-10-07…2024-10-08" {
		t.Errorf("%v", got)
	}
}

// What a question names can be given to the flags, and bounds the same span.
func TestFlagsOfNamedTimes(t *testing.T) {
	for text, want := range map[string][2]string{
		"what did we do last week":               {"last week", "2026-11-23"},
		"what did we do yesterday":               {"yesterday", "2026-11-25"},
		"what did we do this week":               {"this week", ""},
		"since Monday":                           {"Monday", ""},
		"before June 2025":                       {"", "June 2025"},
		"after 13 March 2026":                    {"2026-03-14", ""},
		"between 3 May and 5 June 2026":          {"3 May", "2026-06-06"},
		"qu'avons-nous fait la semaine dernière": {"semaine dernière", "2026-11-23"},
	} {
		n := Find(text, now)
		if n == nil || n.Since != want[0] || n.Until != want[1] {
			t.Errorf("%q: %+v, want %q", text, n, want)
			continue
		}
		for _, end := range []struct {
			text string
			at   time.Time
		}{{n.Since, n.From}, {n.Until, n.To}} {
			if at, ok := Moment(end.text, now); end.text != "" && (!ok || !at.Equal(end.at)) {
				t.Errorf("%q: the flag %q is %s, want %s", text, end.text, at, end.at)
			}
		}
	}
}

func TestWordsOfTimeAreKnown(t *testing.T) {
	n := Find("les logs de l'été dernier, pas avant-hier", now)
	for piece, want := range map[string]bool{
		"l'été": true, "dernier": true, "logs": false, "avant-hier": false,
		"": false,
	} {
		if n.Has(piece) != want {
			t.Errorf("%q: %v", piece, !want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("between 3 May and 5 June 2026 vor zwei Wochen l'été 12.11.")
	f.Fuzz(func(t *testing.T, text string) {
		if n := Find(text, now); n != nil && !n.From.IsZero() && !n.To.IsZero() && !n.From.Before(n.To) {
			t.Errorf("%q: %s", text, n.Span)
		}
		Parse(text, now)
	})
}
