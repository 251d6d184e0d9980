package summarize

import (
	"strings"
	"unicode/utf8"
)

// factKind is what makes a piece of text worth keeping literally.
type factKind uint8

const (
	factName       factKind = iota
	factNumber              // 8081
	factIdentifier          // max_tokens, parseURL, ABC-123
	factPath
	factVersion // v1.2.3
	factURL
	factAmount // $129, 20ms, 15%
)

// fact is one such piece, literal, with the name or word that stood before it.
type fact struct {
	text     string
	label    string
	kind     factKind
	sentence int32
	term     int32 // index of one of its terms
}

// form is what one pass over a chunk sees.
type form struct {
	letters, lower, upper, digits   int
	dots, slashes, dashes, unders   int
	capital, inner, url, money, pct bool
}

// mark notes a byte that is neither letter nor digit.
func (f *form) mark(s string, j int) {
	switch s[j] {
	case '.':
		f.dots++
	case '/':
		f.slashes++
	case '-':
		f.dashes++
	case '_':
		f.unders++
	case '$':
		f.money = true
	case '%':
		f.pct = true
	case ':':
		if strings.HasPrefix(s[j:], "://") {
			f.url = true
		}
	}
}

// keep adds the chunk s[i:j] to the facts if it is one, and remembers it as what the next
// number may belong to.
func (rd *reader) keep(s string, i, j int, f form, first bool) {
	at, end := i, j
	for at < end && edge(s[at]) && s[at] != '#' { // #5fff00, #123
		at++
	}
	for end > at && (edge(s[end-1]) || s[end-1] == '-') {
		end--
	}
	if at == end {
		return
	}
	if f.slashes > 0 && at > i && s[at] == '/' { // ./x, ../x, ~/x
		at = i
	}
	text := s[at:end]
	if f.dots > 0 { // those that ended a sentence do not count
		f.dots = strings.Count(text, ".")
	}
	kind, ok := classify(text, &f, first)
	if ok && len(text) <= longestFact && len(rd.terms) > 0 {
		if kind == factNumber {
			if unit := unitAfter(s[at+len(text):]); unit > 0 {
				text, kind = s[at:at+len(text)+unit], factAmount
			}
		}
		label := ""
		if kind == factNumber || kind == factAmount || kind == factVersion {
			label = rd.context()
		}
		rd.facts = append(rd.facts, fact{
			text: text, label: label, kind: kind,
			sentence: int32(len(rd.sentences)), term: int32(len(rd.terms)) - 1,
		})
	}
	rd.nth++
	switch {
	case ok && (kind == factName || kind == factIdentifier):
		rd.name, rd.nameAt, rd.word = text, rd.nth, ""
	case f.digits == 0 && !f.url && len(text) < 32:
		rd.word = text
	}
}

// edge tells that c belongs to the sentence and not to the word that it stands at.
func edge(c byte) bool {
	switch c {
	case '.', ':', '&', '~', '#', '@', '+':
		return true
	}
	return false
}

// longestFact is the length in bytes above which a piece is no fact that one would look up.
const longestFact = 160

// context gives the words that tell what a number is of: the last name, if it is near, and
// the word before.
func (rd *reader) context() string {
	if rd.name == "" || rd.nth-rd.nameAt > 6 {
		return rd.word
	}
	if rd.word == "" {
		return rd.name
	}
	return rd.name + " " + rd.word
}

// classify says what a chunk is, by its characters alone.
func classify(text string, f *form, first bool) (factKind, bool) {
	n := len(text)
	switch {
	case f.url:
		return factURL, n > 10
	case f.slashes > 0:
		if f.letters < 2 || n < 4 {
			return factAmount, f.digits > 0 && f.letters == 0 && f.slashes == 2 // 2026/02/11
		}
		rooted := text[0] == '/' || text[0] == '~' || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")
		return factPath, (rooted && f.letters > 3 || f.slashes > 1 || f.dots > 0) && !strings.HasPrefix(text, "//")
	case f.digits > 0 && (f.money || f.pct):
		return factAmount, f.letters < 4
	case f.digits > 0 && f.letters == 0:
		if f.dots > 1 {
			return factVersion, true
		}
		return factNumber, f.digits > 1 || f.dots > 0
	case f.digits > 0 && f.dots > 0 && f.letters == 1 && (text[0] == 'v' || text[0] == 'V'):
		return factVersion, true
	case f.digits > 0 && f.letters <= 3 && text[0] >= '0' && text[0] <= '9' && f.unders == 0 && f.dashes == 0:
		return factAmount, true // 20ms, 8GB
	case f.digits > 0 && f.letters > 0 && f.letters <= 2 && f.dashes == 0 && f.unders == 0:
		return factIdentifier, n >= 3 && f.upper > 0 // B12
	case f.dots > 0 && f.letters > 3 && f.upper == 0 && extension(text):
		return factPath, true
	case f.unders > 0 && f.letters > 2, f.inner && n >= 4, f.digits > 0 && f.letters > 1 && n >= 4, f.dots > 0 && f.letters > 4 && f.dots < 6:
		if f.capital && f.inner && f.unders == 0 && f.dots == 0 {
			return factName, n <= 40
		}
		return factIdentifier, n <= 64
	case f.capital && f.dots == 0 && (!first || f.lower == 0 && f.upper > 1):
		return factName, n >= 3 && n <= 40
	}
	return factName, false
}

// extension tells whether text ends in a dot and two to five letters, as file names do.
func extension(text string) bool {
	dot := strings.LastIndexByte(text, '.')
	ext := text[dot+1:]
	return dot > 1 && len(ext) >= 1 && len(ext) <= 5 && ext[0] >= 'a' && ext[0] <= 'z'
}

// unitAfter gives the length of the unit at the beginning of rest, with the space before it:
// one CJK character, or a short word with a capital as in 8 GB, 20 EUR, 5 kHz.
func unitAfter(rest string) int {
	if r, n := utf8.DecodeRuneInString(rest); isCJK(r) {
		return n
	}
	if rest == "" || rest[0] != ' ' {
		return 0
	}
	j, upper := 1, false
	for j < len(rest) && rest[j]|0x20 >= 'a' && rest[j]|0x20 <= 'z' {
		upper = upper || j > 1 && rest[j] <= 'Z'
		j++
	}
	if !upper || j < 3 || j > 4 {
		return 0
	}
	return j
}
