package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/config"
	"sessiond/internal/contextmgr"
	"sessiond/internal/engine"
	"sessiond/internal/jobs"
	"sessiond/internal/memory"
	"sessiond/internal/otlp"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/transcript"
	"sessiond/internal/usage"
	"sessiond/internal/web"
	"sessiond/internal/web/answers"
	"sessiond/internal/web/api"
	"sessiond/internal/web/guard"
	"sessiond/internal/web/pages"
)

func (a *app) serveCommand() *cobra.Command {
	var listen, socket, preset string
	var noAuth, begin bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon",
		Example: "  sessiond serve\n  sessiond serve --listen 127.0.0.1:8000",
		Long: "Serves the HTTP API on loopback and on a Unix socket until Ctrl-C or SIGTERM. It also keeps\n" +
			"imported histories and the search index up to date. Every acknowledged write survives a stop;\n" +
			"after it the database file alone is a complete backup. A second `serve` on the same database says\n" +
			"where the first one is and ends. `sessiond service install` keeps the daemon running.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.CheckListen(listen); err != nil {
				return usagef("--listen %w", err)
			}
			if socket != "" && socket != config.SocketOff {
				socket = a.absolute(socket)
			}
			given := map[string]any{}
			for name, value := range map[string]string{"listen": listen, "socket": socket} {
				if cmd.Flags().Changed(name) {
					given[name] = value
				}
			}
			if cmd.Flags().Changed("preset") {
				given["compaction.preset"] = preset
			}
			cfg, err := a.load(given)
			if err != nil {
				return err
			}
			if noAuth && !config.Loopback(cfg.Listen) {
				return usagef("--no-auth is allowed only on loopback, not on %s", cfg.Listen)
			}
			if begin && engine.IsPostgres(cfg.DB) {
				return usagef("--new begins a new file; on PostgreSQL, create an empty database")
			}
			return a.serve(cmd.Context(), cfg, noAuth, begin)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "", "TCP `ADDRESS` (default 127.0.0.1:7433; '' disables TCP)")
	fl.StringVar(&socket, "socket", "", "`PATH` of the Unix socket ('off' disables it)")
	wordFlag(cmd, &preset, "preset", "compaction preset: "+strings.Join(contextmgr.PresetNames(), ", "),
		contextmgr.PresetNames()...)
	fl.BoolVar(&noAuth, "no-auth", false, "require no token on TCP; allowed only on loopback")
	fl.BoolVar(&begin, "new", false, "begin a new database beside the log of a lost one; only where no database is")
	return cmd
}

// memoryLimit is a soft limit: twice what answers may reserve.
const memoryLimit = 256 << 20

// tuneCollector collects less often while the heap is small: little of what an append allocates lives on, and fewer
// collections save a tenth of its CPU.
func tuneCollector() {
	debug.SetGCPercent(200)
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // GOMEMLIMIT is not set: collect more often before the heap is large
		debug.SetMemoryLimit(memoryLimit)
	}
}

