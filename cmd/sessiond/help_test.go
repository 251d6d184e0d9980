package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"sessiond/internal/testkit"
)

// Every help page fits a terminal: prose and flags are broken between words. Examples are to be
// copied and stay whole.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, width := range []int{50, 80, 200} {
		whole := (&app{env: &env{outTTY: true, width: width}}).root()
		for _, cmd := range append(whole.Commands(), whole) {
			var page bytes.Buffer
			cmd.SetOut(&page)
			testkit.Check(t, cmd.Help())
			said, _, _ := strings.Cut(page.String(), "Global Flags:")
			for line := range strings.Lines(said) {
				line = strings.TrimRight(line, "\n")
				example := strings.HasPrefix(line, "  sessiond ") || strings.HasPrefix(line, "  eval ") || strings.HasPrefix(line, "  source ")
				list := cmd == whole && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "Use \""))
				if n := utf8.RuneCountInString(line); n > width && !example && !list {
					t.Errorf("%s in %d columns: %d in %q", cmd.Name(), width, n, line)
				}
			}
		}
	}
	if got := filled("One line.\n--two is\na flag of it.\n\n  kept as it is", 13); got != "One line.\n--two is\na flag of it.\n\n  kept as it is" {
		t.Errorf("what fits was broken: %q", got)
	}
}
