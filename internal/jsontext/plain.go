// Package jsontext goes over the texts of JSON, several bytes at once.
package jsontext

import "math/bits"

// PlainLen is how many bytes stand in a JSON string as they are before the first that does not:
// a quote, a backslash or a control character. It looks at eight bytes at once, since most of
// what a conversation holds is plain.
func PlainLen[T ~string | ~[]byte](s T) int {
	const (
		eight = 8
		ones  = 0x0101_0101_0101_0101
		highs = 0x8080_8080_8080_8080
	)
	at := 0
	for ; at+eight <= len(s); at += eight {
		w := load(s[at : at+eight])
		// A high bit is set where a byte is less than a space, or gives zero with the other two;
		// above the lowest such byte, borrowing may set it wrongly.
		quote, slash := w^ones*'"', w^ones*'\\'
		if found := ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/eight
		}
	}
	for ; at < len(s); at++ {
		if c := s[at]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return at
}

// load gives eight bytes as one number, the first the lowest.
func load[T ~string | ~[]byte](s T) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
