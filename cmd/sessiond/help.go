package main

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// fitHelp breaks the help pages of a command and those below it where a terminal of so many
// columns ends. 0: nobody looks, and lines stay as they are.
func fitHelp(root *cobra.Command, width int) {
	if width == 0 {
		return
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", width)))
	for _, cmd := range append(root.Commands(), root) {
		cmd.Long = filled(cmp.Or(cmd.Long, cmd.Short), width)
	}
}

// filled breaks prose anew where a line of it is too long. A line that begins with a flag, or
// is indented, begins there again.
func filled(text string, width int) string {
	var out, prose []string
	flush := func() {
		out = append(out, broken(prose, width)...)
		prose = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-") {
			flush()
		}
		if line == "" || strings.HasPrefix(line, " ") {
			out = append(out, line)
			continue
		}
		prose = append(prose, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// broken gives lines of a paragraph that fit, as they were if they all did.
func broken(lines []string, width int) []string {
	fits := true
	for _, line := range lines {
		fits = fits && utf8.RuneCountInString(line) <= width
	}
	if fits {
		return lines
	}
	var out []string
	at := ""
	for _, word := range strings.Fields(strings.Join(lines, " ")) {
		switch {
		case at == "":
			at = word
		case utf8.RuneCountInString(at)+1+utf8.RuneCountInString(word) <= width:
			at += " " + word
		default:
			out, at = append(out, at), word
		}
	}
	return append(out, at)
}
