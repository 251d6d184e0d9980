package tokens

import "math"

// Family names a tokenizer with its own weights.
type Family string

// The families. An unknown one counts as Default.
const (
	O200k   Family = "o200k"  // OpenAI since gpt-4o; the reference
	CL100k  Family = "cl100k" // OpenAI gpt-4 and gpt-3.5
	Claude  Family = "claude"
	Gemini  Family = "gemini"
	Default Family = "default" // any other model
)

// Counter estimates tokens with one family's weights. It is safe for concurrent use.
type Counter struct {
	family  Family
	weights weights
}

// Reference returns the counter of messages.tokens: o200k, frozen.
func Reference() *Counter { return ForFamily(O200k) }

// ForFamily returns the counter of a family.
func ForFamily(f Family) *Counter {
	switch f {
	case O200k:
		return &Counter{f, o200kWeights()}
	case CL100k:
		return &Counter{f, cl100kWeights()}
	case Claude:
		return &Counter{f, claudeWeights()}
	case Gemini:
		return &Counter{f, geminiWeights()}
	}
	return &Counter{Default, defaultWeights()}
}

// Family returns the counter's family.
func (c *Counter) Family() Family { return c.family }

// Text estimates the tokens of a text. Only the empty text has 0. Each byte of invalid UTF-8 counts
// as one unknown character. Text does not allocate.
func (c *Counter) Text(s string) int64 {
	if s == "" {
		return 0
	}
	var f features
	f.scan(s)
	return max(1, int64(math.Round(c.weights.of(&f))))
}
