package routing

import "strings"

// DefaultID is the agent that acts where none is named, and the alias of its main session.
const DefaultID = "main"

// defaultAccount is the account of a channel where none is named.
const defaultAccount = "default"

const maxID = 64

// NormalizeID gives the form of an agent's or an account's id: lower case letters, digits,
// underscores and dashes, at most 64. An id of which nothing is left is refused, for it would
// be somebody else's. Codes: Invalid.
func NormalizeID(value string) (string, error) {
	id := dashed(value, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' })
	if len(id) > maxID {
		id = id[:maxID]
	}
	if id = strings.Trim(id, "-"); id == "" {
		return "", invalid("agent", "the id %q has no letter a to z and no digit: nothing of it is left", clip(value))
	}
	return id, nil
}

// dashed folds a text and puts one dash for each run of characters that are not kept.
func dashed(text string, keep func(rune) bool) string {
	var out strings.Builder
	gap := false
	for _, r := range strings.ToLower(strings.TrimSpace(text)) {
		if !keep(r) {
			gap = true
			continue
		}
		if gap {
			out.WriteByte('-')
			gap = false
		}
		out.WriteRune(r)
	}
	return out.String()
}

func clip(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
