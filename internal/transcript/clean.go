package transcript

import (
	"strings"
	"unicode/utf8"
)

const (
	esc = '\x1b'
	bel = '\a'
)

// Clean returns text that is safe to write to a terminal. It drops escape sequences (also 8-bit ones),
// other control characters and those that reorder text; line ends become \n, invalid UTF-8 becomes
// U+FFFD, tabs stay. Of a sequence without an end it drops only the introducer, so that nothing after
// it is hidden.
func Clean(s string) string {
	if !needsCleaning(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == esc:
			i += size + escapeLength(s[i+size:])
			continue
		case r == 0x9b:
			i += size + csiLength(s[i+size:])
			continue
		case r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f:
			i += size + stringLength(s[i+size:])
			continue
		case r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteByte('\n')
			}
		case isUnsafe(r):
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func needsCleaning(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || isUnsafe(r) {
			return true
		}
	}
	return false
}

// isUnsafe reports whether r acts on the terminal: C0 without \n and \t,
// DEL, C1, the marks that change the direction of text, and the byte order mark.
func isUnsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f ||
		r == 0x061c || r == 0x2028 || r == 0x2029 || r == 0xfeff
}

// escapeLength returns the length of an escape sequence after its ESC (ECMA-48).
func escapeLength(s string) int {
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c == '[':
		return 1 + csiLength(s[1:])
	case strings.IndexByte("]PX^_", c) >= 0:
		return 1 + stringLength(s[1:])
	case c >= 0x20 && c <= 0x2f: // intermediates, then a final
		n := 1
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			n++
		}
		return n
	case c >= 0x30 && c <= 0x7e:
		return 1
	}
	return 0
}

// csiLength returns the length of a control sequence after its introducer.
func csiLength(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		n++
	}
	return n
}

// stringLength returns the length of a command string with its end, BEL or ST.
func stringLength(s string) int {
	for i, r := range s {
		switch {
		case r == bel:
			return i + 1
		case r == 0x9c:
			return i + 2
		case r == esc && strings.HasPrefix(s[i+1:], `\`):
			return i + 2
		case r == esc, r == '\n': // broken off
			return 0
		}
	}
	return 0
}
