package main

import "testing"

// A list is broken between its items, so that each line fits, and not at all where nobody reads.
func TestListedBreaksBetweenItems(t *testing.T) {
	items := []string{"12 blank line", "3 unfinished last line", "1 a reason that is much wider than the terminal"}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "skipped: 12 blank line, 3 unfinished last line, 1 a reason that is much wider than the terminal"},
		{58, "skipped: 12 blank line, 3 unfinished last line,\n        1 a reason that is much wider than the terminal"},
		{30, "skipped: 12 blank line,\n    3 unfinished last line,\n    1 a reason that is much\n    wider than the terminal"},
	} {
		if got := listed("skipped:", items, c.width); got != c.want {
			t.Errorf("in %d columns:\n%s", c.width, got)
		}
	}
}
