package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// diskShare is how much a byte of a transcript takes on disk, the search index included, as
// the transcripts of pi do.
const diskShare = 2.2

// findPasts looks for the history of every known program and for what of it is new. It makes
// no database where there is none.
func (a *app) findPasts(ctx context.Context) (pasts []past, err error) {
	unread := func(history.Source, history.Found) (bool, error) { return true, nil }
	s, err := a.open(ctx, true, a.log(zerolog.WarnLevel))
	switch {
	case err == nil:
		defer s.Close() //nolint:errcheck // a reader
		unread = fresh(ctx, s)
	case session.CodeOf(err) != session.NotFound:
		return nil, err
	}
	for _, src := range a.sources() {
		h := past{source: src}
		var problems []history.Problem
		if h.found, problems, err = src.Find(ctx, nil); err != nil {
			return nil, err
		}
		for _, p := range problems {
			fmt.Fprintf(a.err, "sessiond: %s\n", printable(problemLine(p)))
		}
		for _, f := range h.found {
			h.size += f.Size
			isNew, err := unread(src, f)
			if err != nil {
				return nil, err
			}
			if isNew {
				h.fresh++
				h.freshSize += f.Size
			}
		}
		if len(h.found) > 0 {
			pasts = append(pasts, h)
		}
	}
	return pasts, nil
}

// fresh asks the store what it has not read yet.
func fresh(ctx context.Context, s *store.Store) func(history.Source, history.Found) (bool, error) {
	im := history.Importer{Store: s}
	return func(src history.Source, f history.Found) (bool, error) { return im.Unread(ctx, src, f) }
}

func (a *app) printPasts(pasts []past) {
	rows := make([][]string, len(pasts))
	for i, h := range pasts {
		rows[i] = []string{
			string(h.source.Name()), humanize.Comma(int64(len(h.found))), humanize.Bytes(uint64(h.size)), humanize.Comma(int64(h.fresh)),
			"~ " + humanize.Bytes(uint64(float64(h.freshSize)*diskShare)),
		}
	}
	a.printTable([]column{
		{name: "source"}, {name: "sessions", right: true}, {name: "size", right: true}, {name: "new", right: true}, {name: "disk needed", right: true},
	}, rows)
}
