package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit/effort"
)

// fault is a row of TestChaos: something that goes wrong around a real daemon, and the test of what must hold
// nevertheless.
type fault struct {
	name  string
	quick bool // also runs with every change
	run   func(t *testing.T, c *counts)
}

// faults are the rows, a function for each kind in a file of its own.
func faults() []fault {
	return slices.Concat(
		fileFaults(),
	)
}

// counts are the numbers of a row, printed in the order in which they were first named.
type counts struct {
	names []string
	sums  map[string]int
}

// add adds to the number of a name: "rounds", "acknowledged", "lost".
func (c *counts) add(name string, n int) {
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
	c.sums[name] += n
}

func (c *counts) String() string {
	var b strings.Builder
	for _, name := range c.names {
		fmt.Fprintf(&b, "  %s %d", name, c.sums[name])
	}
	return b.String()
}

// TestChaos prints a row with its counts for each fault. `scripts/chaos` runs it alone.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		if !f.quick && !effort.Long() { // they take minutes
			continue
		}
		c := &counts{sums: map[string]int{}}
		passed := t.Run(f.name, func(t *testing.T) { f.run(t, c) })
		verdict := "held"
		if !passed {
			verdict = "FAILED"
		}
		t.Logf("chaos: %-60s %-7s%s", f.name, verdict, c)
	}
}
