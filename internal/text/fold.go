package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns a word in small letters without diacritics: Straße, STRASSE.
func Plain(w string) string { return strings.ReplaceAll(Folded(w), "ß", "ss") }

// plainLetters are Latin letters, each followed by its variants with diacritics.
const plainLetters = "aàáâãäåāăą cçćĉċč dďđ eèéêëēĕėęě gĝğġģ hĥħ iìíîïĩīĭįı jĵ kķ lĺļľł nñńņň oòóôõöøōŏő rŕŗř sśŝşšș " +
	"tţťŧț uùúûüũūŭůűų wŵ yýÿŷ zźżž"

// Fold removes case and the diacritics of Latin letters. It is less thorough than FTS5: it only finds
// the part to show.
func Fold(r rune) rune {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	r = unicode.ToLower(r)
	if r >= 0xe0 && r < 0x250 {
		if i := strings.IndexRune(plainLetters, r); i >= 0 {
			return rune(plainLetters[strings.LastIndexByte(plainLetters[:i], ' ')+1])
		}
	}
	return r
}

// Folded returns s without case and the diacritics of Latin letters.
func Folded(s string) string { return strings.Map(Fold, s) }

// SmallLetters returns s in small letters, with every byte in its place.
func SmallLetters(s string) string {
	out := []byte(s)
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c >= 'A' && c <= 'Z':
			out[i] = c | 0x20
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if l := unicode.ToLower(r); l != r && utf8.RuneLen(l) == size {
				utf8.EncodeRune(out[i:i+size], l)
			}
			i += size - 1
		}
	}
	return string(out)
}
