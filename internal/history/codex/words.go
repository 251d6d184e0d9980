package codex

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// bytesPerToken is Codex's own estimate.
const bytesPerToken = 4

// recentWords gives what Codex keeps of what a person said, oldest first: from the newest back
// as long as the budget lasts, in tokens; the first that does not fit is cut in its middle and
// ends the walk. The mark where it was cut comes on top. Source: codex, compact.rs.
func recentWords(said []string, budget int) []string {
	var words []string
	for _, text := range slices.Backward(said) {
		if budget <= 0 {
			break
		}
		tokens := (len(text) + bytesPerToken - 1) / bytesPerToken
		if tokens > budget {
			words = append(words, cutMiddle(text, budget*bytesPerToken))
			break
		}
		words = append(words, text)
		budget -= tokens
	}
	slices.Reverse(words)
	return words
}

// cutMiddle keeps as many bytes, half of them of each end, on the borders of characters.
func cutMiddle(text string, most int) string {
	head, tail := most/2, len(text)-(most-most/2)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	removed := (len(text) - most + bytesPerToken - 1) / bytesPerToken
	return fmt.Sprintf("%s…%d tokens truncated…%s", text[:head], removed, text[tail:])
}
