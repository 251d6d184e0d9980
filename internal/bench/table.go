package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one line of the table.
type row struct {
	name     string
	product  timing
	baseline timing // zero: none
	against  string // what the baseline is
	unit     unit
	aims     []aim
}

type unit int

const (
	latency unit = iota // nanoseconds of one operation
	rate                // shown as operations a second
	size                // of memory, in bytes
	more                // microseconds more than the baseline
)

// aim is a figure to reach: an absolute one, or a ratio to the baseline.
type aim struct {
	atMost  float64 // ns, or bytes; 0: none
	atLeast float64 // operations a second; 0: none
	ratio   float64 // to the baseline; 0: none
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

// text gives an aim in words and whether it is met.
func (a aim) text(r *row) (words string, met bool) {
	switch {
	case a.atLeast > 0:
		return fmt.Sprintf("≥ %s", figure(1e9/a.atLeast, rate)), 1e9/r.product.wall.median() >= a.atLeast
	case a.ratio > 0:
		return fmt.Sprintf("≤ %.3g×", a.ratio), r.product.wall.over(r.baseline.wall).median() <= a.ratio
	}
	return "≤ " + figure(a.atMost, r.unit), r.product.wall.median() <= a.atMost
}

// byProcessor tells whether an aim would be met if the machine did nothing else.
func (a aim) byProcessor(r *row) bool {
	switch {
	case r.product.cpu == nil || a.atLeast > 0:
		return false
	case a.ratio > 0:
		return r.product.cpu.over(r.baseline.cpu).median() <= a.ratio
	}
	return r.product.cpu.median() <= a.atMost
}

// figure writes a value as people read it.
func figure(v float64, u unit) string {
	switch u {
	case rate:
		return fmt.Sprintf("%.0f/s", 1e9/v)
	case size:
		return fmt.Sprintf("%.1f MB", v/1e6)
	case more:
		return fmt.Sprintf("%+.1f µs", v/1e3)
	}
	switch d := time.Duration(v); {
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f µs", v/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.2f ms", v/1e6)
	}
	return fmt.Sprintf("%.2f s", v/1e9)
}

var header = []string{"measured", "sessiond", "baseline", "ratio (min–max)", "processor time", "aim", "met", "the baseline is"}

func (r *row) cells() []string {
	cells := []string{r.name, figure(r.product.wall.median(), r.unit), "", "", "", "", "", r.against}
	if r.baseline.wall != nil {
		cells[2] = figure(r.baseline.wall.median(), r.unit)
		ratios := r.product.wall.over(r.baseline.wall)
		if r.unit != more {
			cells[3] = fmt.Sprintf("%.2f (%.2f–%.2f)", ratios.median(), slices.Min(ratios), slices.Max(ratios))
			if r.baseline.cpu != nil {
				cells[4] = fmt.Sprintf("%s, %.2f×", figure(r.product.cpu.median(), latency), r.product.cpu.over(r.baseline.cpu).median())
			}
		}
	}
	var words []string
	met, nearly := true, true
	for _, a := range r.aims {
		w, ok := a.text(r)
		words = append(words, w)
		met, nearly = met && ok, nearly && (ok || a.byProcessor(r))
	}
	cells[5] = strings.Join(words, ", ")
	switch {
	case len(words) == 0:
	case met:
		cells[6] = "yes"
	case nearly:
		cells[6] = "by processor time"
	default:
		cells[6] = "no"
	}
	return cells
}

func (b *bench) print() error {
	lines := [][]string{header}
	for i := range b.rows {
		lines = append(lines, b.rows[i].cells())
	}
	widths := make([]int, len(header))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	if b.markdown {
		rule := make([]string, len(header))
		for i := range rule {
			rule[i] = strings.Repeat("-", widths[i])
		}
		lines = slices.Insert(lines, 1, rule)
	}
	for _, cells := range lines {
		for i, c := range cells {
			cells[i] = c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		}
		line := strings.TrimRight(strings.Join(cells, "  "), " ")
		if b.markdown {
			line = "| " + strings.Join(cells, " | ") + " |"
		}
		if _, err := fmt.Fprintln(b.out, line); err != nil {
			return err
		}
	}
	return nil
}
