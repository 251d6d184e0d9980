package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the database", Args: arguments(1, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		Long: "Checks FILE and puts a copy of it in the place of the database, in one step. The database before is\n" +
			"kept in the folder of backups, as before-restore-TIME.db. A daemon that runs stores nothing from then\n" +
			"on, until you restart it; what it acknowledged before is in the kept file.",
		Example: "  sessiond restore ~/.local/share/sessiond/backups/sessions-20260211T200000Z.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.restore(cmd.Context(), a.absolute(args[0]))
		},
	}
}

func (a *app) restore(ctx context.Context, file string) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	if store.IsPostgres(cfg.DB) {
		return session.Errorf(session.Invalid, "%s is on PostgreSQL, and restore replaces a file: `sessiond copy FILE TO` copies a backup into an empty database; docs/postgres.md has the rest", store.PrintableName(cfg.DB))
	}
	restored, err := store.RestoreFile(ctx, file, cfg.DB, store.Options{Now: a.now, Log: a.log(zerolog.WarnLevel)}, nil)
	if err != nil {
		return err
	}
	restart := daemonMustRestart(ctx, cfg)
	if a.flags.json {
		return a.report(struct {
			store.RestoredFile
			Path    string `json:"path"`
			Restart bool   `json:"restart"`
		}{restored, cfg.DB, restart}, "")
	}
	fmt.Fprintf(a.out, "%s: restored, %s with %s\n", cfg.DB, plural(restored.Sessions, "session", "sessions"), plural(restored.Messages, "message", "messages"))
	if restored.Kept != "" {
		fmt.Fprintf(a.out, "  before   %s\n", restored.Kept)
	}
	if restart {
		fmt.Fprintln(a.out, "  daemon   it runs on the database before and stores nothing more: restart it now")
	}
	return nil
}

// daemonMustRestart reports whether a daemon runs and has noticed that its database was replaced.
func daemonMustRestart(ctx context.Context, cfg *config.Config) bool {
	network, address := nearestListener(cfg)
	if address == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	res, err := askDaemon(ctx, network, address, http.MethodGet, "/readyz", nil)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode != http.StatusOK
}
