package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	client "sessiond/clients/go"
	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/jobs"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// alarm says in one line what a user should act on: the daemon of this database stores nothing, backups are late, or
// the daemon is of another version than this program; "" if all is well. Without a daemon only the backups are known: a
// database that cannot be read is an error of its own.
func (a *app) alarm(ctx context.Context, cfg *config.Config) string {
	return alarmLine(a.refusal(ctx, cfg, alarmPatience), backupsOf(cfg).Late(a.now()), a.olderDaemon(daemonOf(cfg)))
}

// alarmOf is alarm for the daemon's own pages.
func (a *app) alarmOf(ctx context.Context, s *store.Store, cfg *config.Config) string {
	refusal := ""
	if err := s.Ready(ctx); err != nil && ctx.Err() == nil {
		refusal = err.Error()
	}
	return alarmLine(refusal, backupsOf(cfg).Late(a.now()), "")
}

func alarmLine(refusal, late, older string) string {
	if refusal != "" {
		refusal = "the daemon stores nothing: " + refusal
	}
	said := slices.DeleteFunc([]string{refusal, late, older}, func(s string) bool { return s == "" })
	if len(said) == 0 {
		return ""
	}
	return inOneLine(printable("! " + strings.Join(said, "; ")))
}

func backupsOf(cfg *config.Config) jobs.Backups {
	return jobs.Backups{Every: cfg.Backup.Every, Keep: cfg.Backup.Keep, Dir: filepath.Join(cfg.DataDir(), "backups")}
}

// How long a command waits for the daemon to say whether it is ready.
const (
	alarmPatience = 250 * time.Millisecond
	lostPatience  = 10 * time.Second // where the answer decides whether a new database begins
)

// refusal asks the daemon of the database whether it is ready, and returns why not; "" if it is, or does not answer.
func (a *app) refusal(ctx context.Context, cfg *config.Config, patience time.Duration) string {
	place := nearestListener(cfg)
	if a.flags.db != "" && filepath.Dir(place.Socket) != cfg.DataDir() { // perhaps of another database
		return ""
	}
	status, detail := readiness(ctx, place, patience)
	if status != http.StatusServiceUnavailable && status != http.StatusInsufficientStorage {
		return ""
	}
	return detail
}

// readiness asks a daemon whether it is ready, and returns the status of its answer, 0 for none, and what that says.
func readiness(ctx context.Context, place client.Place, patience time.Duration) (status int, detail string) {
	if place == (client.Place{}) {
		return 0, ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	daemon := clientOf(place, 0)
	defer daemon.Close()
	_, err := daemon.CheckReadiness(ctx)
	var e *client.Error
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.As(err, &e):
		return e.Status, e.Message
	}
	return 0, ""
}

// daemonLost refuses to open a database whose file was moved away or deleted under its daemon: it is not a first start,
// and a new file in its place would hide what is lost. Codes: Unavailable.
func (a *app) daemonLost(ctx context.Context, cfg *config.Config) error {
	if engine.IsPostgres(cfg.DB) {
		return nil
	}
	if _, err := os.Stat(cfg.DB); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	refusal := a.refusal(ctx, cfg, lostPatience)
	if !strings.Contains(refusal, cfg.DB) { // no daemon, or one of another database
		return nil
	}
	return session.Errorf(session.Unavailable, "the daemon stores nothing: %s", refusal)
}

// printAlarm prints the alarm above a list, or for programs on standard error.
func (a *app) printAlarm(ctx context.Context) error {
	line := a.alarm(ctx, a.cfg)
	switch {
	case line == "":
		return nil
	case a.flags.json:
		a.warn("%s", strings.TrimPrefix(line, "! "))
		return nil
	}
	_, err := fmt.Fprintln(a.out, a.bold(a.fit(line, "")))
	return err
}
