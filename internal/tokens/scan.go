package tokens

import (
	"math/bits"
	"unicode/utf8"
)

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

// class gives the class of a byte. It is a table in constant text: nothing can change it.
func class(b byte) byte { return byteClasses[b] - '0' }

const byteClasses = "0000000004500500" + "0000000000000000" + // 00: tab, line feed, carriage return
	"4666666666666666" + "3333333333666666" + // 20: space, marks, digits
	"6222222222222222" + "2222222222266666" + // 40
	"6111111111111111" + "1111111111166660" + // 60
	"7777777777777777" + "7777777777777777" + "7777777777777777" + "7777777777777777" + // 80
	"7777777777777777" + "7777777777777777" + "7777777777777777" + "7777777777777777" // c0

// scan counts the pieces of s. Every step eats at least one byte, so it is linear.
func (f *features) scan(s string) {
	before := afterNothing
	for i := 0; i < len(s); {
		switch class(s[i]) {
		case cLower:
			end := lowerEnd(s, i+1)
			if end == len(s) || isBorder(class(s[end])) { // as most are
				f.letters(shapeLower, end-i, before)
			} else {
				end = f.mixed(s, i, end, before)
			}
			i, before = end, afterNothing
		case cUpper:
			i, before = f.upper(s, i, before), afterNothing
		case cDigit:
			end := i + 1
			for end < len(s) && class(s[end]) == cDigit {
				end++
			}
			if end == len(s) || isBorder(class(s[end])) {
				f.number(end-i, before)
			} else {
				end = f.mixed(s, i, end, before)
			}
			i, before = end, afterNothing
		case cSpace, cBreak:
			if s[i] == ' ' && i+1 < len(s) && class(s[i+1]) != cSpace && class(s[i+1]) != cBreak { // one alone, as most are
				i, before = i+1, afterSpace
				continue
			}
			i, before = f.white(s, i)
		case cMark:
			i, before = f.marks(s, i, before)
		case cControl:
			f[controls]++
			i++
			before = afterNothing
		default:
			i, before = f.wide(s, i, before)
		}
	}
}

// lowerEnd gives where small letters of ASCII end that begin before i. Words are short, and all
// of different lengths: to look at eight bytes at once costs less than to guess the length wrong.
func lowerEnd(s string, i int) int {
	const (
		ones = 0x0101_0101_0101_0101
		tops = 0x8080_8080_8080_8080
	)
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		low := w &^ tops
		least, above := low+ones*(0x80-'a'), low+ones*(0x7f-'z') // the high bits say that it is at least a, and above z
		if others := (^least | above | w) & tops; others != 0 {
			return i + bits.TrailingZeros64(others)/8
		}
	}
	for i < len(s) && class(s[i]) == cLower {
		i++
	}
	return i
}

// upper counts a run that begins with a capital, and gives where it ends.
func (f *features) upper(s string, i, before int) int {
	end := i + 1
	for end < len(s) && class(s[end]) == cUpper {
		end++
	}
	if end == len(s) || isBorder(class(s[end])) {
		f.letters(shapeUpper, end-i, before)
		return end
	}
	if class(s[end]) == cLower { // a Word, or a NAMEAndWord
		lower := lowerEnd(s, end+1)
		if lower == len(s) || isBorder(class(s[lower])) {
			f.letters(shapeTitle, lower-i, before)
			return lower
		}
	}
	return f.mixed(s, i, end, before)
}

// accents counts a run that begins with a letter outside ASCII, and gives where it ends.
func (f *features) accents(s string, i, before int) int {
	end := i
	for end < len(s) && class(s[end]) == cHigh {
		n := accented(s[end:])
		if n == 0 { // a sign may stand right behind a letter, as in "là…bas"
			break
		}
		end += n
	}
	if end == len(s) || isBorder(class(s[end])) {
		f.letters(shapeLower, end-i, before)
		return end
	}
	return f.mixed(s, i, end, before)
}

// mixed counts letters and digits of several classes that stand together, from i on, of which
// those up to end are of one, and gives where they end.
func (f *features) mixed(s string, i, end, before int) int {
	for end < len(s) {
		switch c := class(s[end]); {
		case c == cHigh:
			n := accented(s[end:])
			if n == 0 {
				return f.run(s[i:end], end, before)
			}
			end += n
		case isBorder(c):
			return f.run(s[i:end], end, before)
		default:
			end++
		}
	}
	return f.run(s[i:end], end, before)
}

