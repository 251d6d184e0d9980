package main

import (
	"bytes"
	"testing"

	"sessiond/internal/history"
)

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

// A program that reads standard error line by line gets one line for each problem.
func TestAProblemIsOneLine(t *testing.T) {
	var out bytes.Buffer
	a := app{env: &env{err: &out}}
	a.printProblems([]history.Problem{{Path: "/home/ana/two\nlines/\x1b[31mred.jsonl", Line: 3, Error: "not a JSON object"}})
	if want := "sessiond: /home/ana/two\\nlines/red.jsonl:3: not a JSON object\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// A hit is read in a narrow terminal: words stay whole.
func TestAHitIsBrokenBetweenWords(t *testing.T) {
	a := app{env: &env{outTTY: true, width: 30}}
	if got := a.indented("one two three four five six seven eight"); got != "    one two three four five\n    six seven eight" {
		t.Errorf("%q", got)
	}
	a.outTTY = false
	if got := a.indented("one two three four five six seven eight"); got != "    one two three four five six seven eight" {
		t.Errorf("%q", got)
	}
}
