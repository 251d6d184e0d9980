package transcript

import (
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Width returns the columns of s on a terminal. s must hold no control characters.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += text.RuneWidth(r)
	}
	return n
}

// Truncate cuts s to width columns, with an ellipsis for the rest.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		w := text.RuneWidth(r)
		if n+w > width-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		n += w
	}
	return s
}

// OneLine returns the beginning of s as one clean line of at most width columns.
func OneLine(s string, width int) string {
	if enough := 8*width + 64; len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "…"
	}
	return Truncate(strings.Join(strings.Fields(Clean(s)), " "), width)
}

// Wrap breaks the lines of s to width columns, at spaces where there are some, and keeps
// indentation. Tabs become spaces up to the next multiple of eight.
func Wrap(s string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapLine(expandTabs(line), max(width, 8))...)
	}
	return lines
}

func wrapLine(line string, width int) []string {
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	rest := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(rest)]
	if len(indent) > width/2 {
		indent = ""
	}
	var lines []string
	for {
		cut := lineEnd(rest, width-len(indent))
		lines = append(lines, indent+strings.TrimRight(rest[:cut], " "))
		rest = strings.TrimLeft(rest[cut:], " ")
		if rest == "" {
			return lines
		}
	}
}

// lineEnd returns the end of a line of width columns: before the word that does not fit, or inside it
// if it is alone. Wide scripts break between any two characters.
func lineEnd(line string, width int) int {
	columns, chance := 0, 0
	for i, r := range line {
		w := text.RuneWidth(r)
		if columns+w > width && i > 0 {
			if r == ' ' || w == 2 || chance == 0 {
				return i
			}
			return chance
		}
		columns += w
		switch {
		case r == ' ':
			chance = i
		case w == 2:
			chance = i + len(string(r))
		}
	}
	return len(line)
}

func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	column := 0
	for _, r := range line {
		if r == '\t' {
			n := 8 - column%8
			b.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		}
		b.WriteRune(r)
		column += text.RuneWidth(r)
	}
	return b.String()
}
