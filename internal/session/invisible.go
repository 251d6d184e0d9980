package session

import (
	"strings"
	"unicode"
)

// invisible are the characters that show nothing and are read by a model all the same: whole sentences can be written
// in tags and in variation selectors. Two selectors that choose between text and emoji stay, as do the joiners of
// emoji, Persian and the scripts of India, and the marks of direction, which are a terminal's concern.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // fillers of Hangul
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // inherent vowels of Khmer
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // space without width
		{Lo: 0x2060, Hi: 0x2065, Stride: 1}, // word joiner, operators of mathematics
		{Lo: 0x206a, Hi: 0x206f, Stride: 1}, // deprecated controls of format
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // filler of Hangul
		{Lo: 0xfe00, Hi: 0xfe0d, Stride: 1}, // variation selectors 1 to 14
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // filler of Hangul
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // annotations
	},
	R32: []unicode.Range32{
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1}, // controls of shorthand
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // controls of music
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, variation selectors 17 to 256
	},
	LatinOffset: 1,
}

// IsInvisible reports whether a character shows nothing, so that it can hide text from a person but not from a model.
func IsInvisible(r rune) bool { return unicode.Is(invisible, r) }

// WithoutInvisible returns a text without invisible characters.
func WithoutInvisible(text string) string {
	if !strings.ContainsFunc(text, IsInvisible) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return r
	}, text)
}
