// Package testkit ends tests at errors that they do not expect.
package testkit

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