// run counts letters and digits that stand together, and gives end. A long run that changes
// between cases and digits all the time is no word, and no name InCamelCase either.
func (f *features) run(s string, end, before int) int {
	if n := len(s); n >= 16 && changes(s)*3 >= n {
		f[denseRuns]++
		if isHex(s) {
			f[denseHex] += int32(n)
		} else {
			f[denseLetters] += int32(n)
		}
		return end
	}
	f.words(s, before)
	return end
}

// changes counts how often letters and digits that stand together change between classes.
func changes(s string) (n int) {
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

// isBorder tells whether no letter and no digit is of the class.
func isBorder(c byte) bool {
	const borders = 1<<cSpace | 1<<cBreak | 1<<cMark | 1<<cControl
	return borders>>(c&7)&1 != 0
}

func isHex(s string) bool {
	for i := range len(s) {
		if class(s[i]) != cDigit && s[i]|0x20 > 'f' {
			return false
		}
	}
	return true
}

// number counts n digits.
func (f *features) number(n, before int) {
	f[digits] += int32(n)
	f[digitGroups] += int32(n+2) / 3
	if before == afterSpace || before == afterTab {
		f[digitSpaces]++
	} else if before == afterMark {
		f[marks1]++
	}
}

// letters counts a word of n letters.
func (f *features) letters(shape, n, before int) {
	f[wordBefore+shape*befores+before]++
	f[wordLength+shape*longestWord+min(n, longestWord)-1]++
	if n > longestWord {
		f[wordLetters] += int32(n - longestWord)
	}
}

// words cuts a run into words and groups of digits.
func (f *features) words(s string, before int) {
	for i := 0; i < len(s); {
		if class(s[i]) == cDigit {
			start := i
			for i < len(s) && class(s[i]) == cDigit {
				i++
			}
			f.number(i-start, before)
			before = afterDigit
			continue
		}
		i += f.word(s[i:], before)
		before = afterLower
	}
}

// word counts the word at the start of s and gives its length in bytes.
func (f *features) word(s string, before int) (used int) {
	upper, lower, accents := 0, 0, 0
	for upper < len(s) && class(s[upper]) == cUpper {
		upper++
	}
	lower = lowerEnd(s, upper) - upper
	used = upper + lower
	for used < len(s) {
		c, n := class(s[used]), 1
		if c == cHigh {
			n = accented(s[used:])
			c = cLower
			if accentedUpper(s[used:]) {
				c = cUpper
			}
			accents++
		}
		if c == cDigit || c == cUpper && lower > 0 {
			if n > 1 {
				accents--
			}
			break
		}
		if c == cUpper {
			upper++
		} else {
			lower++
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
	f.letters(shape, upper+lower, before)
	if accents > 0 {
		f[wordAccents] += int32(accents)
		f[wordAccented]++
	}
	return used
}

// white counts white space from i on and gives where it ends and what it is to the next
// piece. Up to its last line break it is one piece; of the rest all but the last character.
func (f *features) white(s string, i int) (end, before int) {
	start, lines := i, 0
	after := i // the byte after the last line break
	for i < len(s) {
		c := class(s[i])
		if c == cBreak {
			if s[i] == '\n' {
				lines++
			}
			after = i + 1
		} else if c != cSpace {
			break
		}
		i++
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

// marks counts ASCII punctuation from i on. One mark alone before a letter belongs to the
// word.
func (f *features) marks(s string, i, before int) (end, next int) {
	if s[i] == '\'' && i > 0 {
		if n := contraction(s[i+1:]); n > 0 && class(s[i-1]) <= cUpper && class(s[i-1]) != cControl {
			f[contractions]++
			return i + 1 + n, afterNothing
		}
	}
	start, changes, same := i, 0, 0
	for i++; i < len(s) && class(s[i]) == cMark; i++ {
		if i-start >= 4 {
			if s[i] == s[i-1] {
				same++
			} else {
				changes++
			}
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
	f[marksChanges] += int32(changes)
	f[marksSame] += int32(same)
	return i, afterNothing
}

// contraction gives the length of an English ending ('s, 't, 'll …) at the start of s.
func contraction(s string) int {
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

// accented gives the length of a letter of Latin script outside ASCII at the start of s, a
// combining mark included; 0 when there is another character.
func accented(s string) int {
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

// accentedUpper tells whether the letter that accented found is a capital.
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
