package gemini

import (
	"crypto/sha1"
	"encoding/hex"
	"unicode/utf8"
)

// maxName is the length of a function's name that the API takes.
const maxName = 64

// legalName gives a function's name in the API's alphabet: a letter or an underscore, then
// those, digits, dots, colons and dashes, 64 at most.
func legalName(name string) string {
	legal := legalIn(name, maxName, "_.:-")
	if legal == "" {
		return "_"
	}
	if c := legal[0]; c != '_' && !letter(c) {
		legal = "_" + legal[:min(len(legal), maxName-1)]
	}
	return legal
}

// legalID gives an id of at most so many letters, digits, underscores and dashes.
func legalID(id string, most int) string { return legalIn(id, most, "_-") }

// legalIn writes an underscore for what is neither letter, digit nor among more.
func legalIn(s string, most int, more string) string {
	clean := len(s) <= most
	for i := 0; clean && i < len(s); i++ {
		clean = legalByte(s[i], more)
	}
	if clean {
		return s
	}
	b := make([]byte, 0, most)
	for _, r := range s {
		if len(b) == most {
			break
		}
		if r < utf8.RuneSelf && legalByte(byte(r), more) {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	return string(b)
}

func legalByte(c byte, more string) bool {
	if letter(c) || c >= '0' && c <= '9' {
		return true
	}
	for i := range len(more) {
		if c == more[i] {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// hash names a text in hex digits.
func hash(s string, digits int) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}
