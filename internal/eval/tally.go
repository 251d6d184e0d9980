package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"sessiond/internal/session"

	"github.com/jedib0t/go-pretty/v6/table"
)

// tally counts facts that were asked for and found.
type tally struct {
	name          string
	talks         int
	files, listed int // of hidden messages, and in the records' details
	asked         map[place]int
	found         map[place]*[4]int
	lost          []string
}

// place is a cell of the table.
type place struct {
	after int // compactions
	kind  string
}

// Rows of the table that sum up.
const (
	sumClear     = "all of the first fifth" // the same facts after each compaction
	sumEvery     = "all, whatever the question's words"
	sumOtherwise = "asked in other words"
)

func newTally(name string) *tally {
	return &tally{name: name, asked: map[place]int{}, found: map[place]*[4]int{}}
}

// note counts a fact that was asked for with words that stand around it.
func (t *tally) note(after int, f *fact, got found) {
	rows := []string{sumEvery}
	if !f.unclear {
		rows = append(rows, f.kind)
		if f.first {
			rows = append(rows, sumClear)
		}
	}
	t.miss(after, f, f.asked, got)
	t.count(after, rows, got)
}

// noteOtherwise counts one that was asked for without them.
func (t *tally) noteOtherwise(after int, f *fact, got found) {
	t.miss(after, f, f.otherwise, got)
	t.count(after, []string{sumOtherwise}, got)
}

func (t *tally) miss(after int, f *fact, asked string, got found) {
	if got[recalled] {
		return
	}
	kind := f.kind
	if f.unclear {
		kind += " that the question does not tell from others"
	}
	t.lost = append(t.lost, fmt.Sprintf("after %d: %s %q, asked %q", after, kind, f.text, asked))
}

func (t *tally) count(after int, rows []string, got found) {
	for _, row := range rows {
		p := place{after, row}
		t.asked[p]++
		if t.found[p] == nil {
			t.found[p] = &[4]int{}
		}
		for i, yes := range got {
			if yes {
				t.found[p][i]++
			}
		}
	}
}

func (t *tally) add(o *tally) {
	t.talks += o.talks
	t.files += o.files
	t.listed += o.listed
	for p, n := range o.asked {
		t.asked[p] += n
		if t.found[p] == nil {
			t.found[p] = &[4]int{}
		}
		for i, k := range o.found[p] {
			t.found[p][i] += k
		}
	}
}

// share is a cell: of those asked for, how many of a hundred were found.
func (t *tally) share(p place, way int) string {
	if t.asked[p] == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(t.found[p][way])/float64(t.asked[p]))
}

func (t *tally) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %d of %d files of hidden messages are in the details", t.name, t.listed, t.files)
	if t.talks > 1 {
		fmt.Fprintf(out, "; %d conversations", t.talks)
	}
	fmt.Fprintln(out)
	w := table.NewWriter()
	w.AppendHeader(table.Row{"facts", "after", "asked", "truncation", "digest", "digest + index", "with recall"})
	for _, kind := range append(kinds(), sumClear, sumEvery, sumOtherwise) {
		for after := 1; after <= compactions; after++ {
			p := place{after, kind}
			if t.asked[p] == 0 {
				continue
			}
			row := table.Row{kind, after, t.asked[p]}
			for way := range t.found[p] {
				row = append(row, t.share(p, way))
			}
			w.AppendRow(row)
		}
	}
	fmt.Fprintln(out, w.RenderMarkdown())
}

// printGroups puts several tallies side by side, a line each.
func printGroups(out io.Writer, groups []*tally) {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"conversations", "facts", "asked", "in the digest after 5", "recall after 1", "2", "5"})
	for _, t := range groups {
		for _, kind := range []string{kindConstraint, sumClear, sumEvery, sumOtherwise} {
			if last := (place{compactions, kind}); t.asked[last] > 0 {
				w.AppendRow(table.Row{
					fmt.Sprintf("%s (%d)", t.name, t.talks), kind, t.asked[last], t.share(last, digested),
					t.share(place{1, kind}, recalled), t.share(place{2, kind}, recalled), t.share(last, recalled),
				})
			}
		}
	}
	fmt.Fprintf(out, "\n%s\n", w.RenderMarkdown())
}

func (t *tally) printLost(out io.Writer) {
	slices.Sort(t.lost)
	for _, l := range t.lost {
		fmt.Fprintf(out, "%s: %s\n", t.name, l)
	}
}

func (p *pace) print(out io.Writer) {
	if len(p.took) == 0 {
		return
	}
	slices.Sort(p.took)
	at := func(share int) time.Duration { return p.took[(len(p.took)-1)*share/100].Round(10 * time.Microsecond) }
	fmt.Fprintf(out, "\n%d recalls within %s took %s in the middle, %s at 95 %%; %d were cut off (%.1f %%).\n",
		len(p.took), turnWaits, at(50), at(95), p.cutOff, 100*float64(p.cutOff)/float64(len(p.took)))
}

func unmarshal(raw session.JSON, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("details: %w", err)
	}
	return nil
}
