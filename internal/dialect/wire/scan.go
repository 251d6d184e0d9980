package wire

import (
	"bytes"
	"encoding/json"
)

// KindOf tells what a JSON value is by its first byte: one of { [ " t f n, or 0 for a number.
// It gives n for an empty value, which stands for none.
func KindOf(raw json.RawMessage) byte {
	at := skipSpace(raw, 0)
	if at == len(raw) {
		return 'n'
	}
	switch c := raw[at]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	}
	return 0
}

// IsNull tells whether a value is null or not there.
func IsNull(raw json.RawMessage) bool { return KindOf(raw) == 'n' }

// Describe names the kind of a value, for an error.
func Describe(raw json.RawMessage) string {
	switch KindOf(raw) {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		if len(raw) == 0 {
			return "missing"
		}
		return "null"
	}
	return "a number"
}

// Depth is how many arrays and objects stand in one another. The bytes need not be JSON.
func Depth(raw json.RawMessage) int {
	depth, deepest := 0, 0
	for at := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			at = stringEnd(raw, at) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// valueEnd gives the index behind the value that begins at at, in valid JSON.
func valueEnd(raw []byte, at int) int {
	switch raw[at] {
	case '"':
		return stringEnd(raw, at)
	case '{', '[':
		depth := 0
		for ; ; at++ {
			switch raw[at] {
			case '"':
				at = stringEnd(raw, at) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
	}
	for at < len(raw) {
		switch raw[at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':':
			return at
		}
		at++
	}
	return at
}

// stringEnd gives the index behind the string that begins at at, or the end of raw. The next
// quote is its end unless an odd number of backslashes stands before it.
func stringEnd(raw []byte, at int) int {
	for from := at + 1; from < len(raw); {
		quote := bytes.IndexByte(raw[from:], '"')
		if quote < 0 {
			return len(raw)
		}
		quote += from
		slashes := 0
		for quote-slashes-1 > at && raw[quote-slashes-1] == '\\' {
			slashes++
		}
		if from = quote + 1; slashes%2 == 0 {
			return from
		}
	}
	return len(raw)
}

func skipSpace(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\r' || raw[at] == '\n') {
		at++
	}
	return at
}

// HasElements tells whether a value is an array with something in it.
func HasElements(raw json.RawMessage) bool {
	if KindOf(raw) != '[' {
		return false
	}
	at := skipSpace(raw, skipSpace(raw, 0)+1)
	return raw[at] != ']'
}
