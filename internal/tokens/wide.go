package tokens

import "unicode/utf8"

// wide counts characters outside ASCII, from i on: all of one script together.
func (f *features) wide(s string, i, before int) (end, next int) {
	if accented(s[i:]) > 0 {
		return f.accents(s, i, before), afterNothing
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		f[broken]++
		return i + 1, afterNothing
	}
	group := scriptOf(r)
	letters, same, previous := 0, 0, rune(-1)
	for {
		i += n
		letters++
		if group == gSymbol && r == previous {
			same++
		} else {
			f.letter(group, r)
		}
		previous = r
		if i >= len(s) || s[i] < utf8.RuneSelf {
			break
		}
		r, n = utf8.DecodeRuneInString(s[i:])
		if scriptOf(r) != group || r == utf8.RuneError && n == 1 {
			break
		}
	}
	f.script(group, letters, same, before)
	return i, afterNothing
}

// Groups of characters outside ASCII.
const (
	gOther = iota
	gHan
	gHiragana
	gKatakana
	gHangul
	gWidePunct
	gCyrillic
	gGreek
	gSemitic
	gBrahmic
	gQuote
	gSymbol
	gEmoji
	gJoiner
)

// scriptOf gives the group of a character by its block.
func scriptOf(r rune) int {
	switch {
	case r < 0x370:
		return gSymbol // Latin letters were taken before; what is left are signs like ° and ×
	case r < 0x400:
		return gGreek
	case r < 0x530:
		return gCyrillic
	case r >= 0x590 && r < 0x780, r >= 0xFB1D && r < 0xFE00, r >= 0xFE70 && r < 0xFEFF:
		return gSemitic
	case r >= 0x900 && r < 0x1000:
		return gBrahmic
	case r >= 0x1100 && r < 0x1200, r >= 0xAC00 && r < 0xD7B0, r >= 0x3130 && r < 0x3190:
		return gHangul
	case r == 0x200D, r >= 0xFE00 && r < 0xFE10, r >= 0x1F3FB && r <= 0x1F3FF:
		return gJoiner
	case r >= 0x2010 && r < 0x2050:
		return gQuote
	case r >= 0x2600 && r < 0x27C0, r >= 0x1F000 && r < 0x1FB00:
		return gEmoji
	case r >= 0x2000 && r < 0x2E80:
		return gSymbol
	case r >= 0x3000 && r < 0x3040, r >= 0xFF00 && r < 0xFF66:
		return gWidePunct
	case r >= 0x3040 && r < 0x30A0:
		return gHiragana
	case r >= 0x30A0 && r < 0x3100, r >= 0xFF66 && r < 0xFFA0:
		return gKatakana
	case r >= 0x3400 && r < 0xA000, r >= 0xF900 && r < 0xFB00, r >= 0x20000 && r < 0x33480:
		return gHan
	}
	return gOther
}

// letter counts one character of a group.
func (f *features) letter(group int, r rune) {
	switch group {
	case gHan:
		if r < 0x4E00 || r >= 0xA000 {
			f[hanRare]++
		} else {
			f[hanChars]++
		}
	case gHiragana:
		f[hiragana]++
	case gKatakana:
		f[katakana]++
	case gHangul:
		f[hangul]++
	case gWidePunct:
		f[widePunct]++
	case gCyrillic:
		f[cyrillic]++
	case gGreek:
		f[greek]++
	case gSemitic:
		f[semitic]++
	case gBrahmic:
		f[brahmic]++
	case gQuote:
		f[quotes]++
	case gSymbol:
		f[symbols]++
	case gEmoji:
		f[emoji]++
	case gJoiner:
		f[joiners]++
	default:
		f[otherLetters]++
	}
}

// script counts a run of one group.
func (f *features) script(group, letters, same, before int) {
	switch group {
	case gHan:
		f[hanRuns]++
	case gHangul:
		f[hangulRuns]++
	case gCyrillic:
		f[cyrillicWords]++
		f[cyrillicLong] += int32(max(0, letters-6))
	case gGreek:
		f[greekWords]++
	case gSemitic:
		f[semiticWords]++
	case gBrahmic:
		f[brahmicRuns]++
	case gSymbol:
		f[symbolRuns]++
		f[symbolsSame] += int32(same)
	}
	if before == afterTab {
		f[tabs]++
	}
}
