package main

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"sessiond/internal/transcript"

	"github.com/spf13/cobra"
)

// helpTemplate is cobra's with the examples first: most readers look for one, and need no more.
const helpTemplate = `{{with .Example}}Examples:
{{.}}

{{end}}{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`

// fitHelp orders the help pages of a command and its subcommands, and wraps them to a width; 0: no wrapping.
func fitHelp(root *cobra.Command, width int) {
	root.SetHelpTemplate(helpTemplate)
	const examples = "{{if .HasExample}}\n\nExamples:\n{{.Example}}{{end}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), examples, "", 1))
	if width == 0 {
		return
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", width)))
	for _, cmd := range append(root.Commands(), root) {
		cmd.Long = filled(cmp.Or(cmd.Long, cmd.Short), width)
	}
}

// filled wraps paragraphs with a line that is too long. A line that begins with a flag, or is
// indented, begins a new paragraph.
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

// broken wraps the lines of a paragraph, unless they all fit.
func broken(lines []string, width int) []string {
	fits := true
	for _, line := range lines {
		fits = fits && utf8.RuneCountInString(line) <= width
	}
	if fits {
		return lines
	}
	return transcript.Wrap(strings.Join(lines, " "), width)
}
