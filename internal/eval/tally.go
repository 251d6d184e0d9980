package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

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

func newTally(name string) *tally {
	return &tally{name: name, asked: map[place]int{}, found: map[place]*[4]int{}}
}

func (t *tally) note(after int, f fact, got found) {
	for _, p := range []place{{after, f.kind}, {after, ""}} {
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
	if !got[recalled] {
		t.lost = append(t.lost, fmt.Sprintf("after %d: %s %q, asked %q", after, f.kind, f.text, f.asked))
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

func (t *tally) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %d of %d files of hidden messages are in the details", t.name, t.listed, t.files)
	if t.talks > 1 {
		fmt.Fprintf(out, "; %d conversations", t.talks)
	}
	fmt.Fprintln(out)
	w := table.NewWriter()
	w.AppendHeader(table.Row{"facts", "after", "asked", "truncation", "digest", "digest + index", "with recall"})
	for _, kind := range append(kinds(), "") {
		for after := 1; after <= compactions; after++ {
			p := place{after, kind}
			if t.asked[p] == 0 {
				continue
			}
			label := kind
			if label == "" {
				label = "all"
			}
			row := table.Row{label, after, t.asked[p]}
			for _, n := range t.found[p] {
				row = append(row, fmt.Sprintf("%.1f %%", 100*float64(n)/float64(t.asked[p])))
			}
			w.AppendRow(row)
		}
	}
	fmt.Fprintln(out, w.RenderMarkdown())
}

func (t *tally) printLost(out io.Writer) {
	slices.Sort(t.lost)
	for _, l := range t.lost {
		fmt.Fprintf(out, "%s: %s\n", t.name, l)
	}
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
