package history

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// Valid tells whether raw is one JSON value and white space, as json.Valid does; several
// times as fast on long strings, which transcripts are made of.
func Valid(raw []byte) bool {
	at := checkValue(raw, space(raw, 0), 0)
	return at >= 0 && space(raw, at) == len(raw)
}

// maxNesting is where encoding/json gives up, too.
const maxNesting = 10_000

// The check functions give the end of what begins at at, -1 if it is not valid there.

func checkValue(raw []byte, at, depth int) int {
	if at >= len(raw) {
		return -1
	}
	switch c := raw[at]; {
	case c == '"':
		return checkString(raw, at)
	case c == '{' || c == '[':
		if depth == maxNesting {
			return -1
		}
		return checkMembers(raw, at, depth+1)
	case c == 't':
		return checkWord(raw, at, "true")
	case c == 'f':
		return checkWord(raw, at, "false")
	case c == 'n':
		return checkWord(raw, at, "null")
	}
	return checkNumber(raw, at)
}

// checkMembers goes over an object or an array.
func checkMembers(raw []byte, at, depth int) int {
	object, end := raw[at] == '{', byte(']')
	if object {
		end = '}'
	}
	if at = space(raw, at+1); at < len(raw) && raw[at] == end {
		return at + 1
	}
	for {
		if object {
			if at = checkName(raw, at); at < 0 {
				return -1
			}
		}
		if at = checkValue(raw, at, depth); at < 0 {
			return -1
		}
		if at = space(raw, at); at >= len(raw) {
			return -1
		}
		switch raw[at] {
		case end:
			return at + 1
		case ',':
			at = space(raw, at+1)
		default:
			return -1
		}
	}
}

// checkName goes over a name and its colon.
func checkName(raw []byte, at int) int {
	if at >= len(raw) || raw[at] != '"' {
		return -1
	}
	if at = checkString(raw, at); at < 0 {
		return -1
	}
	if at = space(raw, at); at >= len(raw) || raw[at] != ':' {
		return -1
	}
	return space(raw, at+1)
}

// checkFields goes over an object and gathers its fields. Their values are gone over by value,
// or checkValue.
func checkFields(raw []byte, at, depth int, into []Field, value func(key string, at int) (end int)) (fields []Field, end int) {
	if at = space(raw, at+1); at < len(raw) && raw[at] == '}' {
		return into, at + 1
	}
	for {
		name := at
		from := checkName(raw, at)
		if from < 0 {
			return into, -1
		}
		key := nameOf(raw[name:skipString(raw, name)])
		if value == nil {
			at = checkValue(raw, from, depth)
		} else {
			at = value(key, from)
		}
		if at < 0 {
			return into, -1
		}
		into = append(into, Field{Key: key, Raw: json.RawMessage(raw[from:at:at])})
		if at = space(raw, at); at >= len(raw) {
			return into, -1
		}
		switch raw[at] {
		case '}':
			return into, at + 1
		case ',':
			at = space(raw, at+1)
		default:
			return into, -1
		}
	}
}

// checkString looks at eight bytes at once for the end, an escape or a control character.
func checkString(raw []byte, at int) int {
	for at++; ; {
		for at+8 <= len(raw) {
			w := binary.LittleEndian.Uint64(raw[at:])
			quote, escape := w^ones*'"', w^ones*'\\'
			found := ((quote-ones)&^quote | (escape-ones)&^escape | (w-ones*0x20)&^w) & tops
			if found != 0 {
				at += bits.TrailingZeros64(found) / 8
				break
			}
			at += 8
		}
		if at >= len(raw) {
			return -1
		}
		switch c := raw[at]; {
		case c == '"':
			return at + 1
		case c == '\\':
			if at = checkEscape(raw, at+1); at < 0 {
				return -1
			}
		case c < 0x20:
			return -1
		default:
			at++
		}
	}
}

func checkEscape(raw []byte, at int) int {
	if at >= len(raw) {
		return -1
	}
	switch raw[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1
	case 'u':
		if at+5 > len(raw) {
			return -1
		}
		for _, c := range raw[at+1 : at+5] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return -1
			}
		}
		return at + 5
	}
	return -1
}

func checkWord(raw []byte, at int, word string) int {
	if end := at + len(word); end <= len(raw) && string(raw[at:end]) == word {
		return end
	}
	return -1
}

func checkNumber(raw []byte, at int) int {
	if at < len(raw) && raw[at] == '-' {
		at++
	}
	switch {
	case at >= len(raw) || !isDigit(raw[at]):
		return -1
	case raw[at] == '0':
		at++
	default:
		at = digits(raw, at)
	}
	if at < len(raw) && raw[at] == '.' {
		if at++; at >= len(raw) || !isDigit(raw[at]) {
			return -1
		}
		at = digits(raw, at)
	}
	if at < len(raw) && (raw[at] == 'e' || raw[at] == 'E') {
		if at++; at < len(raw) && (raw[at] == '+' || raw[at] == '-') {
			at++
		}
		if at >= len(raw) || !isDigit(raw[at]) {
			return -1
		}
		at = digits(raw, at)
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func digits(raw []byte, at int) int {
	for at < len(raw) && isDigit(raw[at]) {
		at++
	}
	return at
}

func space(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r') {
		at++
	}
	return at
}
