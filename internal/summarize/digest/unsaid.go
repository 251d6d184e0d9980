package digest

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// unsaidMark stands behind a value in a model's summary that the conversation does not have.
const unsaidMark = "[not in the conversation]"

// claim is a value in a model's summary that can be looked up in the conversation: an amount, a URL, a path, a hash,
// or an identifier or number with four digits or more.
type claim struct {
	end     int      // where a mark goes in the text
	from    int      // where the value begins
	text    string   // normalised
	kind    factKind // amount, number, URL, path or identifier
	numbers []string // of an amount or number: what it may mean, in plain decimals
	money   string   // of an amount: its currency; "" for none
}

// Amounts have a currency, a unit or a percent sign; the words are those that people write without a number's help.
const (
	moneySigns = `US\$|[$€£¥₹₩]`
	moneyCodes = `USD|EUR|GBP|JPY|CNY|CHF|INR|KRW|CAD|AUD|dollars?|euros?|pounds?|yen|Euro|Dollar`
	units      = `percent|Prozent|ns|µs|μs|ms|s|sec|seconds?|min|minutes?|h|hours?|days?|Sekunden?|Minuten?|Stunden?|` +
		`Tagen?|bytes?|[KMGT]i?B|[kmgt]b|Hz|kHz|MHz|GHz|px|mm|cm|m|km|mg|g|kg|tokens?`
	scales = `k|K|M|bn|thousand|million|billion|Tausend|Mio\.?|Mrd\.?|Millionen|Milliarden`
	figure = `\d+(?:[.,' ’\x{00a0}\x{202f}]\d{3})+(?:[.,]\d{1,2})?\b|\d+(?:[.,]\d+)?`
)

