package when

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

var words = sync.OnceValue(newVocabulary)

// plain removes the diacritics of German and French.
var plain = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "é", "e", "è", "e", "ê", "e", "û", "u", "â", "a", "à",
	"a", "ç", "c", "a\u0308", "a", "u\u0308", "u", "e\u0301", "e", "e\u0300", "e", "u\u0302", "u")

// token is a word or a number of a text; 12.11.2026 is one.
type token struct {
	word     string // in lower case, without diacritics
	from, to int    // bytes of the text
}

func tokensOf(text string) (tokens []token) {
	start := -1
	end := func(at int) {
		if start >= 0 {
			tokens = append(tokens, token{plain.Replace(strings.ToLower(text[start:at])), start, at})
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r):
			if start < 0 {
				start = i
			}
		case strings.ContainsRune(".-/", r) && start >= 0 && isDigitAt(text, i-1) && isDigitAt(text, i+1):
		default:
			end(i)
		}
	}
	end(len(text))
	return tokens
}

func isDigitAt(text string, i int) bool {
	return i >= 0 && i < len(text) && '0' <= text[i] && text[i] <= '9'
}

// parser reads times from the tokens of a text.
type parser struct {
	*vocabulary
	text   string
	tokens []token
	now    time.Time
	today  time.Time
}

func newParser(text string, now time.Time) *parser {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	return &parser{vocabulary: words(), text: text, tokens: tokensOf(text), now: now, today: today}
}

// at returns a token's word, "" beyond the last.
func (p *parser) at(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.tokens[i].word
}

func (p *parser) skip(i int, words map[string]bool) int {
	for words[p.at(i)] {
		i++
	}
	return i
}

// named returns the time that the text names from token i on, nil if there is none.
func (p *parser) named(i int) *Named {
	if n := p.between(i); n != nil {
		return n
	}
	if span, end, ok := p.time(i, false); ok { // vor zwei Wochen is no bound
		return p.name(span, i, i, end)
	}
	word := p.at(i)
	bounds := p.from[word] || p.after[word] || p.before[word]
	first := i + 1
	if word == "jusqu" { // jusqu'à, jusqu'en
		bounds, first = true, i+2
	}
	if !bounds && !p.around[word] {
		return nil
	}
	first = p.skip(first, p.articles)
	for p.around[p.at(first)] { // since early March
		first++
	}
	if u := p.units[p.at(first)]; u == unitYear { // in the year 2025
		first++
	}
	span, end, ok := p.time(first, true)
	if !ok || p.isOtherWord(i, first, end) {
		return nil
	}
	if !bounds {
		return p.name(span, first, first, end)
	}
	switch {
	case p.from[word]:
		span = Span{From: span.From}
	case p.after[word]:
		span = Span{From: span.To}
	case !span.From.IsZero():
		if p.isThrough(word) {
			span = Span{To: span.To}
		} else {
			span = Span{To: span.From}
		}
	}
	if span == (Span{}) { // after an open time
		return nil
	}
	return p.name(span, i, first, end)
}

// isThrough tells the bounds that include their time.
func (p *parser) isThrough(word string) bool {
	return word == "until" || word == "till" || word == "bis" || word == "jusqu"
}

// isOtherWord reports whether a word behind in or of is no month or season: "in Spring Boot", "of May Ltd".
func (p *parser) isOtherWord(i, first, end int) bool {
	if end-first != 1 || end >= len(p.tokens) || !p.ambiguous[p.at(first)] ||
		strings.TrimSpace(p.text[p.tokens[first].to:p.tokens[end].from]) != "" {
		return false
	}
	next, _ := utf8.DecodeRuneInString(p.text[p.tokens[end].from:])
	return p.seasons[p.at(first)] != 0 && first == i+1 || unicode.IsUpper(next)
}

func (p *parser) name(span Span, from, first, end int) *Named {
	n := &Named{Span: span, Text: p.text[p.tokens[from].from:p.tokens[end-1].to]}
	n.bound(p.text[p.tokens[first].from:p.tokens[end-1].to], p.now)
	for _, form := range []form{p.namedDay, p.ago, p.relative} {
		if _, _, ok := form(first, false); ok {
			n.Relative = true
		}
	}
	for _, t := range p.tokens[from:end] {
		n.words = append(n.words, t.word)
	}
	return n
}

