package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// variant is one way of doing what is measured. run does n operations.
type variant struct {
	name string
	run  func(ctx context.Context, n int) error
}

// series are the times of one operation, in nanoseconds, one for each round.
type series []float64

// race lets the variants take turns: A B C, A B C, …, so that what else the machine does
// falls on all of them alike. The first round warms up and is not counted.
func race(ctx context.Context, rounds, n int, variants ...variant) ([]series, error) {
	out := make([]series, len(variants))
	for round := range rounds + 1 {
		for i := range variants {
			v := variants[i]
			start := time.Now()
			if err := v.run(ctx, n); err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			if round > 0 {
				out[i] = append(out[i], float64(time.Since(start))/float64(n))
			}
		}
	}
	return out, nil
}

func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// over gives the ratios to another series, round by round.
func (s series) over(base series) series {
	out := make(series, min(len(s), len(base)))
	for i := range out {
		out[i] = s[i] / base[i]
	}
	return out
}

// minus gives the differences to another series, round by round.
func (s series) minus(base series) series {
	out := make(series, min(len(s), len(base)))
	for i := range out {
		out[i] = s[i] - base[i]
	}
	return out
}

// shared counts an operation's time among the k that it did at once.
func (s series) shared(k int) series {
	out := slices.Clone(s)
	for i := range out {
		out[i] /= float64(k)
	}
	return out
}
