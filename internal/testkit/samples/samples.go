// Package samples leads tests to real histories of other programs, which are kept beside the
// project and are not part of it.
package samples

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder of the samples. Where there is none the test is skipped and says so.
func Dir(t testing.TB) string { return shared(t, "samples") }

// Conformance returns the folder of the original conformance cases, to compare testdata with.
func Conformance(t testing.TB) string { return shared(t, "conformance") }

// Case returns the folder of a case: a small history, with what is right for it beside it. Where it
// is not there the test is skipped and says so.
func Case(t testing.TB, name string) string { return shared(t, filepath.Join("cases", name)) }

// Find returns the path of a sample, "" where there is none.
func Find(name string) string {
	found := filepath.Join(beside(), "samples", name)
	if _, err := os.Stat(found); err != nil {
		return ""
	}
	return found
}

func shared(t testing.TB, name string) string {
	t.Helper()
	found := filepath.Join(beside(), name)
	if _, err := os.Stat(found); err != nil {
		t.Skipf("the %s are not beside this checkout (%v)", name, err)
	}
	return found
}

// beside returns the folder of what is shared, beside the one with go.mod.
func beside() string {
	dir, _ := os.Getwd()
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "..", "shared")
}
