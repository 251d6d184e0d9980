package when

import "time"

// The words of times in English, German and French, without case and diacritics.

func set(words ...string) map[string]bool {
	all := make(map[string]bool, len(words))
	for _, w := range words {
		all[w] = true
	}
	return all
}

// Each table is made once, when a text is parsed for the first time: commands that parse none do not pay for it.
type vocabulary struct {
	months, weekdays, numbers map[string]int
	seasons                   map[string]time.Month // the first of three months
	units                     map[string]unit
	last, this                map[string]bool
	after, before, from       map[string]bool // a time behind one bounds the span
	around                    map[string]bool // a time follows: what could be another word is none
	articles                  map[string]bool
	ambiguous                 map[string]bool // months and seasons that are other words as well
	short                     map[string]bool // abbreviations: a time only as a flag, or with a day or a year
}

type unit int

const (
	unitDay unit = iota + 1
	unitWeek
	unitMonth
	unitQuarter
	unitYear
)

func newVocabulary() *vocabulary {
	v := &vocabulary{months: map[string]int{}, weekdays: map[string]int{}, numbers: map[string]int{}}
	for i, names := range [][]string{
		{"january", "jan", "januar", "janner", "janvier"},
		{"february", "feb", "februar", "fevrier", "fev"},
		{"march", "mar", "marz", "maerz", "mars"},
		{"april", "apr", "avril", "avr"},
		{"may", "mai"},
		{"june", "jun", "juni", "juin"},
		{"july", "jul", "juli", "juillet"},
		{"august", "aug", "aout"},
		{"september", "sep", "sept", "septembre"},
		{"october", "oct", "oktober", "okt", "octobre"},
		{"november", "nov", "novembre"},
		{"december", "dec", "dezember", "dez", "decembre"},
	} {
		for _, name := range names {
			v.months[name] = i + 1
		}
	}
	for i, names := range [][]string{
		{"sunday", "sun", "sonntag", "dimanche"},
		{"monday", "mon", "montag", "lundi"},
		{"tuesday", "tue", "dienstag", "mardi"},
		{"wednesday", "wed", "mittwoch", "mercredi"},
		{"thursday", "thu", "donnerstag", "jeudi"},
		{"friday", "fri", "freitag", "vendredi"},
		{"saturday", "sat", "samstag", "sonnabend", "samedi"},
	} {
		for _, name := range names {
			v.weekdays[name] = i
		}
	}
	for i, names := range [][]string{
		{"a", "an", "one", "ein", "einem", "einer", "einen", "un", "une"},
		{"two", "couple", "zwei", "deux"},
		{"three", "drei", "trois"},
		{"four", "vier", "quatre"},
		{"five", "funf", "fuenf", "cinq"},
		{"six", "sechs"},
		{"seven", "sieben", "sept"},
		{"eight", "acht", "huit"},
		{"nine", "neun", "neuf"},
		{"ten", "zehn", "dix"},
		{"eleven", "elf", "onze"},
		{"twelve", "zwolf", "zwoelf", "douze"},
	} {
		for _, name := range names {
			v.numbers[name] = i + 1
		}
	}
	v.seasons = map[string]time.Month{ // of the north, where most who ask live
		"spring": time.March, "fruhling": time.March, "fruehling": time.March, "fruhjahr": time.March,
		"fruehjahr": time.March, "printemps": time.March,
		"summer": time.June, "sommer": time.June, "ete": time.June,
		"autumn": time.September, "fall": time.September, "herbst": time.September, "automne": time.September,
		"winter": time.December, "hiver": time.December,
	}
	v.units = map[string]unit{
		"day": unitDay, "days": unitDay, "tag": unitDay, "tage": unitDay, "tagen": unitDay, "jour": unitDay, "jours": unitDay,
		"week": unitWeek, "weeks": unitWeek, "woche": unitWeek, "wochen": unitWeek, "semaine": unitWeek, "semaines": unitWeek,
		"month": unitMonth, "months": unitMonth, "monat": unitMonth, "monate": unitMonth, "monaten": unitMonth,
		"monats": unitMonth, "mois": unitMonth,
		"quarter": unitQuarter, "quarters": unitQuarter, "quartal": unitQuarter, "quartale": unitQuarter,
		"quartalen": unitQuarter, "trimestre": unitQuarter, "trimestres": unitQuarter,
		"year": unitYear, "years": unitYear, "jahr": unitYear, "jahre": unitYear, "jahren": unitYear, "jahres": unitYear,
		"an": unitYear, "ans": unitYear, "annee": unitYear, "annees": unitYear,
	}
	v.last = set("last", "past", "previous", "letzte", "letzten", "letzter", "letztes", "letztem", "vorige", "vorigen",
		"voriges", "vorigem",
		"vergangene", "vergangenen", "vergangenes", "vergangenem", "dernier", "derniere", "derniers", "dernieres", "passe",
		"passee")
	v.this = set("this", "current", "diese", "diesen", "dieser", "dieses", "diesem", "ce", "cet", "cette")
	v.from = set("since", "seit", "ab", "depuis")
	v.after = set("after", "nach", "apres")
	v.before = set("before", "until", "till", "vor", "bis", "avant")
	v.around = set("in", "on", "of", "during", "from", "by", "around", "early", "late", "mid", "through", "im", "am",
		"vom", "wahrend", "anfang", "mitte", "ende", "gegen",
		"en", "de", "du", "debut", "fin", "mi", "le", "courant")
	v.articles = set("the", "der", "die", "das", "dem", "den", "des", "le", "la", "les", "l", "zum", "zur", "au")
	v.ambiguous = set("march", "may", "mars", "spring", "fall", "ete")
	v.short = set("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "okt", "nov", "dec", "dez", "fev",
		"avr",
		"sun", "mon", "tue", "wed", "thu", "fri", "sat")
	return v
}
