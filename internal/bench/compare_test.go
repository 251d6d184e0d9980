// Package bench_test measures sessiond beside baselines: the product and, turn by turn in the same
// run, the same SQL straight on the driver or in C. docs/performance.md explains the figures. With
// -short sizes are small, which shows that everything runs and no more.
package bench_test

import (
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

var (
	historySize    = flag.Int("messages", 100_000, "messages of the large history")
	measured       = flag.String("sessiond", "", "sessiond binary to measure; by default it is built")
	keptFolder     = flag.String("keep", "", "folder in which the database of many sessions is kept for the next run")
	transcriptSize = flag.Int("large", 300, "MB of the large transcript")
)

// sized returns n, or a small part of it with -short.
func sized(n int) int {
	if testing.Short() {
		return max(1, n/100)
	}
	return n
}

// side is one way of doing what is measured.
type side struct {
	name  string
	op    func() error
	per   int                  // operations that op stands for; 0: one
	cpu   func() time.Duration // CPU time used so far; nil: by this process
	took  func() time.Duration // time of the last op by its own clock; nil: from its call to its return
	times []time.Duration
	used  time.Duration
}

// compare calls the sides in turn, each for n operations, so that what else the machine does slows
// all alike. It reports of the first side the median time and the mean CPU time of one operation,
// and how many times as much that is as of each other side. Both are returned, in seconds.
func compare(b *testing.B, n int, sides ...*side) (wall, cpu float64) {
	b.Helper()
	round := func() {
		for _, s := range sides {
			used := s.cpuTime()
			for range max(1, n/max(1, s.per)) {
				start := time.Now()
				if err := s.op(); err != nil {
					b.Fatalf("%s: %v", s.name, err)
				}
				took := time.Since(start)
				if s.took != nil {
					took = s.took()
				}
				s.times = append(s.times, took)
			}
			s.used += s.cpuTime() - used
		}
	}
	round()
	for _, s := range sides { // that was the warm-up
		s.times, s.used = nil, 0
	}
	for b.Loop() {
		round()
	}
	wall, cpu = sides[0].perOperation()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wall*1e6, "µs")
	b.ReportMetric(cpu*1e6, "cpu-µs")
	for _, s := range sides[1:] {
		otherWall, otherCPU := s.perOperation()
		b.ReportMetric(wall/otherWall, "×"+s.name)
		if otherCPU > 0 {
			b.ReportMetric(cpu/otherCPU, "cpu×"+s.name)
		}
	}
	return wall, cpu
}

func (s *side) cpuTime() time.Duration {
	if s.cpu == nil {
		return testkit.CPUTime()
	}
	return s.cpu()
}

func (s *side) perOperation() (wall, cpu float64) {
	per := float64(max(1, s.per))
	return median(s.times).Seconds() / per, s.used.Seconds() / per / float64(len(s.times))
}

func median(times []time.Duration) time.Duration { return percentile(times, 50) }

func percentile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)*percent/100]
}

func noCPU() time.Duration { return 0 } // of what other processes do

// repeat returns an op that calls another n times.
func repeat(n int, op func() error) func() error {
	return func() error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}
}

// atOnce calls op in k goroutines and returns an error of one.
func atOnce(k int, op func(i int) error) error {
	errs := make(chan error, k)
	var wg sync.WaitGroup
	for i := range k {
		wg.Go(func() { errs <- op(i) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
