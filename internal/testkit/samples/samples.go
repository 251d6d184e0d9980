// Package samples leads tests to real histories of other programs, which are kept beside the
// project and are not part of it.
package samples

import (
	"os"
	"path/filepath"
	"testing"

	"sessiond/internal/testkit"
)

// Dir returns the folder of the samples. Where there is none the test is skipped and says so.
func Dir(t testing.TB) string { return shared(t, "samples") }

// Conformance returns the folder of the original conformance cases, to compare testdata with.
func Conformance(t testing.TB) string { return shared(t, "conformance") }

// Find returns the path of a sample, "" where there is none.
func Find(name string) string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			found := filepath.Join(dir, "..", "shared", "samples", name)
			if _, err := os.Stat(found); err == nil {
				return found
			}
			return ""
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func shared(t testing.TB, name string) string {
	t.Helper()
	dir := testkit.Must(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			found := filepath.Join(dir, "..", "shared", name)
			if _, err := os.Stat(found); err != nil {
				t.Skipf("the %s are not beside this checkout (%v)", name, err)
			}
			return found
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
