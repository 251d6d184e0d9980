// Package words keeps the newest of what a person said, as Codex does when it compacts a
// conversation. Preset codex goes by it, and the importer of Codex's transcripts.
package words

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// BytesPerToken is Codex's own estimate.
const BytesPerToken = 4

// Tokens estimates a text as Codex does.
func Tokens(text string) int64 { return (int64(len(text)) + BytesPerToken - 1) / BytesPerToken }

// Recent returns what is kept of what a person said, oldest first: from the newest back as long
// as the budget lasts, in tokens; the first that does not fit is cut in its middle and ends the
// walk. The mark where it was cut comes on top. The texts given are the last ones of said.
// Source: codex, compact.rs.
func Recent(said []string, budget int64) []string {
	var kept []string
	for _, text := range slices.Backward(said) {
		if budget <= 0 {
			break
		}
		n := Tokens(text)
		if n > budget {
			kept = append(kept, cutMiddle(text, int(budget)*BytesPerToken))
			break
		}
		kept = append(kept, text)
		budget -= n
	}
	slices.Reverse(kept)
	return kept
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
	removed := (len(text) - most + BytesPerToken - 1) / BytesPerToken
	return fmt.Sprintf("%s…%d tokens truncated…%s", text[:head], removed, text[tail:])
}
