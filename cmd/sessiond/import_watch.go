package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"sessiond/internal/config"
	"sessiond/internal/history"
	"sessiond/internal/jobs"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// historyFollower returns what imports new messages and new files from imported places, and stored transcripts.
func (a *app) historyFollower(s *opened, cfg *config.Config, runner *jobs.Runner, log zerolog.Logger,
) *history.Follower {
	history.RemoveLeftovers()
	im := a.importer(s)
	im.Serving, im.Whose = true, history.Undecided
	f := history.Follower{
		Importer: &im,
		Paths:    s.store.ImportedPaths, Now: a.now,
	}
	if cfg.Import.Follow {
		f.Sources = a.sources()
	}
	for _, program := range a.lineSources() {
		f.Sources = append(f.Sources, &history.Stored{Program: program, Store: s.store})
	}
	long := longSessions{}
	f.Importer.Changed = long.noteFor(s)
	f.Done = func(source session.Source, done history.Accounting) {
		for id := range long {
			runner.Soft(id)
		}
		clear(long)
		if done.Sessions.New+done.Sessions.Updated > 0 {
			runner.Changed("")
			level := zerolog.DebugLevel // each message of a session that goes on is one import
			if done.Sessions.New > 0 {
				level = zerolog.InfoLevel
			}
			log.WithLevel(level).Str("source", string(source)).Int("new", done.Sessions.New).Int("updated",
				done.Sessions.Updated).
				Int("records", done.Records.Imported+done.Records.Raw).Msg("imported")
		}
		for _, p := range done.Errors {
			log.Warn().Str("source", string(source)).Msg("not imported: " + printable(problemLine(p)))
		}
	}
	f.Failed = logOnce(log, "following histories: the store failed; retrying")
	return &f
}

// follow runs a follower beside the daemon's requests.
func follow(f *history.Follower, runner *jobs.Runner, log zerolog.Logger) {
	runner.Run(func(ctx context.Context) {
		if err := f.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("following histories stopped")
		}
	})
}

// logOnce logs an error unless it is the one before: each source meets the same one, every few seconds.
func logOnce(log zerolog.Logger, message string) func(error) {
	before := ""
	return func(err error) {
		if err.Error() != before {
			log.Error().Err(err).Msg(message)
		}
		before = err.Error()
	}
}

// watchPasts imports new messages and files from the imported places until the user stops it.
func (a *app) watchPasts(ctx context.Context, s *opened, pasts []past) error {
	im := a.importer(s)
	im.Serving, im.Whose = a.daemonServes(ctx), history.Undecided
	f := history.Follower{Importer: &im, Now: a.now}
	long := longSessions{}
	f.Importer.Changed = long.noteFor(s)
	roots := map[session.Source][]string{}
	for _, h := range pasts {
		f.Sources = append(f.Sources, h.source)
		if roots[h.source.Name()] = h.roots; len(h.roots) == 0 {
			roots[h.source.Name()] = h.source.Places()
		}
	}
	f.Paths = func(_ context.Context, source session.Source) ([]string, error) {
		return slices.Clone(roots[source]), nil
	}
	f.Done = func(source session.Source, done history.Accounting) {
		switch n := done.Records.Imported + done.Records.Raw; {
		case n == 0:
		case a.flags.json:
			_ = a.printJSON(done) // the reader may have gone
		default:
			fmt.Fprintf(a.out, "%s  %s: %s of %s\n", a.now().In(s.store.Zone()).Format("15:04:05"), source,
				transcript.Counted(n, "record"),
				transcript.Counted(max(done.Sessions.New+done.Sessions.Updated, 1), "session"))
		}
		a.printProblems(done.Errors)
		if _, err := s.index.CatchUp(ctx); err != nil && ctx.Err() == nil {
			a.warn("the search index is behind: %s", err)
		}
		a.stageDigests(ctx, s, long)
	}
	f.Failed = func(err error) { a.warn("%s; retrying", err) }
	if !a.flags.json {
		fmt.Fprintln(a.out, "Following new messages. Ctrl-C stops it.")
	}
	return f.Run(ctx)
}
