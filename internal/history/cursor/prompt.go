package cursor

import (
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// queryTag is around what a person typed; other blocks of a prompt are written by the program.
const queryTag = "user_query"

// promptOf makes the message of a prompt: what the person typed, with the program's blocks beside it. One that has
// only such blocks is the program's.
func promptOf(at session.Time, parts []session.Part) (m session.Message, context string) {
	var typed, beside []session.Part
	var blocks []string
	for _, p := range parts {
		if p.Kind != session.PartText {
			beside = append(beside, p)
			continue
		}
		query, rest, found := typedIn(p.Text)
		switch {
		case found:
			typed = append(typed, session.TextPart(query))
		case strings.HasPrefix(strings.TrimSpace(rest), "<"):
		default: // words without tags
			typed, rest = append(typed, session.TextPart(p.Text)), ""
		}
		if rest != "" {
			blocks = append(blocks, rest)
		}
	}
	context = strings.Join(blocks, "\n")
	if len(typed) == 0 && len(beside) == 0 {
		return history.Hint(at, session.TextPart(context)), ""
	}
	return history.Say(session.User, at, append(typed, beside...)...), context
}

// typedIn returns what a person typed in a text, and the rest of it.
func typedIn(text string) (query, rest string, found bool) {
	before, after, found := strings.Cut(text, "<"+queryTag+">")
	if !found {
		return "", text, false
	}
	query, behind, _ := strings.Cut(after, "</"+queryTag+">")
	return strings.TrimSpace(query), strings.TrimSpace(before + behind), true
}
