package routing

import (
	"strings"
	"unicode/utf8"
)

const maxLabel = 64

// CheckLabel gives the form in which a label is kept, "" to take it away. Codes: Invalid: it
// has 1 to 64 characters.
func CheckLabel(label string) (string, error) {
	trimmed := strings.TrimSpace(label)
	switch n := utf8.RuneCountInString(trimmed); {
	case label == "":
		return "", nil
	case n == 0:
		return "", invalid("label", "the label is only white space: it has 1 to %d characters; null takes it away", maxLabel)
	case n > maxLabel:
		return "", invalid("label", "the label has %d characters; at most %d are allowed", n, maxLabel)
	case strings.ContainsFunc(trimmed, unprintable):
		return "", invalid("label", "the label holds a control character")
	}
	return trimmed, nil
}
