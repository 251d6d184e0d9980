package tokens

import "math"

// HalfLife is the number of estimated tokens after which a report weighs half as much as a new one.
const HalfLife = 20_000

// Scale learns how many tokens a model counts for each estimated token. Its zero value has
// learned nothing.
//
// It learns from differences between two calls of one session, epoch and set of tools, so
// that what does not grow (tool schemas, the provider's framing) falls out.
type Scale struct {
	Ratio  float64 // reported tokens per estimated token
	Weight float64 // estimated tokens behind the ratio, with the half-life
}

// Learn skips growth below leastGrowth, and ratios outside these two bounds: they come from
// another model or a context that was cut, not from a tokenizer.
const (
	leastGrowth = 50
	leastRatio  = 0.5
	mostRatio   = 2.5
)

// prior is the weight, in tokens, of the assumption that a model counts as estimated.
const prior = 2000

// Learn returns the scale updated with one difference in tokens, as estimated and as reported.
func (s Scale) Learn(estimated, reported int64) Scale {
	e, r := float64(estimated), float64(reported)
	if e < leastGrowth || r < e*leastRatio || r > e*mostRatio {
		return s
	}
	kept := s.Weight * math.Exp2(-e/HalfLife)
	return Scale{Ratio: (s.Ratio*kept + r) / (kept + e), Weight: kept + e}
}

// Factor returns the factor for an estimate: 1 at first, soon the learned ratio.
func (s Scale) Factor() float64 {
	return (s.Ratio*s.Weight + prior) / (s.Weight + prior)
}

// Doubt returns the likely error of a scaled estimate, as a share of it. It begins at 6 %, the
// counter's own bound, and shrinks with the root of the tokens seen; the half-life keeps it above
// a quarter of that.
func (s Scale) Doubt() float64 { return 0.06 * math.Sqrt(prior/(s.Weight+prior)) }