func (a *app) serve(ctx context.Context, cfg *config.Config, noAuth, begin bool) (err error) {
	log, err := a.daemonLog(cfg)
	if err != nil {
		return err
	}
	other, release, err := a.claimDatabase(ctx, cfg)
	switch {
	case err != nil:
		return err
	case other != nil && begin:
		return session.Errorf(session.Conflict, "process %d, sessiond %s, serves %s: stop it before you begin a new database",
			other.PID, other.Version.Version, cfg.DB)
	case other != nil:
		return a.printRunning(cfg, other)
	}
	defer release()
	tuneCollector()
	token, _, err := guard.EnsureToken(cfg.TokenFile)
	if err != nil {
		return err
	}
	feed := api.NewFeed()
	var runner *jobs.Runner // it needs the database, whose commits wake it
	a.readHostLists()
	s, err := a.wire(ctx, wiring{log: &log, begin: begin, remote: true, wrote: feed.Nudge, onSoft: func(id session.ID) {
		runner.Soft(id)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if h := s.store.Health(); h.Err != nil {
		log.Error().Str("state", string(h.State)).Err(h.Err).Msg("the database accepts no writes")
	}
	if err := s.recordStart(ctx); err != nil {
		return err
	}
	backups := backupsOf(cfg).Dir
	if err := engine.RemoveLeftCopies(backups); err != nil {
		log.Warn().Err(err).Msg("an unfinished backup stays")
	}
	purger := s.purger(cfg, log)
	purger.Purged = s.contexts.Forget
	newest, err := s.store.Newest(ctx)
	if err != nil {
		return err
	}
	known, err := s.store.KnownTime(ctx, jobs.SettledBefore(a.now()))
	if err != nil {
		return err
	}
	keeper := s.keeper(cfg, purger, a, log)
	begun := time.Now()
	keeper.Doubt = jobs.NewDoubt(a.now(), known, func() time.Duration { return time.Since(begun) }, log)
	if !engine.IsPostgres(cfg.DB) { // there, another daemon's clients may have just made one
		// drafts last a day, or until the next start
		if _, err := s.store.ForgetDrafts(ctx, a.now()); err != nil && !full(err) {
			return err
		}
	}
	spans := a.spansOf(cfg, s.store, log)
	runner = jobs.New(jobs.Config{
		Spans:  spans,
		Titles: s.titles,
		Store:  s.store, Index: s.index, Contexts: s.contexts, Log: log, Now: a.now, Zone: cfg.Zone(), Noticed: feed.Nudge,
		Daily:   daily(cfg, keeper, log),
		Budget:  budgetOf(cfg, s.store, a.now, log),
		Backups: backupsOf(cfg),
	})
	var selects *analytics.Process
	if !engine.IsPostgres(cfg.DB) { // which limits statements itself
		selects = analytics.NewProcess(cfg.DB, answerSQL)
	}
	room := &answers.Budget{} // which the API and the pages share
	routes := cfg.Rules()
	follower := a.historyFollower(s, cfg, runner, log)
	handler := api.New(api.Deps{
		SQL: selects, Answers: room,
		Store: s.store, Contexts: s.contexts, Search: s.index,
		Reports:   analytics.New(s.store.Reader(), s.store.Zone()).WithSQL(s.store.SQLReader()),
		Catalogue: s.catalogue, Purges: purger, Events: feed, Stopping: ctx.Done(), Routing: routes, Log: log,
		Version: buildVersion(),
		Spans:   spans,
		Changed: runner.Changed, Reported: runner.Reported, Answered: runner.Answered, Run: runner.Run,
		BackupDir: backups, Now: a.now, Notice: s.notice, ExcludeProjects: cfg.ExcludeProjects,
		HookSettings: hookSettings(cfg),
		LineSources:  a.lineSourceNames(), LinesStored: follower.Note,
	})
	runner.Start()
	defer runner.Stop()
	finishEarlierWork(runner, keeper, log)
	follow(follower, runner, log)
	socket := cfg.Socket
	if socket == config.SocketOff {
		socket = ""
	}
	for _, w := range cfg.Warnings() {
		log.Warn().Msg(w)
	}
	door := guard.New(guard.Options{
		Token: token, NoAuth: noAuth, Hosts: cfg.Hosts, Open: api.Open,
		Named: s.store.ScopeOfToken,
	})
	shown := pages.New(pages.Config{
		Store: s.store, Search: s.index, Contexts: s.contexts, Reports: analytics.New(s.store.Reader(), s.store.Zone()),
		Models: s.catalogue.Model,
		Alarm:  func(ctx context.Context) string { return a.alarmOf(ctx, s.store, cfg) },
		Key:    routes.Canonical,
		Budget: cfg.Budget.Limits(),
		Guard:  door, API: handler, Answers: room, Now: a.now, Zone: cfg.Zone(), Log: log,
	})
	door.Admit(shown)
	return web.Serve(ctx, web.Listen{
		Address: cfg.Listen, Socket: socket, Handler: shown.Before(a.withMCP(handler, s, cfg, log)), Log: log, Guard: door,
		Ready: func(address, socket string) {
			shown.SetAddress(address)
			a.writeDaemonFile(cfg, address, socket)
			a.greet(cfg, s, address, socket, noAuth)
			if s.notice != "" {
				fmt.Fprintln(a.out, "\nNote: "+s.notice)
			}
			if newest.IsZero() {
				runner.Run(func(ctx context.Context) { a.greetFirst(ctx, log) })
			}
		},
	})
}

// finishEarlierWork ends in the background what an earlier daemon began, and removes keys that are too old.
func finishEarlierWork(runner *jobs.Runner, keeper *jobs.Keeper, log zerolog.Logger) {
	runner.Run(func(ctx context.Context) {
		if err := keeper.Purger.Resume(ctx); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("an interrupted purge could not be finished")
		}
	})
	runner.Run(func(ctx context.Context) {
		if err := keeper.ForgetKeys(ctx); err != nil && ctx.Err() == nil && !full(err) {
			log.Error().Err(err).Msg("old idempotency keys could not be removed")
		}
	})
}

// recordCatalogue writes the catalogue, and prices the stored calls anew if prices changed.
func recordCatalogue(ctx context.Context, s *store.Store, c *usage.Catalogue) (repriced int64, err error) {
	return s.SetCatalogue(ctx, c.Models(), c.Prices(), c.PriceImported)
}

// recordStart writes what each start of the daemon writes. On a full disk the next start does it: what
// is stored can be read meanwhile.
func (s *opened) recordStart(ctx context.Context) error {
	_, err := s.store.FailRunning(ctx, session.ReasonBrokenOff)
	if err == nil {
		_, err = recordCatalogue(ctx, s.store, s.catalogue)
	}
	if full(err) {
		return nil
	}
	return err
}

func full(err error) bool { return session.CodeOf(err) == session.StorageFull }

// budgetOf returns the job that posts to the webhook of the budget; nil where either is not configured.
func budgetOf(cfg *config.Config, s *store.Store, now func() time.Time, log zerolog.Logger) *jobs.Budget {
	limits := cfg.Budget.Limits()
	if cfg.Budget.Webhook == "" || !limits.IsSet() {
		return nil
	}
	reports := analytics.New(s.Reader(), s.Zone())
	return &jobs.Budget{
		Webhook: cfg.Budget.Webhook, Told: filepath.Join(cfg.DataDir(), "budget.json"), Log: log,
		Spent: func(ctx context.Context) ([]analytics.Spent, error) { return reports.Spent(ctx, limits, now()) },
	}
}

// spansOf returns what sends spans to a collector; nil if none is configured.
func (a *app) spansOf(cfg *config.Config, s *store.Store, log zerolog.Logger) *otlp.Exporter {
	if cfg.OTLP.Endpoint == "" {
		return nil
	}
	hidden := memory.NewScope(nil, cfg.ExcludeProjects)
	return &otlp.Exporter{
		Endpoint: cfg.OTLP.Endpoint, Header: otlp.HeadersOf(a.environ), Content: cfg.OTLP.Content == "on",
		Excludes: func(project, directory string) bool {
			return hidden.Excludes(&session.Session{Project: project, Directory: directory})
		},
		Kept: filepath.Join(cfg.DataDir(), "otlp.json"), Ledger: s, Version: buildVersion().Version, Log: log, Now: a.now,
	}
}

// daily returns the daemon's daily work: what is removed by age, and scrubbing if its hour is configured.
func daily(cfg *config.Config, keeper *jobs.Keeper, log zerolog.Logger) []jobs.Daily {
	work := []jobs.Daily{{Hour: cfg.Retention.AtHour, Do: func(ctx context.Context) {
		if _, err := keeper.Apply(ctx); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("retention failed")
		}
	}}}
	if cfg.Scrub.AtHour == nil {
		return work
	}
	return append(work, jobs.Daily{Hour: *cfg.Scrub.AtHour, Do: func(ctx context.Context) {
		switch scrubbed, err := keeper.Purger.Scrub(ctx); {
		case err != nil && ctx.Err() == nil:
			log.Error().Err(err).Msg("scrubbing the database files failed")
		case scrubbed:
			log.Info().Msg("the database files were scrubbed: no byte of purged sessions is left in them")
		}
	}})
}

// greet prints the daemon's addresses.
func (a *app) greet(cfg *config.Config, s *opened, address, socket string, noAuth bool) {
	line := func(name, value string) { fmt.Fprintf(a.out, "  %-9s %s\n", name, value) }
	fmt.Fprintln(a.out, "sessiond is ready. Ctrl-C stops it.")
	if address != "" {
		line("http", "http://"+address)
		line("page", "`sessiond open` opens it in a browser")
	}
	if socket != "" {
		line("socket", socket)
	}
	line("database", engine.PrintableName(cfg.DB))
	if noAuth {
		line("token", "not needed (--no-auth): every program and user of this host may read and change all conversations")
	} else if address != "" {
		line("token", cfg.TokenFile)
	}
	line("summaries", a.summariesText(cfg, s))
}

// The size of the summary whose price the start shows, in tokens: a context of 100,000 tokens that is compacted.
const shownSpan, shownSummary = 80_000, 2000

// summariesText says who writes summaries, and what an API key in the environment could do.
func (a *app) summariesText(cfg *config.Config, s *opened) string {
	price := func(asks summarize.Config) string {
		cost := s.summaryCost(asks, a.now)(shownSpan, shownSummary)
		if cost == nil {
			return "an unknown price"
		}
		return "about " + transcript.Dollars(*cost) + " each"
	}
	if chosen := cfg.Summarizer; chosen.Provider != digest.ExtractiveProvider {
		asks := modelOf(chosen)
		return fmt.Sprintf("%s writes them, for %s; a digest without a model serves until it has answered", asks.ModelName(),
			price(asks))
	}
	const offline = "made on this host, without a model"
	for _, provider := range []string{"gemini", "openai"} {
		variable := strings.ToUpper(provider) + "_API_KEY"
		if a.getenv(variable) == "" {
			continue
		}
		asks := summarize.Config{Provider: provider}
		return fmt.Sprintf("%s. %s is set but not used: set SESSIOND_SUMMARIZER_PROVIDER=%s, and %s writes them, for %s",
			offline, variable, provider, asks.ModelName(), price(asks))
	}
	return offline
}

// greetFirst says, once a daemon without sessions is ready, which histories it could have.
func (a *app) greetFirst(ctx context.Context, log zerolog.Logger) {
	pasts, err := a.findPasts(ctx)
	if err != nil {
		log.Warn().Err(err).Msg("the histories on this host could not be listed")
		return
	}
	fmt.Fprintln(a.out)
	a.printFound(pasts)
	_ = a.printNext("To begin:", [][2]string{ // the daemon goes on without a reader
		{"sessiond import", "import the histories of your agents; then the daemon follows them"},
		{"sessiond connect", "let your agents search their sessions"},
		{"sessiond help", "all commands"},
	})
}

// daemonLog writes for people on a terminal, JSON elsewhere.
func (a *app) daemonLog(cfg *config.Config) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.Log.Level)
	if err != nil {
		return zerolog.Nop(), session.Errorf(session.Invalid, "log.level %q is unknown: use debug, info, warn or error",
			cfg.Log.Level)
	}
	if cfg.Log.Format == "console" || cfg.Log.Format == "auto" && a.errTTY {
		return a.log(level), nil
	}
	utc := zerolog.New(a.err).Level(level).With().Logger()
	return utc.Hook(zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str("time", a.now().UTC().Format(time.RFC3339Nano))
	})), nil
}
