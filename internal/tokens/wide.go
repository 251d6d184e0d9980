package tokens

import "unicode/utf8"

// scanWide counts the characters outside ASCII from i on that are of one group.
func (f *features) scanWide(s string, i, before int) (end, next int) {
	if accentedLen(s[i:]) > 0 {
		return f.scanRun(s, i, before), afterNothing
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n == 1 {
		f[broken]++
		return i + 1, afterNothing
	}
	g := groupOf(r)
	characters, previous := 0, rune(-1)
	for {
		i += n
		characters++
		switch {
		case g == gSymbol && r == previous:
			f[symbolsSame]++
		case g == gHan && (r < 0x4E00 || r >= 0xA000):
			f[hanRare]++
		default:
			f[groupCharacters[g]]++
		}
		previous = r
		if i >= len(s) || s[i] < utf8.RuneSelf {
			break
		}
		r, n = utf8.DecodeRuneInString(s[i:])
		if groupOf(r) != g || r == utf8.RuneError && n == 1 {
			break
		}
	}
	if runs := groupRuns[g]; runs > 0 {
		f[runs]++
	}
	if g == gCyrillic {
		f[cyrillicLong] += int32(max(0, characters-6))
	}
	if before == afterTab {
		f[tabs]++
	}
	return i, afterNothing
}

// A group is a set of characters outside ASCII that tokenizers treat alike.
type group int

const (
	gOther group = iota
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

// groupOf returns the group of a character by its block.
func groupOf(r rune) group {
	switch {
	case r < 0x370:
		return gSymbol // signs like ° and ×; Latin letters do not come here
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

// groupCharacters and groupRuns are the features that count the characters and the runs of a group; no runs: 0.
var (
	groupCharacters = [...]int{
		gOther: otherLetters, gHan: hanChars, gHiragana: hiragana, gKatakana: katakana, gHangul: hangul,
		gWidePunct: widePunct, gCyrillic: cyrillic, gGreek: greek, gSemitic: semitic, gBrahmic: brahmic,
		gQuote: quotes, gSymbol: symbols, gEmoji: emoji, gJoiner: joiners,
	}
	groupRuns = [gJoiner + 1]int{
		gHan: hanRuns, gHangul: hangulRuns, gCyrillic: cyrillicWords, gGreek: greekWords, gSemitic: semiticWords,
		gBrahmic: brahmicRuns, gSymbol: symbolRuns,
	}
)
