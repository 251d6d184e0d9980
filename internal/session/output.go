package session

import "strconv"

// PrunedTokens is the approximate size of the line that replaces a hidden output.
const PrunedTokens = 30

// OutputName names a part of a message without row ids: MESSAGE/PART, with parts from 0.
func OutputName(message MessageRef, part int) string {
	return message.String() + "/" + strconv.Itoa(part)
}

// Output returns the tokens of the tool output that begins with the result at index i: its own, and in a
// tool's message those of the images and files behind it. end is the index of the next part.
func (m *Message) Output(i int) (tokens int64, end int) {
	tokens = m.Parts[i].Tokens
	for end = i + 1; m.Role == Tool && end < len(m.Parts) && m.Parts[end].Kind != PartToolResult; end++ {
		tokens += m.Parts[end].Tokens
	}
	return tokens, end
}

// PrunedSaves returns the tokens that pruning an output of this size saves.
func PrunedSaves(tokens int64) int64 { return max(0, tokens-PrunedTokens) }
