package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/text"

	"sessiond/internal/pattern"
	"sessiond/internal/transcript"
)

// printJSON writes v for programs: indented, without HTML escaping, with a newline.
func (a *app) printJSON(v any) error { return writeJSON(raw(a.out), v) }

// report prints v for programs with --json, and a text for people without.
func (a *app) report(v any, format string, args ...any) error {
	if a.flags.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

func writeJSON(out io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(escapeC1(b.Bytes()))
	return err
}

// escapeC1 writes DEL and the control characters of 8-bit terminals as JSON escapes; those
// of ASCII are escaped already.
func escapeC1(b []byte) []byte {
	if !bytes.ContainsFunc(b, isC1) {
		return b
	}
	var out bytes.Buffer
	for at := 0; at < len(b); at++ { // by bytes: b may begin and end inside of a character
		switch {
		case b[at] == 0x7f:
			out.WriteString(`\u007f`)
		case b[at] == beginsC1 && at+1 < len(b) && b[at+1] >= 0x80 && b[at+1] < 0xa0:
			at++
			fmt.Fprintf(&out, `\u%04x`, b[at])
		default:
			out.WriteByte(b[at])
		}
	}
	return out.Bytes()
}

// beginsC1 is the first byte of a C1 control character in UTF-8.
const beginsC1 = 0xc2

func isC1(r rune) bool { return r >= 0x7f && r < 0xa0 }

// cleanWriter removes from all output what acts on a terminal: what was said, and names of models and
// files, can hold it. On a terminal the colours that sessiond itself uses pass.
type cleanWriter struct {
	to    io.Writer
	color bool
	torn  []byte // the beginning of a character that the last write ended in
}

func (w *cleanWriter) Write(b []byte) (int, error) {
	all := append(w.torn, b...)
	whole := all[:len(all)-tornLength(all)]
	w.torn = slices.Clone(all[len(whole):])
	var out strings.Builder
	text := string(whole)
	if w.color {
		for at := ownColors.FindStringIndex(text); at != nil; at = ownColors.FindStringIndex(text) {
			out.WriteString(transcript.Clean(text[:at[0]]) + text[at[0]:at[1]])
			text = text[at[1]:]
		}
	}
	out.WriteString(transcript.Clean(text))
	if _, err := io.WriteString(w.to, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// raw returns what a cleanWriter writes to: for JSON and exports, which escape what they must, and for
// what moves the cursor.
func raw(w io.Writer) io.Writer {
	if c, ok := w.(*cleanWriter); ok {
		return c.to
	}
	return w
}

// ownColors are bold, faint and the colours of text. None hides text.
var ownColors = pattern.New(`\x1b\[(0|1|2|(1;)?3[1-6])m`)

// tornLength returns how many bytes at the end of b begin a character without ending it.
func tornLength(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// writeCSV writes rows whose cells no spreadsheet takes for a formula. Control characters go first: behind one, a
// formula would begin the cell.
func (a *app) writeCSV(rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = withoutFormula(printable(cell))
		}
	}
	return csv.NewWriter(raw(a.out)).WriteAll(rows)
}

// plainNumber is what begins as a formula may and is a number.
var plainNumber = pattern.New(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// withoutFormula returns a cell as text if a spreadsheet would calculate it. Rule: OWASP, CSV Injection, with the
// characters of full width, and spaces before it.
func withoutFormula(cell string) string {
	begins := strings.TrimLeft(cell, " \u00a0\u3000")
	first, _ := utf8.DecodeRuneInString(begins)
	if begins == "" || !strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) || plainNumber.MatchString(cell) {
		return cell
	}
	return "'" + cell
}

// columns is the terminal's width, or 0 for no limit.
func (a *app) columns() int {
	if a.outTTY && a.width > 0 {
		return a.width
	}
	return 0
}

// fit wraps a line to the terminal, between words. The lines after the first are indented.
func (a *app) fit(line, indent string) string {
	width := a.columns()
	if width == 0 {
		return line
	}
	return strings.Join(transcript.Wrap(line, width-len(indent)), "\n"+indent)
}

const columnGap = 2 // spaces between two columns

// column is one column of a table on the terminal.
type column struct {
	name  string
	right bool // numbers
	least int  // minimum width
	keep  int  // columns with a lower number are dropped first on a narrow terminal; 0: never
	grow  bool // is truncated to the remaining width
}

// printTable prints rows that fit the terminal: it drops less important columns and truncates
// growing ones. Through a pipe it prints everything.
func (a *app) printTable(cols []column, rows [][]string) {
	lines := [][]string{{}} // the first one has the names
	for _, c := range cols {
		lines[0] = append(lines[0], c.name)
	}
	for _, r := range rows {
		var cells []string
		for _, cell := range r {
			cells = append(cells, strings.ReplaceAll(printable(cell), "\n", " "))
		}
		lines = append(lines, cells)
	}
	widths := columnWidths(cols, lines)
	shown := fitColumns(cols, widths, a.columns())
	for n, cells := range lines {
		line := ""
		for _, i := range shown {
			cell := text.Snip(cells[i], widths[i], "…")
			space := strings.Repeat(" ", widths[i]-transcript.Width(cell))
			if n == 0 {
				cell = a.dim(cell)
			}
			if cols[i].right {
				cell, space = space+cell, ""
			}
			line += cell + space + strings.Repeat(" ", columnGap)
		}
		fmt.Fprintln(a.out, strings.TrimRight(line, " "))
	}
}

// columnWidths returns the width that each column needs.
func columnWidths(cols []column, cells [][]string) []int {
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = transcript.Width(c.name)
		for _, r := range cells {
			widths[i] = max(widths[i], transcript.Width(r[i]))
		}
	}
	return widths
}

// fitColumns chooses the columns to show and narrows the growing ones in widths. If narrowing is not
// enough it drops a column and widens the others again.
func fitColumns(cols []column, widths []int, most int) []int {
	shown := make([]int, len(cols))
	for i := range cols {
		shown[i] = i
	}
	if most <= 0 {
		return shown
	}
	whole := slices.Clone(widths)
	for {
		copy(widths, whole)
		if narrow(cols, shown, widths, most) {
			return shown
		}
		drop := -1
		for n, i := range shown {
			if cols[i].keep > 0 && (drop < 0 || cols[i].keep < cols[shown[drop]].keep) {
				drop = n
			}
		}
		if drop < 0 {
			return shown
		}
		shown = slices.Delete(shown, drop, drop+1)
	}
}

// narrow narrows the widest growing column until the row fits, and reports whether it fits.
func narrow(cols []column, shown, widths []int, most int) bool {
	for _, i := range shown {
		if cols[i].grow {
			widths[i] = min(widths[i], most)
		}
	}
	for total(shown, widths) > most {
		widest := -1
		for _, i := range shown {
			if cols[i].grow && widths[i] > cols[i].least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// total is the width of a row of the shown columns.
func total(shown, widths []int) (sum int) {
	for _, i := range shown {
		sum += widths[i] + columnGap
	}
	return sum - columnGap // the last column has no gap
}

// bold makes text bold, with colours.
func (a *app) bold(s string) string {
	if !a.color() {
		return s
	}
	return text.Bold.Sprint(s)
}

// dim makes text faint, with colours.
func (a *app) dim(s string) string {
	if !a.color() {
		return s
	}
	return text.Faint.Sprint(s)
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}
