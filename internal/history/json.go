package history

import (
	"strings"
	"unicode/utf8"
)

// Plain makes text that is no valid UTF-8, or holds NUL, storable; most is storable as it is.
func Plain[T ~string | ~[]byte](text T) string {
	s := string(text)
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}
