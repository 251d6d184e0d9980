package tokens

import "math"

// HalfLife is after how many estimated tokens a report counts half as much as a new one.
const HalfLife = 20_000

// Scale learns how a model's own counts relate to a counter's estimates. Its zero value has
// learned nothing. It is a plain value: whoever keeps it stores its three numbers.
//
// What is learned from are differences between two calls of one session, epoch and set of
// tools: estimated and reported growth. So what does not grow (tool schemas, the provider's
// framing) falls out.
type Scale struct {
	Estimated float64 // decayed sum of estimated growth
	Reported  float64 // decayed sum of reported growth
	Squares   float64 // decayed sum of squared residuals per estimated token
}

// A factor outside these is a mistake of the caller (another model, a pruned context) and
// not a tokenizer.
const (
	leastFactor = 0.5
	mostFactor  = 2.5
)

// Learn takes one difference, in tokens. Growth of fewer than 50 estimated tokens says
// nothing and is ignored, as is one that no tokenizer explains.
func (s Scale) Learn(estimated, reported int64) Scale {
	e, r := float64(estimated), float64(reported)
	if e < 50 || r < e*leastFactor || r > e*mostFactor {
		return s
	}
	residual := r - e*s.Factor()
	decay := math.Exp2(-e / HalfLife)
	return Scale{
		Estimated: s.Estimated*decay + e,
		Reported:  s.Reported*decay + r,
		Squares:   s.Squares*decay + residual*residual/e,
	}
}

// Factor is what to multiply an estimate with: 1 as long as nothing was learned. The first
// few thousand tokens are mixed with that guess.
func (s Scale) Factor() float64 {
	const guess = 2000 // tokens that the guess 1 is worth
	return (s.Reported + guess) / (s.Estimated + guess)
}

// Apply gives an estimate in the model's own tokens.
func (s Scale) Apply(estimated int64) int64 {
	return int64(math.Round(float64(estimated) * s.Factor()))
}

// StandardError is by how much Apply(estimated) may be off, in tokens, one standard error:
// 6 % of the estimate before anything was learned, which is what the counter is held to;
// then what the residuals say, as long as that is less.
func (s Scale) StandardError(estimated int64) float64 {
	e := math.Abs(float64(estimated))
	untrained := 0.06 * e
	if s.Estimated < HalfLife/10 {
		return untrained
	}
	// Squares/Estimated is the variance of a token's cost in tokens², seen in growth of that
	// many tokens: it adds up over the estimate, and the factor's own error over all of it.
	variance := s.Squares / s.Estimated * s.Estimated / HalfLife
	return math.Min(untrained, math.Sqrt(variance*e+variance*e*e/s.Estimated))
}
