package main

import (
	"bytes"
	"testing"

	"sessiond/internal/history"
)

// A line is wrapped to a terminal, and stays one line in a pipe.
func TestLinesFitTheTerminal(t *testing.T) {
	for width, want := range map[int]string{
		0:  "skipped: 12 blank line, 3 unfinished last line",
		30: "skipped: 12 blank line, 3\n  unfinished last line",
	} {
		a := app{env: &env{outTTY: width > 0, width: width}}
		if got := a.fit("skipped: 12 blank line, 3 unfinished last line", "  "); got != want {
			t.Errorf("in %d columns:\n%s", width, got)
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