var (
	urlForm  = pattern.New("(?i)\\bhttps?://[^\\s<>\"`|\\\\\\p{Han}\\p{Hiragana}\\p{Katakana}、。）」]+")
	pathForm = pattern.New(`\b[A-Za-z]:[/\\][\w.@+-]+(?:[/\\][\w.@+-]+)*|` +
		`(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+`)
	wordForm   = pattern.New(`[\pL\pN_#@][\pL\pN_#@.:+-]*[\pL\pN]`)
	amountForm = pattern.New(`(?:(` + moneySigns + `|\b(?:` + moneyCodes + `))\s?)?(` + figure + `)` +
		`(?:[ \x{00a0}]?(` + scales + `)\b)?(?:\s?(` + moneySigns + `|(?:` + moneyCodes + `)\b)|\s?(%|(?:` + units + `)\b))?`)
	extension  = pattern.New(`[\w-]\.[A-Za-z][A-Za-z0-9]{0,7}$`)
	lineSuffix = pattern.New(`:\d+(?::\d+)?$`)
	dateForm   = pattern.New(`^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:t[\d:.+-]+z?)?$`)
	unescaped  = strings.NewReplacer(
		`\n`, "\n", `\t`, "\t", `\"`, `"`, `\/`, "/", `\u0026`, "&", `\u003c`, "<", `\u003e`, ">", `\\`, "/", `\`, "/",
	)
	marked = pattern.New(`\s*` + regexp.QuoteMeta(unsaidMark))
)

// MarkUnsaid marks each value of a model's summary that the request does not have.
func MarkUnsaid(text string, req *session.SummaryRequest) string {
	return markUnsaid(text, spoken(req))
}

// markUnsaid marks each value of a model's text that none of the sources has. A mark that the model wrote is removed
// first: only the sources decide.
func markUnsaid(text string, sources iter.Seq[string]) string {
	text = marked.ReplaceAllString(text, "")
	open := findClaims(text)
	if len(open) == 0 {
		return text
	}
	for source := range sources {
		s := newSource(source)
		if open = slices.DeleteFunc(open, func(c claim) bool { return s.has(&c) }); len(open) == 0 {
			return text
		}
	}
	var b strings.Builder
	done := 0
	for i := range open {
		b.WriteString(text[done:open[i].end] + " " + unsaidMark)
		done = open[i].end
	}
	return b.String() + text[done:]
}

// spoken returns what counts as said for a summary: the messages, the owner's wishes, the files, and earlier summaries
// without what was marked in them.
func spoken(req *session.SummaryRequest) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, text := range slices.Concat([]string{req.Previous}, req.Spans) {
			if !yield(withoutUnsaid(text)) {
				return
			}
		}
		if !yield(strings.Join(slices.Concat([]string{req.Instructions}, req.ReadFiles, req.ModifiedFiles), "\n")) {
			return
		}
		for i := range req.Messages {
			m := &req.Messages[i]
			if !yield(strconv.FormatInt(m.Seq, 10)) { // prompts number the messages
				return
			}
			for k := range m.Parts {
				p := &m.Parts[k]
				for _, text := range []string{p.Content(), p.Arguments, string(p.Extra)} {
					if text != "" && !yield(text) {
						return
					}
				}
			}
		}
	}
}

// withoutUnsaid removes the marked values of a summary.
func withoutUnsaid(text string) string {
	if !strings.Contains(text, unsaidMark) {
		return text
	}
	var b strings.Builder
	done := 0
	for _, c := range findClaims(text) {
		if c.from >= done && strings.HasPrefix(strings.TrimSpace(text[c.end:]), unsaidMark) {
			b.WriteString(text[done:c.from])
			done = c.end
		}
	}
	return b.String() + text[done:]
}

// findClaims returns the values of a text, in order.
func findClaims(text string) (found []claim) {
	taken := 0 // up to here in the present pass
	var spans [][2]int
	isFree := func(from, to int) bool {
		return !slices.ContainsFunc(spans, func(s [2]int) bool { return from < s[1] && to > s[0] })
	}
	add := func(from, to int, c claim) {
		spans = append(spans, [2]int{from, to})
		if c.text != "" {
			c.from, c.end = from, afterClosers(text, from, to)
			found = append(found, c)
		}
	}
	for _, at := range urlForm.FindAllStringIndex(text, -1) {
		value := trimValue(text[at[0]:at[1]])
		add(at[0], at[0]+len(value), claim{text: normalURL(value), kind: factURL})
	}
	for _, at := range pathForm.FindAllStringIndex(text, -1) {
		if isFree(at[0], at[1]) {
			value := strings.TrimRight(text[at[0]:at[1]], ".-+@")
			if c := (claim{text: normalPath(value), kind: factPath}); isPath(value) {
				add(at[0], at[0]+len(value), c)
			}
		}
	}
	for _, at := range wordForm.FindAllStringIndex(text, -1) {
		value := text[at[0]:at[1]]
		if isFree(at[0], at[1]) && isIdentifier(value) {
			add(at[0], at[1], claim{text: strings.ToLower(strings.TrimLeft(value, "#@")), kind: factIdentifier})
		}
	}
	for _, at := range amountForm.FindAllStringSubmatchIndex(text, -1) {
		if at[0] >= taken && isFree(at[0], at[1]) && !touchesWord(text, at[4], at[5]) {
			if c, ok := amountClaim(text, at); ok {
				add(at[0], at[1], c)
				taken = at[1]
			}
		}
	}
	slices.SortFunc(found, func(a, b claim) int { return a.end - b.end })
	return slices.CompactFunc(found, func(a, b claim) bool { return a.end == b.end })
}

// amountClaim returns an amount, or a number of four digits or more. at are the groups of amountForm.
func amountClaim(text string, at []int) (claim, bool) {
	group := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return text[at[2*i]:at[2*i+1]]
	}
	c := claim{text: group(2), kind: factAmount, numbers: readings(group(2)), money: currency(group(1) + group(4))}
	for _, n := range slices.Clone(c.numbers) {
		if scaled, ok := scaledBy(n, group(3)); ok {
			c.numbers = append(c.numbers, scaled)
		}
		if group(5) == "%" {
			c.numbers = append(c.numbers, shifted(n, -2))
		}
	}
	if c.money == "" && group(5) == "" {
		c.kind = factNumber
		return c, digitsIn(c.text) >= 4
	}
	return c, true
}

// touchesWord reports whether text[from:to] is part of a longer word or number.
func touchesWord(text string, from, to int) bool {
	return from > 0 && (isAlnum(text[from-1]) || text[from-1] == '_') || to < len(text) && text[to] == '_' ||
		from > 1 && text[from-1] == '.' && isAlnum(text[from-2])
}

// isIdentifier reports whether a word is a hash, or has four digits and something beside them.
func isIdentifier(s string) bool {
	digits := digitsIn(s)
	if digits == len(s) || len(readings(s)) > 0 && !strings.ContainsAny(s, "#@") {
		return false // a number
	}
	return digits >= 4 || isHash(s)
}

func isHash(s string) bool {
	letters := strings.IndexFunc(s, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'f') && (r < '0' || r > '9') })
	return letters < 0 && len(s) >= 7 && digitsIn(s) > 0 && digitsIn(s) < len(s)
}

// isPath reports whether a match of pathForm is a path: it is rooted, or its last name has an extension. "and/or" is
// none, neither is a date or a rate.
func isPath(s string) bool {
	s = strings.ReplaceAll(s, `\`, "/")
	rooted := s[0] == '/' || s[0] == '~' || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") ||
		len(s) > 2 && s[1:3] == ":/"
	letters := strings.ContainsFunc(s, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	return letters && (rooted && strings.Count(s, "/") > 1 || extension.MatchString(s))
}

func digitsIn(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// trimValue removes the punctuation of the sentence from a URL's end, and a bracket that it did not open.
func trimValue(s string) string {
	for s != "" {
		last := s[len(s)-1]
		switch {
		case strings.IndexByte(".,;:!?'*_~", last) >= 0:
		case last == ')' && strings.Count(s, ")") > strings.Count(s, "("):
		case last == ']' && strings.Count(s, "]") > strings.Count(s, "["):
		case last == '}':
		default:
			if i := strings.Index(s, "]("); i > 0 { // a link whose text is the URL
				return trimValue(s[:i])
			}
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}

// normalURL returns a URL as a source is searched for it: without scheme, www. and the slash at its end.
func normalURL(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "&amp;", "&"))
	_, s, _ = strings.Cut(s, "://")
	return strings.TrimRight(strings.TrimPrefix(s, "www."), "/")
}

// normalPath returns a path as a source is searched for it: with slashes, without ./, ~/ and a line's number.
func normalPath(s string) string {
	s = lineSuffix.ReplaceAllString(strings.ToLower(strings.ReplaceAll(s, `\`, "/")), "")
	for _, prefix := range []string{"./", "~/"} {
		s = strings.TrimPrefix(s, prefix)
	}
	return strings.TrimRight(s, "/.")
}

// afterClosers returns where a mark goes: behind the quotes, code marks and link that end with the value.
func afterClosers(text string, from, to int) int {
	for to < len(text) {
		switch c := text[to]; {
		case c == '`' || c == '*' || c == '"':
		case c == '>' && from > 0 && text[from-1] == '<':
		case c == ')' && from > 1 && text[from-2:from] == "](":
		default:
			return to
		}
		to++
	}
	return to
}

