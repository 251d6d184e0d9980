package tokens

import "unicode/utf8"

// Classes of bytes.
const (
	cControl = iota
	cLower
	cUpper
	cDigit
	cSpace
	cBreak
	cMark
	cHigh // the start, or a part, of a character outside ASCII
)

// class returns the class of a byte, from a table in constant text.
func class(b byte) byte { return byteClasses[b] - '0' }

const byteClasses = "0000000004500500" + "0000000000000000" + // 00: tab, line feed, carriage return
	"4666666666666666" + "3333333333666666" + // 20: space, marks, digits
	"6222222222222222" + "2222222222266666" + // 40
	"6111111111111111" + "1111111111166660" + // 60
	"7777777777777777" + "7777777777777777" + "7777777777777777" + "7777777777777777" + // 80
	"7777777777777777" + "7777777777777777" + "7777777777777777" + "7777777777777777" // c0

// scan counts the pieces of s. Every step consumes at least one byte, so it is linear.
func (f *features) scan(s string) {
	before := afterNothing
	for i := 0; i < len(s); {
		switch class(s[i]) {
		case cLower, cUpper, cDigit:
			i, before = f.scanRun(s, i, before), afterNothing
		case cSpace, cBreak:
			i, before = f.scanWhiteSpace(s, i)
		case cMark:
			i, before = f.scanMarks(s, i, before)
		case cControl:
			f[controls]++
			i++
			before = afterNothing
		default:
			i, before = f.scanWide(s, i, before)
		}
	}
}

// scanRun counts the run of letters and digits that begins at i and returns its end.
func (f *features) scanRun(s string, i, before int) int {
	end, onlyAccented := i, true
scan:
	for ; end < len(s); end++ {
		switch class(s[end]) {
		case cLower, cUpper, cDigit:
			onlyAccented = false
		case cHigh:
			n := accentedLen(s[end:])
			if n == 0 {
				onlyAccented = false
				break scan
			}
			end += n - 1
		default:
			break scan
		}
	}
	run := s[i:end]
	switch {
	case onlyAccented: // the frozen weights count its bytes as letters
		f.addWord(shapeLower, len(run), before)
	case !isDense(run):
		f.scanWords(run, before)
	case isHex(run):
		f[denseRuns]++
		f[denseHex] += int32(len(run))
	default:
		f[denseRuns]++
		f[denseLetters] += int32(len(run))
	}
	return end
}

// isDense reports whether a run is base64, a key or a hash: it is long, and changes between cases
// and digits more often than a name InCamelCase does.
func isDense(run string) bool { return len(run) >= 16 && countChanges(run)*3 >= len(run) }

// countChanges returns how often a run of letters and digits changes between classes.
func countChanges(s string) (n int) {
	last := class(s[0])
	for i := range len(s) {
		c := class(s[i])
		if c == cHigh || c == last {
			continue
		}
		if last != cUpper || c != cLower { // a Capital is no change
			n++
		}
		last = c
	}
	return n
}

func isHex(s string) bool {
	for i := range len(s) {
		if class(s[i]) != cDigit && s[i]|0x20 > 'f' {
			return false
		}
	}
	return true
}

// addNumber counts a number of n digits.
func (f *features) addNumber(n, before int) {
	f[digits] += int32(n)
	f[digitGroups] += int32(n+2) / 3
	if before == afterSpace || before == afterTab {
		f[digitSpaces]++
	} else if before == afterMark {
		f[marks1]++
	}
}

// addWord counts a word of n letters.
func (f *features) addWord(shape, n, before int) {
	f[wordBefore+shape*befores+before]++
	f[wordLength+shape*longestWord+min(n, longestWord)-1]++
	if n > longestWord {
		f[wordLetters] += int32(n - longestWord)
	}
}

// scanWords splits a run into words and numbers and counts them.
func (f *features) scanWords(s string, before int) {
	for i := 0; i < len(s); {
		if class(s[i]) == cDigit {
			start := i
			for i < len(s) && class(s[i]) == cDigit {
				i++
			}
			f.addNumber(i-start, before)
			before = afterDigit
			continue
		}
		i += f.scanWord(s[i:], before)
		before = afterLower
	}
}

