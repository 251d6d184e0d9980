package history

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Text reads a JSON string into text that the database can hold. exact is false when the
// text is not all that the value says: it is no string, or it held a NUL or half of a
// surrogate pair, which are replaced by U+FFFD. Then the value itself must be kept too.
func Text(raw []byte) (text string, exact bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	return unescape(inner)
}

// unescape reads what stands between the quotes. What an escape stands for is never longer
// than the escape.
func unescape(inner []byte) (text string, exact bool) {
	out := append([]byte(nil), inner...)
	n, exact := unescapeTo(out, inner)
	return unsafe.String(unsafe.SliceData(out), n), exact
}

// unescapeTo writes it to out, which has as many bytes as inner, and gives how many there are.
func unescapeTo(out, inner []byte) (n int, exact bool) {
	exact = true
	for at := 0; at < len(inner); {
		if at+8 <= len(inner) { // up to the next escape eight bytes at once
			w := binary.LittleEndian.Uint64(inner[at:])
			binary.LittleEndian.PutUint64(out[n:], w)
			escape := w ^ ones*'\\'
			found := (escape - ones) &^ escape & tops
			if found == 0 {
				at, n = at+8, n+8
				continue
			}
			k := bits.TrailingZeros64(found) / 8
			at, n = at+k, n+k
		} else if inner[at] != '\\' {
			out[n] = inner[at]
			at, n = at+1, n+1
			continue
		}
		if inner[at+1] != 'u' {
			out[n] = escaped(inner[at+1])
			at, n = at+2, n+1
			continue
		}
		r, used := codePoint(inner[at:])
		if r == 0 || utf16.IsSurrogate(r) {
			r, exact = utf8.RuneError, false
		}
		at, n = at+used, n+utf8.EncodeRune(out[n:], r)
	}
	return n, exact
}

// codePoint reads a \u escape, or two that are a surrogate pair, and gives its length. Half of
// a pair stays one.
func codePoint(escape []byte) (r rune, used int) {
	r = hex4(escape[2:])
	if !utf16.IsSurrogate(r) || len(escape) < 12 || escape[6] != '\\' || escape[7] != 'u' {
		return r, 6
	}
	if whole := utf16.DecodeRune(r, hex4(escape[8:])); whole != utf8.RuneError {
		return whole, 12
	}
	return r, 6
}

// escaped gives what a letter after a backslash stands for.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// hex4 reads the four digits of a \u escape.
func hex4(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}