// currency returns the code of a currency's sign, code or word; "" for another text.
func currency(s string) string {
	switch strings.TrimRight(strings.ToLower(s), "s") {
	case "$", "us$", "usd", "dollar":
		return "USD"
	case "€", "eur", "euro":
		return "EUR"
	case "£", "gbp", "pound":
		return "GBP"
	case "¥", "jpy", "cny", "yen":
		return "JPY or CNY"
	}
	return strings.ToUpper(s)
}

// readings returns the plain decimals that a number may mean: 1,299 is 1299 or 1.299. It returns none for another text.
func readings(s string) []string {
	s = strings.TrimRight(s, ".,:")
	if s == "" || strings.Trim(s, "0123456789.,' ’\u00a0\u202f") != "" || s[0] < '0' || s[0] > '9' {
		return nil
	}
	parts := digitRuns(s)
	whole := strings.Join(parts, "")
	if len(parts) == 1 {
		return []string{plain(whole, "")}
	}
	last := len(parts) - 1
	var out []string
	grouped := func(parts []string) bool {
		return !slices.ContainsFunc(parts[1:], func(p string) bool { return len(p) != 3 }) && len(parts[0]) <= 3
	}
	separators := strings.Trim(s, "0123456789")
	if grouped(parts) && separators != "" {
		out = append(out, plain(whole, ""))
	}
	if end := s[len(s)-len(parts[last])-1]; (end == '.' || end == ',') && (last == 1 || grouped(parts[:last])) {
		out = append(out, plain(strings.Join(parts[:last], ""), parts[last]))
	}
	return out
}

