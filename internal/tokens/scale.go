package tokens

import "math"

// HalfLife is after how many estimated tokens a report counts half as much as a new one.
const HalfLife = 20_000

// Scale learns how many tokens a model itself counts for one that a counter estimates. It
// is a plain value of two numbers; its zero value has learned nothing.
//
// It learns from differences between two calls of one session, epoch and set of tools, so
// that what does not grow (tool schemas, the provider's framing) falls out.
type Scale struct {
	Ratio  float64 // reported tokens per estimated token
	Weight float64 // estimated tokens behind the ratio, with the half-life
}

// Growth below leastGrowth says nothing, and a ratio outside these two is no tokenizer's but
// a mistake: another model, a context that was cut.
const (
	leastGrowth = 50
	leastRatio  = 0.5
	mostRatio   = 2.5
)

// prior is how many tokens the guess that a model counts as estimated is worth.
const prior = 2000

// Learn takes one difference in tokens, as estimated and as reported, and gives the new
// scale. A difference that says nothing changes nothing.
func (s Scale) Learn(estimated, reported int64) Scale {
	e, r := float64(estimated), float64(reported)
	if e < leastGrowth || r < e*leastRatio || r > e*mostRatio {
		return s
	}
	kept := s.Weight * math.Exp2(-e/HalfLife)
	return Scale{Ratio: (s.Ratio*kept + r) / (kept + e), Weight: kept + e}
}

// Factor is what to multiply an estimate with: 1 while nothing was learned, soon the ratio.
func (s Scale) Factor() float64 {
	return (s.Ratio*s.Weight + prior) / (s.Weight + prior)
}

// Doubt is the share of a scaled estimate that it may well be off by. It begins at the 6 % that
// the counter is held to and shrinks with the root of what the scale has seen; the half-life
// keeps it above a quarter of that.
func (s Scale) Doubt() float64 { return 0.06 * math.Sqrt(prior/(s.Weight+prior)) }
