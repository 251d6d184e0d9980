package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessiond/internal/jsontext"
)

// Text reads a JSON string. exact is false where UTF-8 or SQLite cannot hold what it says: a
// surrogate that stands alone or a NUL, each of which is U+FFFD in the text.
func Text(raw json.RawMessage) (text string, exact bool) {
	from := skipSpace(raw, 0)
	return unquote(raw[from:valueEnd(raw, from)])
}

func unquote(raw []byte) (string, bool) {
	body := raw[1 : len(raw)-1]
	if word := word(body); word != "" {
		return word, true
	}
	exact := true
	var b strings.Builder
	for at := 0; at < len(body); {
		plain := bytes.IndexByte(body[at:], '\\')
		if plain < 0 {
			if at == 0 {
				return string(body), true
			}
			b.Write(body[at:])
			break
		}
		if at == 0 {
			b.Grow(len(body))
		}
		b.Write(body[at : at+plain])
		at += plain
		if body[at+1] != 'u' {
			b.WriteByte(unescape(body[at+1]))
			at += 2
			continue
		}
		r, size, ok := unescapeUnicode(body[at:])
		b.WriteRune(r)
		at += size
		exact = exact && ok
	}
	return b.String(), exact
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unescapeUnicode reads one \uXXXX, or two that are a pair.
func unescapeUnicode(b []byte) (r rune, size int, exact bool) {
	const escape = len(`\u0000`)
	high := hex4(b)
	switch {
	case high == 0:
		return utf8.RuneError, escape, false
	case high < 0xd800 || high > 0xdfff:
		return high, escape, true
	case high < 0xdc00 && len(b) >= 2*escape && b[escape] == '\\' && b[escape+1] == 'u':
		if low := hex4(b[escape:]); low >= 0xdc00 && low <= 0xdfff {
			return (high-0xd800)<<10 + (low - 0xdc00) + 0x10000, 2 * escape, true
		}
	}
	return utf8.RuneError, escape, false
}

func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 32) // valid JSON has four digits here
	return rune(n)
}

// TextSize is about how many bytes AppendText writes: an eighth more than there are, since in
// code a line breaks, or a quote stands, every few words.
func TextSize(s string) int { return len(s) + len(s)/8 + len(`""`) }

// AppendText writes a string as JSON at the end of b, without HTML escaping.
func AppendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // U+FFFD for each byte that is none
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0
	for at := 0; ; at++ {
		at += jsontext.PlainLen(s[at:])
		b = append(b, s[plain:at]...)
		if at == len(s) {
			return append(b, '"')
		}
		c := s[at]
		plain = at + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		}
	}
}

// TextOf is Text for a value that may be no string: then it gives "" and false.
func TextOf(raw json.RawMessage) (text string, exact bool) {
	if KindOf(raw) != '"' {
		return "", false
	}
	return Text(raw)
}