// bound sets the texts of the span's ends: the time as it was written, if that is one.
func (n *Named) bound(written string, now time.Time) {
	text := func(t time.Time) string {
		if at, ok := Moment(written, now); ok && at.Equal(t) {
			return written
		}
		return t.Format(time.DateOnly)
	}
	if !n.From.IsZero() {
		n.Since = text(n.From)
	}
	if !n.To.IsZero() && !n.To.After(now) {
		n.Until = text(n.To)
	}
}

// between parses between X and Y, and from X to Y.
func (p *parser) between(i int) *Named {
	links := map[string]string{
		"between": "and", "zwischen": "und", "entre": "et", "from": "to", "vom": "bis",
		"von": "bis", "du": "au",
	}
	link, ok := links[p.at(i)]
	if !ok {
		return nil
	}
	first := p.skip(i+1, p.articles)
	span, at, ok := p.time(first, true)
	if !ok || p.at(at) != link {
		return nil
	}
	second := p.skip(at+1, p.articles)
	until, end, ok := p.time(second, true)
	if !ok || until.To.IsZero() || span.From.IsZero() {
		return nil
	}
	if until.Yearly && !span.From.Before(until.To) { // from December to January
		until.To = until.To.AddDate(1, 0, 0)
	}
	both := p.name(Span{From: span.From, To: until.To, Yearly: span.Yearly && until.Yearly}, i, i, end)
	both.bound(p.text[p.tokens[first].from:p.tokens[at-1].to], p.now)
	return both
}

// form parses times of one form, as time does.
type form func(i int, plainly bool) (span Span, end int, ok bool)

// time parses the time that begins with token i, and returns the token behind it. plainly says that the text before
// it tells that it is a time: so March and 2025 are.
func (p *parser) time(i int, plainly bool) (span Span, end int, ok bool) {
	for _, form := range []form{p.namedDay, p.ago, p.relative, p.date, p.weekday, p.month, p.season, p.year} {
		if span, end, ok = form(i, plainly); ok {
			return span, end, true
		}
	}
	return Span{}, i, false
}

// namedDay parses today and yesterday.
func (p *parser) namedDay(i int, _ bool) (Span, int, bool) {
	days := func(ago, tokens int) (Span, int, bool) { return day(p.today.AddDate(0, 0, -ago)), i + tokens, true }
	next, then := p.at(i+1), p.at(i+2)
	switch p.at(i) {
	case "today", "heute":
		return days(0, 1)
	case "yesterday", "gestern", "hier":
		return days(1, 1)
	case "vorgestern":
		return days(2, 1)
	case "aujourd":
		if next == "hui" {
			return days(0, 2)
		}
	case "avant":
		if next == "hier" && p.tokens[i+1].from == p.tokens[i].to+1 && p.text[p.tokens[i].to] == '-' {
			return days(2, 2)
		}
	case "day":
		if next == "before" && then == "yesterday" {
			return days(2, 3)
		}
	case "this":
		if next == "morning" || next == "afternoon" || next == "evening" {
			return days(0, 2)
		}
	case "ce":
		if next == "matin" || next == "soir" {
			return days(0, 2)
		}
	case "last":
		if next == "night" {
			return Span{From: p.today.AddDate(0, 0, -1), To: p.today.Add(6 * time.Hour)}, i + 2, true
		}
	}
	return Span{}, i, false
}

// number parses a number, in digits or as a word.
func (p *parser) number(i int) (n, end int, ok bool) {
	word := p.at(i)
	if n, err := strconv.Atoi(word); err == nil && n > 0 && len(word) <= 3 {
		return n, i + 1, true
	}
	if n = p.numbers[word]; n == 0 {
		return 0, i, false
	}
	if end = i + 1; word == "a" && p.at(end) == "couple" {
		n, end = 2, end+1
	}
	if p.at(end-1) == "couple" && p.at(end) == "of" {
		end++
	}
	return n, end, true
}