// plain returns a decimal without zeros that say nothing.
func plain(whole, fraction string) string {
	whole = strings.TrimLeft(whole, "0")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	if whole == "" {
		whole = "0"
	}
	return whole + fraction
}

// scaledBy returns a plain decimal times a thousand, a million or a billion. ok is false for another word.
func scaledBy(n, word string) (scaled string, ok bool) {
	switch strings.TrimRight(word, ".") {
	case "k", "K", "thousand", "Tausend":
		return shifted(n, 3), true
	case "M", "million", "Mio", "Millionen":
		return shifted(n, 6), true
	case "bn", "billion", "Mrd", "Milliarden":
		return shifted(n, 9), true
	}
	return "", false
}

// shifted moves the point of a plain decimal to the right, or to the left.
func shifted(n string, places int) string {
	whole, fraction, _ := strings.Cut(n, ".")
	for ; places > 0; places-- {
		fraction += "0"
		whole, fraction = whole+fraction[:1], fraction[1:]
	}
	for ; places < 0; places++ {
		whole = "0" + whole
		whole, fraction = whole[:len(whole)-1], whole[len(whole)-1:]+fraction
	}
	return plain(whole, fraction)
}

// source is a text of the conversation, normalised as claims are. The forms after text are made when one is needed.
type source struct {
	raw     string
	text    string              // lower case, slashes
	joined  string              // without line breaks, in which terminals wrap long values
	digits  string              // without what separates digits
	numbers map[string][]string // plain decimals, each with the currencies it has; "" for none
}

