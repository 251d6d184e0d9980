package session

import "strconv"

// PrunedTokens is about what the line weighs that stands for an output which was hidden.
const PrunedTokens = 30

// OutputName names a part of a message where no number of the database may stand: MESSAGE/PART,
// the part from 0.
func OutputName(message MessageRef, part int) string {
	return message.String() + "/" + strconv.Itoa(part)
}

// Output gives the tokens of the output of a tool that begins with the result at index i: its
// own, and in a tool's message those of the pictures and files behind it. end is the index of
// the part after it.
func (m *Message) Output(i int) (tokens int64, end int) {
	tokens = m.Parts[i].Tokens
	for end = i + 1; m.Role == Tool && end < len(m.Parts) && m.Parts[end].Kind != PartToolResult; end++ {
		tokens += m.Parts[end].Tokens
	}
	return tokens, end
}

// PrunedSaves is how much smaller a context is without such an output.
func PrunedSaves(tokens int64) int64 { return max(0, tokens-PrunedTokens) }
