package transcript

import (
	"strings"
	"unicode/utf8"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// sequence is an escape sequence (ECMA-48): a control sequence with its parameters; a command string with its end, BEL
// or ST; intermediates with a final. Each has a 7-bit and an 8-bit introducer.
var sequence = pattern.New(`^(?:(?:\x1b\[|\x{9b})[ -?]*[@-~]?` +
	`|(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])(?:[^\x07\x1b\n\x{80}-\x{9f}]*(?:\x07|\x{9c}|\x1b\\))?` +
	`|\x1b(?:[ -/]+[0-~]?|[0-~])?)`)

// Clean returns text that is safe to write to a terminal. It drops escape sequences (also 8-bit ones),
// other control characters, those that reorder text and invisible ones; line ends become \n, invalid UTF-8 becomes
// U+FFFD, tabs stay. Of a command string without an end it drops only the introducer, so that nothing after
// it is hidden.
func Clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || isUnsafe(r) }) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for at := strings.IndexFunc(s, introduces); at >= 0; at = strings.IndexFunc(s, introduces) {
		b.WriteString(s[:at])
		s = s[at+len(sequence.FindString(s[at:])):]
	}
	b.WriteString(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case isUnsafe(r):
			return -1
		}
		return r
	}, b.String())
}

// introduces reports whether a character begins a sequence.
func introduces(r rune) bool {
	return r == '\x1b' || r == 0x90 || r == 0x98 || r == 0x9b || r >= 0x9d && r <= 0x9f
}

// isUnsafe reports whether r acts on the terminal: C0 without \n and \t,
// DEL, C1, the marks that change the direction of text; or whether it shows nothing at all and hides text so.
func isUnsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f ||
		r == 0x061c || r == 0x2028 || r == 0x2029 || session.IsInvisible(r)
}
