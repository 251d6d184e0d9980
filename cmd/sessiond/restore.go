package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/jobs"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func (a *app) restoreCommand() *cobra.Command {
	var purged bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the database", Args: arguments(1, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		Long: "Checks FILE and puts a copy of it in the place of the database, in one step. The database before is\n" +
			"kept in the folder of backups, as before-restore-TIME.db. A daemon that runs stores nothing from then\n" +
			"on, until you restart it; what it acknowledged before is in the kept file.\n" +
			"Sessions that were purged since FILE was made are purged in the copy, too, unless --purged is given.",
		Example: "  sessiond restore ~/.local/share/sessiond/backups/sessions-20260211T200000Z.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.restore(cmd.Context(), a.absolute(args[0]), purged)
		},
	}
	cmd.Flags().BoolVar(&purged, "purged", false, "bring back also sessions that were purged since")
	return cmd
}

func (a *app) restore(ctx context.Context, file string, keepPurged bool) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	if engine.IsPostgres(cfg.DB) {
		return session.Errorf(session.Invalid,
			"%s is on PostgreSQL, and restore replaces a file: "+
				"`sessiond copy FILE TO` copies a backup into an empty database; docs/postgres.md has the rest",
			engine.PrintableName(cfg.DB))
	}
	var again []session.ID
	restored, err := store.RestoreFile(ctx, file, cfg.DB, store.Options{Now: a.now, Log: a.log(zerolog.WarnLevel)},
		func(ctx context.Context, old, next string) (err error) {
			again, err = a.carryPurges(ctx, old, next, keepPurged)
			return err
		})
	if err != nil {
		return err
	}
	restart := daemonMustRestart(ctx, cfg)
	if a.flags.json {
		return a.report(struct {
			store.RestoredFile
			Path    string       `json:"path"`
			Restart bool         `json:"restart"`
			Purged  []session.ID `json:"purged_again"`
		}{restored, cfg.DB, restart, append([]session.ID{}, again...)}, "")
	}
	fmt.Fprintf(a.out, "%s: restored, %s with %s\n", cfg.DB, plural(restored.Sessions, "session", "sessions"),
		plural(restored.Messages, "message", "messages"))
	switch _, err := os.Stat(restored.Kept); {
	case restored.Kept == "":
	case errors.Is(err, fs.ErrNotExist): // the database before was moved or deleted, and its log lay there
		fmt.Fprintf(a.out, "  log      %s-wal, left of a database that was not there\n", restored.Kept)
	default:
		fmt.Fprintf(a.out, "  before   %s\n", restored.Kept)
	}
	if len(again) > 0 {
		fmt.Fprintf(a.out, "  purged   %s again, which the database before had purged; --purged keeps them\n",
			plural(int64(len(again)), "session", "sessions"))
	}
	if restart {
		fmt.Fprintln(a.out, "  daemon   it runs on the database before and stores nothing more: restart it now")
	}
	return nil
}

// carryPurges purges in the restored copy what the database before had purged, and keeps its ids from being given
// again. With keep the sessions stay. A database before that cannot be read only warns: it may be why one restores.
func (a *app) carryPurges(ctx context.Context, old, next string, keep bool) ([]session.ID, error) {
	tombstones, days, err := a.readPurges(ctx, old)
	if err != nil {
		a.warn("what was purged in the database before cannot be read, so sessions that were purged there may be back: %s",
			err)
		return nil, nil
	}
	s, err := store.Open(ctx, next, store.Options{Now: a.now, Log: a.log(zerolog.ErrorLevel)})
	if err != nil {
		return nil, err
	}
	purger := jobs.Purger{Store: s, Log: a.log(zerolog.WarnLevel)}
	again, err := purger.PurgeAgain(ctx, tombstones, keep)
	if err == nil {
		err = s.RaiseIDCounters(ctx, days)
	}
	return again, errors.Join(err, s.Close())
}

func (a *app) readPurges(ctx context.Context,
	old string,
) (tombstones []store.PurgedSource, days []store.SessionDay, err error) {
	if old == "" {
		return nil, nil, nil
	}
	s, err := store.Open(ctx, old, store.Options{ReadOnly: true, Now: a.now, Log: a.log(zerolog.ErrorLevel)})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if tombstones, err = s.Tombstones(ctx); err == nil {
		days, err = s.IDCounters(ctx)
	}
	return tombstones, days, err
}

// daemonMustRestart reports whether a daemon runs and has noticed that its database was replaced.
func daemonMustRestart(ctx context.Context, cfg *config.Config) bool {
	status, _ := readiness(ctx, nearestListener(cfg), 3*time.Second)
	return status != 0 && status != http.StatusOK
}
