package tokens

import (
	"math"
)

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

// Reference is the counter whose numbers are stored as messages.tokens: o200k, frozen.
func Reference() *Counter { return ForFamily(O200k) }

// ForFamily gives the counter of a family.
func ForFamily(f Family) *Counter {
	switch f {
	case O200k:
		return &Counter{family: O200k, weights: o200kWeights()}
	case CL100k:
		return &Counter{family: CL100k, weights: cl100kWeights()}
	case Claude:
		return &Counter{family: Claude, weights: claudeWeights()}
	case Gemini:
		return &Counter{family: Gemini, weights: geminiWeights()}
	default:
		return &Counter{family: Default, weights: defaultWeights()}
	}
}

// Family tells whose weights the counter has.
func (c *Counter) Family() Family { return c.family }

// Text estimates the tokens of a text. It is 0 for the empty text only. Bytes that are no
// UTF-8 count as one unknown character each. It does not allocate.
func (c *Counter) Text(s string) int64 {
	if s == "" {
		return 0
	}
	var f features
	f.scan(s)
	return c.estimate(&f)
}

// estimate is what a text that is not empty costs.
func (c *Counter) estimate(f *features) int64 { return max(1, int64(math.Round(c.weights.of(f)))) }