// ago parses two weeks ago, vor zwei Wochen, il y a deux semaines.
func (p *parser) ago(i int, _ bool) (Span, int, bool) {
	first, leads := i, false
	switch {
	case p.at(i) == "vor":
		first, leads = i+1, true
	case p.at(i) == "il" && p.at(i+1) == "y" && p.at(i+2) == "a":
		first, leads = i+3, true
	}
	n, at, ok := p.number(first)
	if !ok {
		return Span{}, i, false
	}
	u, ok := p.units[p.at(at)]
	switch {
	case !ok:
		return Span{}, i, false
	case leads:
		return p.unitAgo(u, n), at + 1, true
	case p.at(at+1) == "ago":
		return p.unitAgo(u, n), at + 2, true
	}
	return Span{}, i, false
}

// unitAgo returns the day, week, month, quarter or year that was n before this one.
func (p *parser) unitAgo(u unit, n int) Span {
	t, zone := p.today, p.today.Location()
	switch u {
	case unitDay:
		return day(t.AddDate(0, 0, -n))
	case unitWeek:
		monday := t.AddDate(0, 0, -(int(t.Weekday())+6)%7-7*n)
		return Span{From: monday, To: monday.AddDate(0, 0, 7)}
	case unitMonth:
		first := time.Date(t.Year(), t.Month()-time.Month(n), 1, 0, 0, 0, 0, zone)
		return Span{From: first, To: first.AddDate(0, 1, 0)}
	case unitQuarter:
		first := time.Date(t.Year(), (t.Month()-1)/3*3+1-time.Month(3*n), 1, 0, 0, 0, 0, zone)
		return Span{From: first, To: first.AddDate(0, 3, 0)}
	}
	first := time.Date(t.Year()-n, 1, 1, 0, 0, 0, 0, zone)
	return Span{From: first, To: first.AddDate(1, 0, 0)}
}

// relative parses last week, this month, the last three days, letztes Jahr, la semaine dernière, ces deux dernières
// semaines; also of weekdays, weekends, months and seasons.
func (p *parser) relative(i int, _ bool) (Span, int, bool) {
	switch word := p.at(i); {
	case word == "vorletzte" || word == "vorletzten" || word == "vorletztes":
		if u := p.units[p.at(i+1)]; u != 0 {
			return p.unitAgo(u, 2), i + 2, true
		}
	case p.last[word]:
		return p.lastOf(i + 1)
	case p.this[word]:
		if u := p.units[p.at(i+1)]; u != 0 && !p.last[p.at(i+2)] {
			return p.unitAgo(u, 0), i + 2, true
		}
		if span, end, ok := p.recent(i+1, false); ok {
			return span, end, true
		}
	case word == "ces":
		if n, at, ok := p.number(i + 1); ok && p.last[p.at(at)] && p.units[p.at(at+1)] != 0 {
			return p.lastUnits(p.units[p.at(at+1)], n), at + 2, true
		}
	case p.last[p.at(i+1)]: // French
		if u := p.units[word]; u != 0 {
			return p.unitAgo(u, 1), i + 2, true
		}
		if span, end, ok := p.recent(i, true); ok && end == i+1 {
			return span, i + 2, true
		}
	case word == "week" && p.at(i+1) == "end" && p.last[p.at(i+2)]:
		return p.weekend(), i + 3, true
	}
	if n, at, ok := p.number(i); ok && p.last[p.at(at)] && p.units[p.at(at+1)] != 0 { // les deux dernières semaines
		return p.lastUnits(p.units[p.at(at+1)], n), at + 2, true
	}
	return Span{}, i, false
}

// lastOf parses what follows last.
func (p *parser) lastOf(i int) (Span, int, bool) {
	if u := p.units[p.at(i)]; u != 0 {
		return p.unitAgo(u, 1), i + 1, true
	}
	if n, at, ok := p.number(i); ok && p.units[p.at(at)] != 0 {
		return p.lastUnits(p.units[p.at(at)], n), at + 1, true
	}
	return p.recent(i, true)
}

// recent parses a weekday, a weekend, a month or a season, of which the newest that began is meant; the newest that is
// over if ended.
func (p *parser) recent(i int, ended bool) (Span, int, bool) {
	switch p.at(i) {
	case "weekend", "wochenende":
		return p.weekend(), i + 1, true
	}
	if weekday, ok := p.weekdays[p.at(i)]; ok {
		return day(p.newestDay(weekday, ended)), i + 1, true
	}
	span, ok := p.bareSpan(i)
	if !ok {
		return Span{}, i, false
	}
	span.Yearly = false
	if ended && span.To.After(p.today) {
		span = span.shifted(-1)
	}
	return span, i + 1, true
}

