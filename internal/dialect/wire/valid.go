package wire

import (
	"strings"

	"sessiond/internal/jsontext"
)

// measure tells in one pass whether bytes are JSON, as encoding/json has it, and how deep it
// is nested. Decoding spends much of its time here, so that it goes byte by byte only where
// it must.
func measure(raw []byte) (depth int, ok bool) {
	var few [64]byte
	stack := few[:0] // '{' or '[' of each open value
	at := skipSpace(raw, 0)
	for {
		if at == len(raw) {
			return depth, false
		}
		opened := false
		switch c := raw[at]; c {
		case '{', '[':
			stack = append(stack, c)
			depth = max(depth, len(stack))
			at, opened = skipSpace(raw, at+1), true
			if at < len(raw) && raw[at] == c+2 { // ] and } stand two behind [ and { in ASCII
				at, stack, opened = at+1, stack[:len(stack)-1], false
			}
		default:
			if at = scalarEnd(raw, at); at < 0 {
				return depth, false
			}
		}
		for !opened { // behind a value
			at = skipSpace(raw, at)
			if len(stack) == 0 {
				return depth, at == len(raw)
			}
			if at == len(raw) {
				return depth, false
			}
			open := stack[len(stack)-1]
			if raw[at] == open+2 {
				at, stack = at+1, stack[:len(stack)-1]
				continue
			}
			if raw[at] != ',' {
				return depth, false
			}
			at = skipSpace(raw, at+1)
			break
		}
		if stack[len(stack)-1] == '{' {
			if at = nameEnd(raw, at); at < 0 {
				return depth, false
			}
		}
	}
}

// nameEnd gives the index of the value behind a field's name and its colon, -1 if that is none.
func nameEnd(raw []byte, at int) int {
	if at == len(raw) || raw[at] != '"' {
		return -1
	}
	if at = validStringEnd(raw, at); at < 0 {
		return -1
	}
	if at = skipSpace(raw, at); at == len(raw) || raw[at] != ':' {
		return -1
	}
	return skipSpace(raw, at+1)
}

// scalarEnd gives the index behind a string, a number or a word, -1 if it is none.
func scalarEnd(raw []byte, at int) int {
	switch c := raw[at]; {
	case c == '"':
		return validStringEnd(raw, at)
	case c == '-' || c >= '0' && c <= '9':
		return numberEnd(raw, at)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(string(raw[at:min(len(raw), at+len(word))]), word) {
			return at + len(word)
		}
	}
	return -1
}

// validStringEnd gives the index behind a string, -1 if it is none.
func validStringEnd(raw []byte, at int) int {
	for at++; ; at++ {
		if at += jsontext.PlainLen(raw[at:]); at == len(raw) {
			return -1
		}
		switch raw[at] {
		default: // a control character
			return -1
		case '"':
			return at + 1
		case '\\':
			if at++; at == len(raw) {
				return -1
			}
			switch raw[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				const digits = 4
				for range digits {
					if at++; at == len(raw) || !isHex(raw[at]) {
						return -1
					}
				}
			default:
				return -1
			}
		}
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// numberEnd gives the index behind a number, -1 if it is none.
func numberEnd(raw []byte, at int) int {
	if raw[at] == '-' {
		at++
	}
	switch from := at; {
	case at < len(raw) && raw[at] == '0':
		at++
	default:
		if at = digitsEnd(raw, at); at == from {
			return -1
		}
	}
	if at < len(raw) && raw[at] == '.' {
		from := at + 1
		if at = digitsEnd(raw, from); at == from {
			return -1
		}
	}
	if at < len(raw) && raw[at]|0x20 == 'e' {
		from := at + 1
		if from < len(raw) && (raw[from] == '+' || raw[from] == '-') {
			from++
		}
		if at = digitsEnd(raw, from); at == from {
			return -1
		}
	}
	return at
}

func digitsEnd(raw []byte, at int) int {
	for at < len(raw) && raw[at] >= '0' && raw[at] <= '9' {
		at++
	}
	return at
}
