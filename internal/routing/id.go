package routing

import "strings"

// DefaultID is the default agent, and the alias of an agent's main session.
const DefaultID = "main"

// defaultAccount is the default account of a channel.
const defaultAccount = "default"

const maxID = 64

// NormalizeID returns the normal form of an agent's or an account's id: at most 64 lower case
// letters, digits, underscores and dashes. It rejects an id without any of these, because the
// result would be another one's id. Codes: Invalid.
func NormalizeID(value string) (string, error) {
	id := dashed(value, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' })
	if len(id) > maxID {
		id = id[:maxID]
	}
	if id = strings.Trim(id, "-"); id == "" {
		return "", invalid("agent", "the id %q has no letter a to z and no digit", clip(value))
	}
	return id, nil
}

// dashed returns the text in lower case with one dash for each run of characters that keep rejects.
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