// lastUnits returns the last n days, weeks and so on, until now.
func (p *parser) lastUnits(u unit, n int) Span {
	from := p.today
	switch u {
	case unitDay:
		from = from.AddDate(0, 0, -n)
	case unitWeek:
		from = from.AddDate(0, 0, -7*n)
	case unitMonth:
		from = from.AddDate(0, -n, 0)
	case unitQuarter:
		from = from.AddDate(0, -3*n, 0)
	case unitYear:
		from = from.AddDate(-n, 0, 0)
	}
	return Span{From: from}
}

// weekend returns the last weekend, of which this day may be one.
func (p *parser) weekend() Span {
	saturday := p.newestDay(int(time.Saturday), false)
	return Span{From: saturday, To: saturday.AddDate(0, 0, 2)}
}

// newestDay returns the newest such day, without today if it must be over.
func (p *parser) newestDay(weekday int, ended bool) time.Time {
	ago := (int(p.today.Weekday()) - weekday + 7) % 7
	if ended && ago == 0 {
		ago = 7
	}
	return p.today.AddDate(0, 0, -ago)
}

// weekday parses Monday and, plainly a time, Mon.
func (p *parser) weekday(i int, plainly bool) (Span, int, bool) {
	weekday, ok := p.weekdays[p.at(i)]
	if !ok || p.short[p.at(i)] && !plainly {
		return Span{}, i, false
	}
	return day(p.newestDay(weekday, false)), i + 1, true
}

// date parses 12.11.2026, 2026-11-12, 13 March 2026, 13. März, le 13 mars, October 7th, 7 October.
func (p *parser) date(i int, plainly bool) (Span, int, bool) {
	if span, ok := p.numericDate(i, plainly); ok {
		return span, i + 1, true
	}
	at := p.skip(i, p.articles)
	if n, ok := dayOfMonth(p.at(at)); ok {
		at++
		if p.at(at) == "of" || p.at(at) == "de" {
			at++
		}
		if month, ok := p.months[p.at(at)]; ok {
			return p.dayOf(n, month, at+1, i)
		}
		return Span{}, i, false
	}
	month, ok := p.months[p.at(i)]
	if !ok {
		return Span{}, i, false
	}
	at = p.skip(i+1, p.articles)
	n, ok := dayOfMonth(p.at(at))
	if !ok {
		return Span{}, i, false
	}
	return p.dayOf(n, month, at+1, i)
}

// dayOf returns a day of a month, of the year at token i if there is one, else of any year.
func (p *parser) dayOf(n, month, i, first int) (Span, int, bool) {
	if year, ok := yearOf(p.at(i)); ok {
		at, ok := p.dayIn(year, month, n)
		return day(at), i + 1, ok
	}
	year := p.today.Year()
	for range 8 { // at most until the last 29 February
		if at, ok := p.dayIn(year, month, n); ok && !at.After(p.today) {
			span := day(at)
			span.Yearly = true
			return span, i, true
		}
		year--
	}
	return Span{}, first, false
}

func (p *parser) dayIn(year, month, n int) (time.Time, bool) {
	at := time.Date(year, time.Month(month), n, 0, 0, 0, 0, p.now.Location())
	return at, at.Day() == n
}

