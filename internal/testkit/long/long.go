// Package long says how much a test does. Plain `go test` does what a change must pass, in
// minutes. With SESSIOND_TEST_LONG set, as `scripts/test --long` sets it, sweeps run in full and
// tests of very large records run at all. With -short, as the race detector runs, sweeps are
// shorter still.
package long

import (
	"os"
	"testing"
)

// On reports whether sweeps run in full.
func On() bool { return os.Getenv("SESSIOND_TEST_LONG") != "" }

// Only skips a test that needs too much time or memory for every change, and says why.
func Only(t testing.TB, why string) {
	t.Helper()
	if !On() {
		t.Skipf("%s; ./scripts/test --long runs it", why)
	}
}

// Runs returns how many of a sweep's n runs are due: all, a tenth, or a fiftieth with -short; at
// least one.
func Runs(n int) int {
	switch {
	case On():
		return n
	case testing.Short():
		return max(1, n/50)
	}
	return max(1, n/10)
}
