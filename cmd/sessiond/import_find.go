package main

import (
	"context"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// diskShare is how much a byte of a transcript takes on disk, the search index included, as
// the transcripts of pi do.
const diskShare = 2.2

// findPasts looks for the history of every known program and for what of it is new. It makes
// no database where there is none.
func (a *app) findPasts(ctx context.Context) (pasts []past, err error) {
	fresh := func(src history.Source, f history.Found) (all, fresh int, err error) {
		all = history.CountSessions(ctx, src, f)
		return all, all, nil
	}
	s, err := a.open(ctx, true, a.log(zerolog.WarnLevel))
	switch {
	case err == nil:
		defer s.Close() //nolint:errcheck // a reader
		im := history.Importer{Store: s}
		fresh = func(src history.Source, f history.Found) (int, int, error) { return im.Fresh(ctx, src, f) }
	case session.CodeOf(err) != session.NotFound:
		return nil, err
	}
	for _, src := range a.sources() {
		h := past{source: src}
		var problems []history.Problem
		if h.found, problems, err = src.Find(ctx, nil); err != nil {
			return nil, err
		}
		a.printProblems(problems)
		for _, f := range h.found {
			h.size += f.Size
			all, isNew, err := fresh(src, f)
			if err != nil {
				return nil, err
			}
			h.sessions += all
			if isNew > 0 {
				h.fresh += isNew
				h.freshSize += f.Size
			}
		}
		if len(h.found) > 0 {
			pasts = append(pasts, h)
		}
	}
	return pasts, nil
}

// printPasts shows what there is, and what of it is new.
func (a *app) printPasts(pasts []past) {
	row := func(name string, h past) []string {
		return []string{
			name, humanize.Comma(int64(h.sessions)), humanize.Bytes(uint64(h.size)), humanize.Comma(int64(h.fresh)),
			"~ " + humanize.Bytes(uint64(float64(h.freshSize)*diskShare)),
		}
	}
	var rows [][]string
	var sum past
	for _, h := range pasts {
		rows = append(rows, row(string(h.source.Name()), h))
		sum.sessions, sum.size, sum.fresh, sum.freshSize = sum.sessions+h.sessions, sum.size+h.size, sum.fresh+h.fresh, sum.freshSize+h.freshSize
	}
	if len(pasts) > 1 {
		rows = append(rows, row("together", sum))
	}
	a.printTable([]column{
		{name: "source"}, {name: "sessions", right: true}, {name: "size", right: true}, {name: "new", right: true}, {name: "disk needed", right: true},
	}, rows)
}
