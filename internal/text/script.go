package text

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// IsWord reports whether the tokenizer treats r as part of a word, except private-use characters and scripts
// without spaces.
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || IsMark(r)) && !IsUnspaced(r)
}

// IsMark reports whether r belongs to the character before it: an accent, or a vowel of Thai. The variation
// selectors of emoji are no letters' marks.
func IsMark(r rune) bool {
	return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Mc) && (r < 0xFE00 || r > 0xFE0F)
}

// IsUnspaced reports whether r is of a script without spaces between words, or of Korean, whose words have
// endings without a space.
func IsUnspaced(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r < 0x2E80:
		return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Hangul)
	}
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// IsSymbol reports whether r is an emoji that can stand alone, not a skin tone.
func IsSymbol(r rune) bool {
	return r >= 0x1F000 && r < 0x1FB00 && (r < 0x1F3FB || r > 0x1F3FF) || r >= 0x2600 && r < 0x27C0 ||
		r >= 0x2B1B && r < 0x2B56 || r >= 0x231A && r < 0x2400 && unicode.IsSymbol(r)
}

// SplitScripts splits a text where a script ends: Latin, Katakana, Hiragana, others without spaces.
func SplitScripts(s string) (parts []string) {
	script := func(r rune) int {
		switch {
		case !IsUnspaced(r):
			return 0
		case IsKatakana(r):
			return 1
		case unicode.Is(unicode.Hiragana, r):
			return 2
		}
		return 3
	}
	from, last := 0, -1
	for i, r := range s {
		if in := script(r); in != last && !IsMark(r) {
			if i > from {
				parts = append(parts, s[from:i])
			}
			from, last = i, in
		}
	}
	return append(parts, s[from:])
}

// Characters returns the characters of a run with their marks.
func Characters(run string) (all []string) {
	from := 0
	for i, r := range run {
		if i > from && !IsMark(r) {
			all = append(all, run[from:i])
			from = i
		}
	}
	return append(all, run[from:])
}

// IsKatakana reports whether r is of the script for foreign words in Japanese.
func IsKatakana(r rune) bool { return r == 'ー' || unicode.Is(unicode.Katakana, r) }

// Words returns the words of a text as written, and its runs of scripts without spaces. Letters, their marks, decimal
// digits and _ make a word.
func Words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from, unspaced := -1, false
		for i, r := range s {
			is := IsUnspaced(r)
			if from >= 0 && (is != unspaced || !is && !isOfWord(r)) {
				if !yield(s[from:i]) {
					return
				}
				from = -1
			}
			if from < 0 && (is || isOfWord(r)) {
				from, unspaced = i, is
			}
		}
		if from >= 0 {
			yield(s[from:])
		}
	}
}

func isOfWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}
