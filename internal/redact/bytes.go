package redact

// run returns the end of the run of bytes of a class that begins at i.
func run(s string, i int, class func(byte) bool) int {
	for i < len(s) && class(s[i]) {
		i++
	}
	return i
}

// class is a set of bytes that a secret can consist of. A text caches one run for each class, so the
// two pieces of a JWT have a class each.
type class int

const (
	word class = iota
	key
	upper
	dotted
	path
	base64
	value
	headOfJWT
	bodyOfJWT
	classes
)

// predicate returns the function that tests a byte.
func (c class) predicate() func(byte) bool {
	return [classes]func(byte) bool{
		word: isWord, key: isKey, upper: isUpper, dotted: isDotted, path: isPath,
		base64: isBase64, value: isValue, headOfJWT: isKey, bodyOfJWT: isKey,
	}[c]
}

// text is a text while it is masked. It caches the last run of each class, so that a run is
// scanned once and not again for each place in it at which a secret could begin.
type text struct {
	s     string
	floor int // everything before it is masked
	from  [classes]int
	to    [classes]int
}

func (t *text) run(i int, c class) int {
	if i < t.from[c] || i >= t.to[c] {
		t.from[c], t.to[c] = i, run(t.s, i, c.predicate())
	}
	return max(i, t.to[c])
}

// sample returns the beginning of a value, which is enough to judge it.
func sample(s string) string { return s[:min(len(s), 256)] }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' || isDigit(c) }

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

func isKey(c byte) bool { return isWord(c) || c == '-' }

func isDotted(c byte) bool { return isKey(c) || c == '.' }

func isPath(c byte) bool { return isWord(c) || c == '/' }

func isBase64(c byte) bool { return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' }

func isCredential(c byte) bool { return isBase64(c) || isDotted(c) || c == '~' }

// isArmour reports the bytes of the lines of a PEM block, also with its line breaks escaped as \n.
func isArmour(c byte) bool { return isBase64(c) || c == '\n' || c == '\r' || c == '\\' }

// isValue reports the bytes of an unquoted value. A bracket ends it, and so does the end of a string,
// a list item or a query parameter.
func isValue(c byte) bool {
	if c <= ' ' || c >= 0x7f {
		return false
	}
	switch c {
	case '"', '\'', '`', '\\', ',', ';', '&', '<', '>', '(', ')', '[', ']', '{', '}', '|':
		return false
	}
	return true
}

func some(s string, class func(byte) bool) bool {
	for i := range len(s) {
		if class(s[i]) {
			return true
		}
	}
	return false
}

func hasDigit(s string) bool { return some(s, isDigit) }

func hasLower(s string) bool { return some(s, func(c byte) bool { return c >= 'a' && c <= 'z' }) }

func hasUpper(s string) bool { return some(s, func(c byte) bool { return c >= 'A' && c <= 'Z' }) }

func hasSymbol(s string) bool {
	return some(s, func(c byte) bool { return !isKey(c) && c != '.' && c != '/' && c != ':' })
}

// isMixed reports whether s has letters and digits, like random text and unlike a word.
func isMixed(s string) bool { return hasDigit(s) && some(s, isLetter) }

// distinct counts the different bytes of s.
func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}
