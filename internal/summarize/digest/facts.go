package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// factKind is the kind of a piece of text that is worth keeping literally.
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

// fact is one such piece.
type fact struct {
	text     string
	label    string // the name or word before it
	kind     factKind
	sentence int    // its index in the span
	term     uint32 // one of its terms
}

// form counts the characters of a chunk by kind.
type form struct {
	letters, lower, upper, digits   int
	dots, slashes, dashes, unders   int
	capital, inner, url, money, pct bool
}

func (f *form) addLetterOrDigit(r, prev rune, first bool) {
	switch {
	case r >= '0' && r <= '9':
		f.digits++
		return
	case r >= 'a' && r <= 'z':
		f.lower++
	case unicode.IsUpper(r):
		f.upper++
		f.capital = f.capital || first
		f.inner = f.inner || !first && r < utf8.RuneSelf && prev >= 'a' && prev <= 'z'
	}
	f.letters++
}

// addMark counts the ASCII mark at s[at].
func (f *form) addMark(s string, at int) {
	switch s[at] {
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
		if strings.HasPrefix(s[at:], "://") {
			f.url = true
		}
	}
}

// addFact adds the chunk s[from:to] to the facts if it is one, and remembers it as a possible label
// of the next number.
func (rd *reader) addFact(s string, from, to int, f form, first bool) {
	at, end := from, to
	for at < end && isEdgeMark(s[at]) && s[at] != '#' { // #5fff00, #123
		at++
	}
	for end > at && (isEdgeMark(s[end-1]) || s[end-1] == '-') {
		end--
	}
	if at == end {
		return
	}
	if f.slashes > 0 && at > from && s[at] == '/' { // ./x, ../x, ~/x
		at = from
	}
	text := s[at:end]
	if at > 0 && s[at-1] == '<' && text[0] == '/' { // </body>
		return
	}
	if f.dots > 0 { // without the full stop of a sentence
		f.dots = strings.Count(text, ".")
	}
	kind, ok := classify(text, &f, first)
	ok = ok && !((kind == factName || kind == factIdentifier) && emptyWords()[strings.ToLower(text)])
	if ok && len(text) <= longestFact && len(rd.terms) > 0 {
		if kind == factNumber {
			if unit := unitLen(s[at+len(text):]); unit > 0 {
				text, kind = s[at:at+len(text)+unit], factAmount
			}
		}
		label := ""
		if kind == factNumber || kind == factAmount || kind == factVersion {
			label = rd.numberLabel()
		}
		rd.span.facts = append(rd.span.facts, fact{
			text: text, label: label, kind: kind, sentence: len(rd.span.sentences), term: rd.terms[len(rd.terms)-1],
		})
	}
	rd.chunks++
	switch {
	case ok && (kind == factName || kind == factIdentifier):
		rd.name, rd.nameAt, rd.word = text, rd.chunks, ""
	case f.digits == 0 && !f.url && len(text) < 32:
		rd.word = text
	}
}

// isEdgeMark reports whether c, at the edge of a chunk, belongs to the sentence.
func isEdgeMark(c byte) bool {
	switch c {
	case '.', ':', '&', '~', '#', '@', '+':
		return true
	}
	return false
}

// longestFact is the limit of a fact in bytes.
const longestFact = 160

// numberLabel returns the label of the next number: the last name, if it is near, and the word
// before the number.
func (rd *reader) numberLabel() string {
	if rd.name == "" || rd.chunks-rd.nameAt > 6 {
		return rd.word
	}
	if rd.word == "" {
		return rd.name
	}
	return rd.name + " " + rd.word
}

// classify returns the kind of a chunk by its characters. ok is false if it is no fact.
func classify(text string, f *form, first bool) (kind factKind, ok bool) {
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
		return factAmount, f.letters < 4 && text[0] != '%' // %-9s is a format
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
	case f.dots > 0 && f.letters > 3 && f.upper == 0 && hasExtension(text):
		return factPath, true
	case f.unders > 0 && f.letters > 2, f.inner && n >= 4, f.digits > 0 && f.letters > 1 && n >= 4,
		f.dots > 0 && f.letters > 4 && f.dots < 6:
		if f.capital && f.inner && f.unders == 0 && f.dots == 0 {
			return factName, n <= 40
		}
		return factIdentifier, n <= 64
	case f.capital && f.dots == 0 && (!first || f.lower == 0 && f.upper > 1):
		return factName, n >= 3 && n <= 40
	}
	return factName, false
}

// hasExtension reports whether text ends like a file name: in a dot and one to five characters,
// of which the first is a letter.
func hasExtension(text string) bool {
	dot := strings.LastIndexByte(text, '.')
	ext := text[dot+1:]
	return dot > 1 && len(ext) >= 1 && len(ext) <= 5 && ext[0] >= 'a' && ext[0] <= 'z'
}

// unitLen returns the length of the unit at the beginning of rest, with the space before it: one
// CJK character, or a short word with a capital as in 8 GB, 20 EUR, 5 kHz.
func unitLen(rest string) int {
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