// scanWord counts the word at the start of s and returns its length in bytes. A word ends before
// a digit, and before a capital behind a small letter.
func (f *features) scanWord(s string, before int) (used int) {
	for used < len(s) && class(s[used]) == cUpper {
		used++
	}
	upper, accents := used, 0
	for used < len(s) && class(s[used]) == cLower {
		used++
	}
	lower := used - upper
	for used < len(s) {
		c, n := class(s[used]), 1
		if c == cHigh {
			n = accentedLen(s[used:])
			c = cLower
			if accentedUpper(s[used:]) {
				c = cUpper
			}
		}
		if c == cDigit || c == cUpper && lower > 0 {
			break
		}
		if c == cUpper {
			upper++
		} else {
			lower++
		}
		if n > 1 {
			accents++
		}
		used += n
	}
	shape := shapeLower
	switch {
	case lower == 0:
		shape = shapeUpper
	case upper > 0:
		shape = shapeTitle
	}
	f.addWord(shape, upper+lower, before)
	if accents > 0 {
		f[wordAccents] += int32(accents)
		f[wordAccented]++
	}
	return used
}

// scanWhiteSpace counts white space from i on. It returns the end and what the white space is to
// the next piece. All up to its last line break is one piece; of the rest, the last character
// belongs to the next piece.
func (f *features) scanWhiteSpace(s string, i int) (end, before int) {
	start, lines := i, 0
	after := i // the byte after the last line break
	for ; i < len(s); i++ {
		c := class(s[i])
		if c != cSpace && c != cBreak {
			break
		}
		if c == cBreak {
			after = i + 1
		}
		if s[i] == '\n' {
			lines++
		}
	}
	if after > start {
		if start == 0 || class(s[start-1]) != cMark {
			f[breaks]++
		} else {
			f[marksBreak]++
		}
		if lines > 1 {
			f[breaksMany]++
			f[breakLines] += int32(lines - 2)
		}
	}
	rest := i - after
	if rest == 0 {
		return i, afterNothing
	}
	before = afterSpace
	if s[i-1] == '\t' {
		before = afterTab
	}
	if rest > 1 {
		if before == afterTab {
			f[tabs]++
		} else {
			f[indents]++
		}
		f[indentsLong] += int32(rest-2) / 16
	}
	return i, before
}

// scanMarks counts ASCII punctuation from i on. A single mark before a letter belongs to the word.
func (f *features) scanMarks(s string, i, before int) (end, next int) {
	if s[i] == '\'' && i > 0 {
		if n := contractionLen(s[i+1:]); n > 0 && class(s[i-1]) <= cUpper && class(s[i-1]) != cControl {
			f[contractions]++
			return i + 1 + n, afterNothing
		}
	}
	start := i
	for i++; i < len(s) && class(s[i]) == cMark; i++ {
		switch {
		case i-start < 4:
		case s[i] == s[i-1]:
			f[marksSame]++
		default:
			f[marksChanges]++
		}
	}
	n := i - start
	if n == 1 && before != afterSpace && i < len(s) {
		if c := class(s[i]); c == cLower || c == cUpper || c == cDigit {
			return i, afterMark
		}
	}
	if before == afterSpace {
		f[marksSpaced]++
	} else if before == afterTab {
		f[tabs]++
	}
	f[marks1+min(n, 4)-1]++
	return i, afterNothing
}

// contractionLen returns the length of an English ending ('s, 't, 'll …) at the start of s, or 0.
func contractionLen(s string) int {
	n := 0
	for n < len(s) && n < 3 && class(s[n]) == cLower {
		n++
	}
	switch s[:n] {
	case "s", "t", "d", "m", "ll", "re", "ve":
		return n
	}
	return 0
}

// accentedLen returns the length of a letter of Latin script outside ASCII, or of a combining mark,
// at the start of s; 0 for any other character.
func accentedLen(s string) int {
	switch b := s[0]; {
	case b >= 0xC3 && b <= 0xC9, b == 0xCC, b == 0xCD && len(s) > 1 && s[1] < 0xB0:
		if len(s) < 2 || s[1]&0xC0 != 0x80 || b == 0xC3 && (s[1] == 0x97 || s[1] == 0xB7) {
			return 0
		}
		return 2
	case b == 0xE1 && len(s) > 2 && s[1] >= 0xB8 && s[1] <= 0xBB && s[2]&0xC0 == 0x80:
		return 3
	}
	return 0
}

// accentedUpper reports whether the letter that accentedLen found is a capital.
func accentedUpper(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r < 0x100:
		return r < 0xDF
	case r < 0x250, r >= 0x1E00:
		return r&1 == 0
	}
	return false
}
