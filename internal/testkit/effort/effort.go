// Package effort says how much a test does. Plain `go test` does what a change must pass, in
// minutes. With SESSIOND_TEST_LONG set, as `scripts/test --long` sets it, sweeps run in full and
// tests of very large records run at all. With -short, as the race detector runs, sweeps are
// shorter still.
package effort

import (
	"os"
	"testing"
)

// Long reports whether sweeps run in full.
func Long() bool { return os.Getenv("SESSIOND_TEST_LONG") != "" }

// OnlyLong skips a test that needs too much time or memory for every change, and says why.
func OnlyLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("%s; ./scripts/test --long runs it", why)
	}
}

// Runs returns how many of a sweep's n runs are due: all, a tenth, or a fiftieth with -short; at
// least one.
func Runs(n int) int {
	switch {
	case Long():
		return n
	case testing.Short():
		return max(1, n/50)
	}
	return max(1, n/10)
}

// NotShort skips a test with -short, and says why. The race detector runs with -short: it makes
// everything some ten times slower.
func NotShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s; it runs without -short", why)
	}
}
