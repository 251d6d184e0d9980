// Package testkit has the checks that most tests share.
package testkit

import "github.com/google/go-cmp/cmp"

// Failer is what a test and a check of rapid have in common.
type Failer interface {
	Helper()
	Fatal(args ...any)
}

// Must returns a function that returns value, or ends the test with err.
func Must[T any](value T, err error) func(Failer) T {
	return func(t Failer) T {
		t.Helper()
		Check(t, err)
		return value
	}
}

// Check ends the test with err, if there is one.
func Check(t Failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal reports how got differs from want.
func Equal(t interface {
	Helper()
	Errorf(format string, args ...any)
}, want, got any, options ...cmp.Option,
) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