// dayOfMonth parses 7, 7th, 1er.
func dayOfMonth(word string) (int, bool) {
	for _, ending := range []string{"st", "nd", "rd", "th", "er"} {
		if cut, ok := strings.CutSuffix(word, ending); ok {
			word = cut
			break
		}
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && 1 <= n && n <= 31 && len(word) <= 2
}

func yearOf(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && len(word) == 4 && 1970 <= n && n < 2100
}

// numericDate parses 12.11.2026, 2026-11-12, 2026/11/12, 31/12/2026 and 12/31/2026, which is no other day, 2026-11 and,
// plainly a time, 12.11. of any year.
func (p *parser) numericDate(i int, plainly bool) (Span, bool) {
	word := p.at(i)
	separator := strings.IndexAny(word, ".-/")
	if separator < 0 {
		return Span{}, false
	}
	var numbers []int
	for part := range strings.SplitSeq(word, word[separator:separator+1]) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return Span{}, false
		}
		numbers = append(numbers, n)
	}
	first, isYear := yearOf(word[:separator])
	switch {
	case isYear && len(numbers) == 3 && word[separator] != '.':
		return p.dayNumbered(first, numbers[1], numbers[2])
	case isYear && len(numbers) == 2 && word[separator] == '-' && 1 <= numbers[1] && numbers[1] <= 12:
		from := time.Date(first, time.Month(numbers[1]), 1, 0, 0, 0, 0, p.now.Location())
		return Span{From: from, To: from.AddDate(0, 1, 0)}, true
	case isYear:
		return Span{}, false
	case len(numbers) == 2 && word[separator] == '.' && plainly && strings.HasPrefix(p.text[p.tokens[i].to:], ".") &&
		1 <= numbers[1] && numbers[1] <= 12:
		span, _, ok := p.dayOf(numbers[0], numbers[1], len(p.tokens), i)
		return span, ok && numbers[0] > 0
	case len(numbers) != 3 || word[separator] == '-':
		return Span{}, false
	}
	year := numbers[2]
	if plainly && word[separator] == '.' && len(word)-strings.LastIndexByte(word, '.') == len(".26") { // else a version
		year += 2000
	}
	if year < 1970 || year >= 2100 {
		return Span{}, false
	}
	if word[separator] == '/' { // 12/11/2026 is another day for Americans
		switch {
		case numbers[1] > 12:
			numbers[0], numbers[1] = numbers[1], numbers[0]
		case numbers[0] <= 12 && numbers[0] != numbers[1]:
			return Span{}, false
		}
	}
	return p.dayNumbered(year, numbers[1], numbers[0])
}

func (p *parser) dayNumbered(year, month, n int) (Span, bool) {
	if month < 1 || month > 12 || n < 1 {
		return Span{}, false
	}
	at, ok := p.dayIn(year, month, n)
	return day(at), ok
}

// month parses March 2025 and, of any year, June; plainly a time, also May.
func (p *parser) month(i int, plainly bool) (Span, int, bool) {
	if p.months[p.at(i)] == 0 {
		return Span{}, i, false
	}
	return p.spanOfYear(i, plainly)
}

// season parses summer 2025 and, of any year, summer.
func (p *parser) season(i int, plainly bool) (Span, int, bool) {
	at := i
	if p.at(at) == "l" && !p.last[p.at(at+2)] { // l'été
		at, plainly = at+1, true
	}
	if p.seasons[p.at(at)] == 0 {
		return Span{}, i, false
	}
	span, end, ok := p.spanOfYear(at, plainly)
	return span, end, ok
}

func (p *parser) spanOfYear(i int, plainly bool) (Span, int, bool) {
	span, ok := p.bareSpan(i)
	if !ok {
		return Span{}, i, false
	}
	at := i + 1
	if p.at(at) == "of" || p.at(at) == "de" {
		at++
	}
	if year, ok := yearOf(p.at(at)); ok {
		span.Yearly = false
		return span.shifted(year - span.From.Year()), at + 1, true
	}
	if !plainly && (p.short[p.at(i)] || p.ambiguous[p.at(i)]) {
		return Span{}, i, false
	}
	return span, i + 1, true
}

// bareSpan returns the newest month or season of a name that began.
func (p *parser) bareSpan(i int) (Span, bool) {
	first, months := time.Month(p.months[p.at(i)]), 1
	if first == 0 {
		first, months = p.seasons[p.at(i)], 3
	}
	if first == 0 {
		return Span{}, false
	}
	from := time.Date(p.today.Year(), first, 1, 0, 0, 0, 0, p.today.Location())
	if from.After(p.today) {
		from = from.AddDate(-1, 0, 0)
	}
	return Span{From: from, To: from.AddDate(0, months, 0), Yearly: true}, true
}

// mostYears is how long ago a year is that a number of four digits names: what agents said is no older.
const mostYears = 20

// year parses 2025 where it is plainly a time.
func (p *parser) year(i int, plainly bool) (Span, int, bool) {
	year, ok := yearOf(p.at(i))
	if !ok || !plainly || year > p.now.Year() || year < p.now.Year()-mostYears {
		return Span{}, i, false
	}
	from := time.Date(year, 1, 1, 0, 0, 0, 0, p.now.Location())
	return Span{From: from, To: from.AddDate(1, 0, 0)}, i + 1, true
}
