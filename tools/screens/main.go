// Command screens draws screens of a terminal, one after the other, as one SVG without scripts:
//
//	screens SECONDS FILE... > out.svg
//
// Each FILE is what `tmux capture-pane -ep` prints; it is shown for SECONDS. A viewer without animations, or one whose
// user wants less motion, shows the first screen alone. scripts/pictures calls it.
package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	cellWidth, cellHeight = 8.4, 18.0 // pixels
	margin                = 14.0
	background            = "#16181d"
)

// colors are those of the escapes 30 to 37, on the background.
var colors = [8]string{"#3b4252", "#f07178", "#a3d977", "#e6c07b", "#7aa2f7", "#d58fff", "#6fd3e0", "#d5d8df"}

// style is how the following characters look.
type style struct {
	color                  int // 0 to 7
	bold, faint, underline bool
}

// run are characters of one line that look the same; column is the first one's.
type run struct {
	style
	column int
	text   string
}

func main() {
	if err := draw(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

func draw(w io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: screens SECONDS FILE... > out.svg")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil || seconds <= 0 {
		return fmt.Errorf("SECONDS is %q, not a number above 0", args[0])
	}
	var screens [][][]run
	for _, name := range args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		screen, err := parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		screens = append(screens, screen)
	}
	_, err = w.Write(svg(screens, seconds))
	return err
}

var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// parse returns the runs of each line. Another escape than one of looks is an error: the picture would be wrong.
func parse(text string) (lines [][]run, err error) {
	now := style{color: 7}
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		var runs []run
		column := 0
		add := func(s string) {
			if s != "" {
				runs = append(runs, run{now, column, s})
				column += utf8.RuneCountInString(s)
			}
		}
		line = strings.TrimRight(line, "\n")
		from := 0
		for _, at := range escape.FindAllStringSubmatchIndex(line, -1) {
			add(line[from:at[0]])
			if now, err = now.after(line[at[2]:at[3]]); err != nil {
				return nil, err
			}
			from = at[1]
		}
		add(line[from:])
		lines = append(lines, runs)
	}
	if strings.Contains(escape.ReplaceAllString(text, ""), "\x1b") {
		return nil, errors.New("there is an escape that is not one of looks")
	}
	return lines, nil
}

// after returns the style after the numbers of an escape.
func (s style) after(numbers string) (style, error) {
	for _, n := range strings.Split(numbers, ";") {
		switch n {
		case "", "0":
			s = style{color: 7}
		case "1":
			s.bold = true
		case "2":
			s.faint = true
		case "4":
			s.underline = true
		case "22":
			s.bold, s.faint = false, false
		case "24":
			s.underline = false
		case "39":
			s.color = 7
		case "49":
		default:
			if len(n) != 2 || n[0] != '3' || n[1] > '7' {
				return s, fmt.Errorf("the escape %q is not known here", n)
			}
			s.color = int(n[1] - '0')
		}
	}
	return s, nil
}

func svg(screens [][][]run, seconds float64) []byte {
	columns, rows := 0, 0
	for _, lines := range screens {
		rows = max(rows, len(lines))
		for _, runs := range lines {
			for _, r := range runs {
				columns = max(columns, r.column+utf8.RuneCountInString(strings.TrimRight(r.text, " ")))
			}
		}
	}
	width, height := float64(columns)*cellWidth+2*margin, float64(rows)*cellHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" xml:space="preserve" font-size="14" `+
		`font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace">
<style>
text { white-space: pre }
.screen { visibility: hidden; animation: show %gs step-end infinite }
.screen:first-of-type { visibility: visible }
@keyframes show { 0%% { visibility: visible } %.3f%% { visibility: hidden } 100%% { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { .screen { animation: none } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
`, width, height, seconds*float64(len(screens)), 100/float64(len(screens)), background)
	for i, lines := range screens {
		fmt.Fprintf(&b, `<g class="screen" style="animation-delay: %gs">`+"\n", seconds*float64(i))
		for row, runs := range lines {
			for _, r := range runs {
				r.write(&b, row)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// write adds the run as a text of exactly its columns' width, whatever font the viewer has.
func (r run) write(b *bytes.Buffer, row int) {
	trimmed := strings.TrimLeft(r.text, " ")
	column := r.column + len(r.text) - len(trimmed)
	if trimmed = strings.TrimRight(trimmed, " "); trimmed == "" {
		return
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"`,
		margin+float64(column)*cellWidth, margin+float64(row)*cellHeight+13,
		float64(utf8.RuneCountInString(trimmed))*cellWidth, colors[r.color])
	if r.bold {
		b.WriteString(` font-weight="700"`)
	}
	if r.faint {
		b.WriteString(` opacity="0.6"`)
	}
	if r.underline {
		b.WriteString(` text-decoration="underline"`)
	}
	b.WriteByte('>')
	_ = xml.EscapeText(b, []byte(trimmed)) // a buffer takes everything
	b.WriteString("</text>\n")
}
