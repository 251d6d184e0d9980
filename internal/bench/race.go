package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// variant is one way of doing what is measured. run does n operations.
type variant struct {
	name string
	run  func(ctx context.Context, n int) error
	used func() time.Duration // processor time so far; nil: of this process
}

// series are the times of one operation, in nanoseconds, one for each round.
type series []float64

// timing is what one operation of a variant took: by the clock, and of processor time, which
// a busy machine leaves nearly as it is.
type timing struct{ wall, cpu series }

// race lets the variants take turns: A B C, A B C, …, so that what else the machine does
// falls on all of them alike. The first round warms up and is not counted.
func race(ctx context.Context, rounds, n int, variants ...variant) ([]timing, error) {
	out := make([]timing, len(variants))
	for round := range rounds + 1 {
		for i := range variants {
			v := variants[i]
			if v.used == nil {
				v.used = processorTime
			}
			start, used := time.Now(), v.used()
			if err := v.run(ctx, n); err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			wall, cpu := time.Since(start), v.used()-used
			if round > 0 {
				out[i].wall = append(out[i].wall, float64(wall)/float64(n))
				out[i].cpu = append(out[i].cpu, float64(cpu)/float64(n))
			}
		}
	}
	return out, nil
}

// processorTime is what this process has used so far, in all its threads.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
