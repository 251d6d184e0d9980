package jsontext

import (
	"strings"
	"testing"
)

func TestPlainLenFindsTheFirstByteThatIsNotPlain(t *testing.T) {
	for c := range 256 {
		plain := c >= ' ' && c != '"' && c != '\\'
		for at := range 20 {
			for _, around := range []string{"x", "é", " ", "!", "[", "\xff", "\x7f"} {
				before := strings.Repeat(around, 20)[:at]
				s := before + string([]byte{byte(c)}) + strings.Repeat(around, 9)
				want := len(s)
				if !plain {
					want = at
				}
				if got, alike := PlainLen(s), PlainLen([]byte(s)); got != want || alike != want {
					t.Fatalf("byte %#x behind %d of %q: %d and %d, want %d", c, at, around, got, alike, want)
				}
			}
		}
	}
}
