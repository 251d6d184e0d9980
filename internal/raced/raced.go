// Package raced tells tests that the race detector watches them, which makes everything some ten
// times slower and its memory larger. A test that does less then, is run without the detector,
// too: scripts/test finds its package by what it imports.
package raced

import "testing"

// Skip ends a test that would show the detector nothing that shorter ones do not, and says why.
func Skip(t testing.TB, why string) {
	t.Helper()
	if On {
		t.Skipf("%s; runs without the race detector", why)
	}
}