func newSource(text string) *source {
	if strings.Contains(text, `\`) { // JSON, or a path of Windows
		text += "\n" + unescaped.Replace(text)
	}
	text = strings.NewReplacer("&amp;", "&", "\r", "").Replace(text)
	return &source{raw: text, text: strings.ToLower(text)}
}

// currenciesOf returns the currencies that a plain decimal has in the source. ok is false if it has no such number.
func (s *source) currenciesOf(n string) (currencies []string, ok bool) {
	if s.numbers == nil {
		s.numbers = map[string][]string{}
		for _, at := range amountForm.FindAllStringSubmatchIndex(s.raw, -1) {
			s.addNumbers(amountClaim(s.raw, at))
		}
	}
	currencies, ok = s.numbers[n]
	return currencies, ok
}

func (s *source) addNumbers(c claim, _ bool) {
	add := func(n, money string) {
		if !slices.Contains(s.numbers[n], money) {
			s.numbers[n] = append(s.numbers[n], money)
		}
	}
	for _, n := range c.numbers {
		add(n, c.money)
	}
	if parts := digitRuns(c.text); len(parts) > 1 { // 12.30: also 12 and 30
		for _, n := range parts {
			add(plain(n, ""), "")
		}
	}
}

// withoutBreaks joins lines, without the indentation of the next.
func withoutBreaks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line))
	}
	return b.String()
}

// joinDigits removes what separates digits, one or two marks: (151) 234-5678 is 1512345678.
func joinDigits(text string) string {
	b := make([]byte, 0, len(text))
	separators := 0
	for i := range len(text) {
		isDigit := text[i] >= '0' && text[i] <= '9'
		if before := len(b) - separators; isDigit && separators <= 2 && before > 0 && b[before-1] >= '0' &&
			b[before-1] <= '9' {
			b = b[:before]
		}
		if separators++; isDigit || strings.IndexByte(" -./()',:", text[i]) < 0 {
			separators = 0
		}
		b = append(b, text[i])
	}
	return string(b)
}

func digitRuns(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// has reports whether the source says a claim.
func (s *source) has(c *claim) bool {
	switch c.kind {
	case factAmount, factNumber:
		if c.kind == factNumber && (s.hasDigits(c.text) || s.hasGroups(c.text)) {
			return true
		}
		return slices.ContainsFunc(c.numbers, func(n string) bool {
			money, ok := s.currenciesOf(n)
			return ok && (c.money == "" || slices.Contains(money, c.money) || slices.Contains(money, ""))
		})
	case factPath:
		return s.hasPath(c.text)
	case factURL:
		return s.contains(c.text)
	}
	if s.contains(c.text) || isHash(c.text) && len(c.text) >= 7 && startsWordIn(s.text, c.text) {
		return true
	}
	if date := dateForm.FindStringSubmatch(c.text); date != nil { // 11 February 2026
		_, year := s.currenciesOf(date[1])
		_, day := s.currenciesOf(plain(date[3], ""))
		return year && day
	}
	return !strings.ContainsFunc(c.text, func(r rune) bool { return r >= 'a' }) && s.hasDigits(c.text)
}

// hasDigits reports whether the source has the seven digits or more of a number, however they are grouped.
func (s *source) hasDigits(number string) bool {
	digits := strings.Join(digitRuns(number), "")
	if len(digits) < 7 {
		return false
	}
	if s.digits == "" {
		s.digits = joinDigits(s.text)
	}
	return strings.Contains(s.digits, digits)
}

// hasGroups reports whether the source has each group of digits: 151 234 may be no number of its own.
func (s *source) hasGroups(number string) bool {
	return strings.Contains(number, " ") && !slices.ContainsFunc(digitRuns(number), func(n string) bool {
		_, ok := s.currenciesOf(plain(n, ""))
		return !ok
	})
}

// hasPath reports whether a path is said, or its folder and the rest of it are, as a listing names them.
func (s *source) hasPath(path string) bool {
	if s.contains(path) {
		return true
	}
	for i := range len(path) {
		if i > 0 && path[i] == '/' && s.contains(path[:i]) && s.contains(path[i+1:]) {
			return true
		}
	}
	return false
}

// contains reports whether a value stands in the source as a whole, in a line or over a line's end.
func (s *source) contains(value string) bool {
	if containsValue(s.text, value) {
		return true
	}
	if s.joined == "" {
		s.joined = withoutBreaks(s.text)
	}
	return containsValue(s.joined, value)
}

// containsValue reports whether a value stands in a text as a whole: what follows it does not continue it.
func containsValue(text, value string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(value)
		if !continues(text[to:]) && !joinsWord(text, from-1, value[0]) {
			return true
		}
		at = from + 1
	}
}

// continues reports whether rest continues the value before it: a full stop ends a sentence, .go does not.
func continues(rest string) bool {
	if rest != "" && (rest[0] == '.' || rest[0] == '-') {
		rest = rest[1:]
		return rest != "" && isAlnum(rest[0])
	}
	return rest != "" && (isAlnum(rest[0]) || rest[0] == '_')
}

// startsWordIn reports whether a word of the text begins with a prefix, as a full hash with a short one.
func startsWordIn(text, prefix string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], prefix)
		if i < 0 {
			return false
		}
		if !joinsWord(text, at+i-1, prefix[0]) {
			return true
		}
		at += i + 1
	}
}
