package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// diskShare is the disk space per byte of a history, with the search index: Claude Code repeats much in each row, and
// a rollout of Codex has every reply twice. Measured on the samples; a test compares.
var diskShare = map[session.Source]float64{
	session.SourceClaudeCode: 1.25, session.SourceCodex: 0.75, session.SourcePi: 1.4, session.SourceOpencode: 0.5,
}

const usualShare = 1.2

// diskNeeded estimates the disk that the import of a history needs.
func diskNeeded(h past) float64 {
	share, known := diskShare[h.source.Name()]
	if !known {
		share = usualShare
	}
	return float64(h.NewBytes) * share
}

// findPasts finds the history of every known program, counts what is new, and prints problems. It
// creates no database.
func (a *app) findPasts(ctx context.Context) (pasts []past, err error) {
	im := history.Importer{Now: a.now, Once: true}
	s, err := a.open(ctx, wiring{readOnly: true})
	if session.CodeOf(err) == session.Invalid { // an open that writes brings the schema of an older version up to date
		s, err = a.open(ctx, wiring{})
	}
	switch {
	case err == nil:
		defer s.Close() //nolint:errcheck // a reader
		im.Store = s
	case session.CodeOf(err) != session.NotFound:
		return nil, err
	}
	for _, src := range a.sources() {
		h := past{source: src, whose: history.Undecided}
		if h.found, h.problems, err = src.Find(ctx, nil); err != nil {
			return nil, err
		}
		a.printProblems(h.problems)
		for _, f := range h.found {
			h.size += f.Size
		}
		if h.Plan, err = im.Plan(ctx, src, h.found); err != nil {
			return nil, err
		}
		if len(h.found)+len(h.problems) > 0 {
			pasts = append(pasts, h)
		}
	}
	return pasts, nil
}

// found returns the programs that have a history.
func found(pasts []past) []past {
	return slices.DeleteFunc(slices.Clone(pasts), func(h past) bool { return len(h.found) == 0 })
}

// printPasts prints the histories, and how much of each is new.
func (a *app) printPasts(pasts []past) {
	row := func(name string, h past, disk float64) []string {
		return []string{
			name, humanize.Comma(int64(h.Sessions)), humanize.Bytes(uint64(h.size)), humanize.Comma(int64(h.New)),
			"~ " + humanize.Bytes(uint64(disk)),
		}
	}
	var rows [][]string
	var sum past
	var disk float64
	for _, h := range pasts {
		rows = append(rows, row(string(h.source.Name()), h, diskNeeded(h)))
		disk += diskNeeded(h)
		sum.Sessions, sum.size, sum.New, sum.NewBytes = sum.Sessions+h.Sessions, sum.size+h.size, sum.New+h.New,
			sum.NewBytes+h.NewBytes
	}
	if len(pasts) > 1 {
		rows = append(rows, row("together", sum, disk))
	}
	a.printTable([]column{
		{name: "source"},
		{name: "sessions", right: true},
		{name: "size", right: true},
		{name: "new", right: true},
		{name: "disk needed", right: true},
	}, rows)
	for _, h := range pasts {
		if h.Refused > 0 {
			fmt.Fprintf(a.out, "%s: %s could not be read; `sessiond import %s` retries and says why.\n",
				h.source.Name(), transcript.Counted(h.Refused, "file"), h.source.Name())
		}
	}
}
