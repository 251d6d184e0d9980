package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/connect"
	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// whoseFlag returns what --mine and --foreign say of given paths.
func whoseFlag(mine, foreign, paths bool) (history.Whose, error) {
	switch {
	case mine && foreign:
		return 0, usagef("--mine and --foreign exclude each other")
	case (mine || foreign) && !paths:
		return 0, usagef("--mine and --foreign need a SOURCE and a PATH: what lies in a program's usual places is yours")
	case mine:
		return history.Mine, nil
	case foreign:
		return history.Foreign, nil
	}
	return history.Undecided, nil
}

// askWhose asks on a terminal whose the histories at given paths are, once for each path. Without an answer they are
// not known to be the user's own.
func (a *app) askWhose(ctx context.Context, im history.Importer, pasts []past) error {
	for i := range pasts {
		h := &pasts[i]
		if h.whose != history.Undecided || len(h.roots) == 0 || !a.inTTY || !a.outTTY || a.flags.json {
			continue
		}
		decided, err := im.Decided(ctx, h.source, h.roots)
		if err != nil || decided {
			return err
		}
		var names []string
		for _, root := range h.roots {
			names = append(names, inOneLine(printable(root)))
		}
		mine, err := a.ask(ctx,
			fmt.Sprintf("Are the sessions in %s your own? Hooks tell your agents only of your own sessions. [y/N] ",
				strings.Join(names, ", ")), false)
		if err != nil {
			return err
		}
		if h.whose = history.Foreign; mine {
			h.whose = history.Mine
		}
	}
	return nil
}

// printForeign says that the sessions of an import are not known to be the user's own, and what changes that; where
// --mine or --foreign decided of stored sessions, what it decided.
func (a *app) printForeign(ctx context.Context, im history.Importer, h past, done history.Accounting) {
	decided := len(h.roots) > 0 && h.whose != history.Undecided && done.Sessions.Unchanged > 0
	if a.flags.json || done.Sessions.New+done.Sessions.Updated == 0 && !decided {
		return
	}
	if decided && h.whose == history.Mine {
		if h.source.Name() == session.SourceSessiond { // the marks of an export stay
			return
		}
		fmt.Fprintln(a.out, "The sessions of this path are your own: hooks may tell your agents of them.")
		return
	}
	foreign, err := im.AnyForeign(ctx, h.source, h.roots)
	if err == nil && foreign {
		fmt.Fprintf(a.out,
			"Hooks leave these sessions out, since they came from a path given by hand. If they are your own: "+
				"`sessiond import %s %s --mine`.\n", h.source.Name(), quoted(h.roots))
	}
}

// decideImports decides whose the histories are that an older version imported: what lies in a program's own places is
// the user's.
func (a *app) decideImports(ctx context.Context, s *store.Store) error {
	undecided, err := s.UndecidedSources(ctx)
	if err != nil || len(undecided) == 0 {
		return err
	}
	for _, src := range a.sources() {
		if !slices.Contains(undecided, src.Name()) {
			continue
		}
		err := s.DecideImports(ctx, src.Name(), func(path string) bool { return history.InPlaces(src, path) })
		if err != nil {
			return err
		}
	}
	return nil
}

func quoted(paths []string) string {
	var all []string
	for _, path := range paths {
		all = append(all, connect.QuoteShell(inOneLine(printable(path))))
	}
	return strings.Join(all, " ")
}
