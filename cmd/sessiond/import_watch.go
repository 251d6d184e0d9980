package main

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"sessiond/internal/config"
	"sessiond/internal/history"
	"sessiond/internal/jobs"
	"sessiond/internal/session"
)

// follower returns a follower that imports what sources write, with pauses while a daemon serves.
func (a *app) follower(s *services, sources []history.Source, serving bool) *history.Follower {
	return &history.Follower{
		Importer: &history.Importer{Store: s.store, Price: s.catalogue.Price, Serving: serving},
		Sources:  sources, Paths: s.store.ImportedPaths, Now: a.now,
	}
}

// followHistories keeps what was imported once up to date, as long as the daemon runs.
func (a *app) followHistories(s *services, cfg *config.Config, runner *jobs.Runner, log zerolog.Logger) {
	if !cfg.Import.Follow {
		return
	}
	history.RemoveLeftovers()
	f := a.follower(s, a.sources(), true)
	f.Done = func(source session.Source, done history.Accounting) {
		if done.Sessions.New+done.Sessions.Updated > 0 {
			runner.Changed("")
			log.Debug().Str("source", string(source)).Int("new", done.Sessions.New).Int("updated", done.Sessions.Updated).
				Int("records", done.Records.Imported+done.Records.Raw).Msg("imported")
		}
		for _, p := range done.Errors {
			log.Warn().Str("source", string(source)).Msg("not imported: " + printable(problemLine(p)))
		}
	}
	f.Failed = func(err error) { log.Error().Err(err).Msg("following histories: the store failed; trying again") }
	runner.Run(func(ctx context.Context) {
		if err := f.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("histories are followed no longer")
		}
	})
}

// watchPasts goes on with what was imported until somebody stops it.
func (a *app) watchPasts(ctx context.Context, s *services, pasts []past) error {
	f := a.follower(s, nil, a.daemonServes(ctx, a.cfg))
	for _, h := range pasts {
		f.Sources = append(f.Sources, h.source)
	}
	f.Done = func(source session.Source, done history.Accounting) {
		switch n := done.Records.Imported + done.Records.Raw; {
		case n == 0:
		case a.flags.json:
			_ = a.printJSON(done) // whoever reads it may have gone
		default:
			fmt.Fprintf(a.out, "%s  %s: %s of %s\n", a.now().In(s.store.Zone()).Format("15:04:05"), source, plural(int64(n), "record", "records"),
				plural(int64(max(done.Sessions.New+done.Sessions.Updated, 1)), "session", "sessions"))
		}
		a.printProblems(done.Errors)
		if _, err := s.index.CatchUp(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(a.err, "sessiond: the search index is behind:", printable(err.Error()))
		}
	}
	f.Failed = func(err error) { fmt.Fprintln(a.err, "sessiond:", printable(err.Error())+"; trying again") }
	if !a.flags.json {
		fmt.Fprintln(a.out, "Following. Ctrl-C stops it.")
	}
	return f.Run(ctx)
}
