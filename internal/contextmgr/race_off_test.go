//go:build !race

package contextmgr_test

// raced tells that the race detector is on, which makes everything ten times slower.
func raced() bool { return false }
