package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

func TestFitColumns(t *testing.T) {
	cols := []column{
		{name: "id"}, {name: "title", least: 10, grow: true}, {name: "note", least: 5, grow: true, keep: 2}, {name: "cost", keep: 1},
	}
	for name, c := range map[string]struct {
		most          int
		shown, widths []int
	}{
		"a pipe shows all whole":                  {0, []int{0, 1, 2, 3}, []int{8, 60, 40, 6}},
		"enough room":                             {120, []int{0, 1, 2, 3}, []int{8, 60, 40, 6}},
		"the widest is cut first":                 {110, []int{0, 1, 2, 3}, []int{8, 50, 40, 6}},
		"then both":                               {60, []int{0, 1, 2, 3}, []int{8, 20, 20, 6}},
		"what matters least goes, others grow":    {34, []int{0, 1, 2}, []int{8, 11, 11}},
		"what is never dropped stays, cut to fit": {20, []int{0, 1}, []int{8, 10}},
		"too narrow for anything":                 {5, []int{0, 1}, []int{8, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			widths := []int{8, 60, 40, 6}
			shown := fitColumns(cols, widths, c.most)
			if !slices.Equal(shown, c.shown) {
				t.Fatalf("shows %v, want %v", shown, c.shown)
			}
			for _, i := range shown {
				if c.most > 8 && widths[i] != c.widths[i] {
					t.Errorf("%s is %d wide, want %d", cols[i].name, widths[i], c.widths[i])
				}
			}
		})
	}
}

// TestNothingStoredActsOnATerminal: control characters of any kind come out as text or not at
// all, in what people read and in JSON.
func TestNothingStoredActsOnATerminal(t *testing.T) {
	for name, text := range map[string]string{
		"a colour":      "a\x1b[31mb",
		"a title":       "a\x1b]0;owned\ab",
		"8-bit":         "a\u009b31mb",
		"a backspace":   "a\bb",
		"delete":        "a\x7fb",
		"another order": "a\u202eb",
	} {
		if got := printable(text); strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || isC1(r) || r == '\u202e' }) {
			t.Errorf("%s: %q", name, got)
		}
		var out strings.Builder
		a := app{env: &env{out: &out}}
		testkit.Check(t, a.printJSON(map[string]string{"text": text}))
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' || isC1(r) }) {
			t.Errorf("%s in JSON: %q", name, out.String())
		}
	}
}

// However JSON is cut into writes, no control character of it reaches the terminal, and the rest
// is as it was.
func TestJSONForATerminalIsSafeInAnyPieces(t *testing.T) {
	const said = "{\"a\":\"\u009b31m caf\u00e9 \u00c2 价格 \x7f\U0001f600 \u0080\u009f\u00a0 end\"}"
	const want = "{\"a\":\"\\u009b31m caf\u00e9 \u00c2 价格 \\u007f\U0001f600 \\u0080\\u009f\u00a0 end\"}"
	for size := 1; size <= len(said); size++ {
		var out bytes.Buffer
		w := safeWriter{to: &out}
		for rest := []byte(said); len(rest) > 0; {
			n := testkit.Must(w.Write(rest[:min(size, len(rest))]))(t)
			rest = rest[n:]
		}
		if out.String() != want {
			t.Fatalf("in pieces of %d bytes: %q", size, out.String())
		}
	}
}
