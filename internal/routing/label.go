package routing

import (
	"strings"
	"unicode/utf8"
)

const maxLabel = 64

// CheckLabel returns the stored form of a label of 1 to 64 characters; "" removes the label.
// Codes: Invalid.
func CheckLabel(label string) (string, error) {
	trimmed := strings.TrimSpace(label)
	switch n := utf8.RuneCountInString(trimmed); {
	case label == "":
		return "", nil
	case n == 0:
		return "", invalid("label", "the label is only white space; use 1 to %d characters, or null to remove it", maxLabel)
	case n > maxLabel:
		return "", invalid("label", "the label has %d characters; at most %d are allowed", n, maxLabel)
	case strings.ContainsFunc(trimmed, unprintable):
		return "", invalid("label", "the label contains a control character")
	}
	return trimmed, nil
}
