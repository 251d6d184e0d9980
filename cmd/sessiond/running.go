package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

// runningDaemon is what a daemon says of itself in a file beside its database. A lock on another file, which ends with
// the process, says whether it still runs.
type runningDaemon struct {
	api.Version
	PID     int       `json:"pid"`
	Started time.Time `json:"started_at"`
	Address string    `json:"address,omitempty"` // of HTTP; "": only the socket
	Socket  string    `json:"socket,omitempty"`
}

// daemonFile returns the path of the daemon's file with an ending, "lock" or "json"; "" on PostgreSQL, where any number
// of daemons may run.
func daemonFile(cfg *config.Config, ending string) string {
	if engine.IsPostgres(cfg.DB) {
		return ""
	}
	return filepath.Join(filepath.Dir(cfg.DB), ".daemon-"+filepath.Base(cfg.DB)+"."+ending)
}

// How long a start waits for the lock, which other commands hold for a moment, and for a daemon that starts to say
// where it is.
const (
	claimPatience = 300 * time.Millisecond
	startPatience = 5 * time.Second
)

// claimDatabase makes this process the daemon of the database until release. If another one is that already, it returns
// what that says of itself. Where the folder cannot have a lock, it claims nothing: the listener still refuses.
func (a *app) claimDatabase(ctx context.Context, cfg *config.Config) (other *runningDaemon, release func(), err error) {
	path := daemonFile(cfg, "lock")
	nothing := func() {}
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return nil, nothing, nil
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	switch locked, err := lock.TryLockContext(waiting, 10*time.Millisecond); {
	case locked:
		_ = os.Remove(daemonFile(cfg, "json")) // of one that was killed
		return nil, func() {
			_ = os.Remove(daemonFile(cfg, "json"))
			_ = lock.Unlock() // ends with the process at the latest; its file stays, which another start may have open
		}, nil
	case ctx.Err() != nil:
		return nil, nothing, ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded): // a file system without locks, or that is full
		return nil, nothing, nil
	}
	for end := time.Now().Add(startPatience); ; time.Sleep(20 * time.Millisecond) {
		if other := readDaemonFile(cfg); other != nil {
			return other, nothing, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return nil, nothing, session.Errorf(session.Conflict,
				"another sessiond has been starting on %s for %s: wait for it, or stop it", cfg.DB, startPatience)
		}
	}
}

// writeDaemonFile says where the daemon listens. Without the file other commands use the configured addresses.
func (a *app) writeDaemonFile(cfg *config.Config, address, socket string) {
	path := daemonFile(cfg, "json")
	if path == "" {
		return
	}
	text, err := json.Marshal(runningDaemon{
		Version: buildVersion(), PID: os.Getpid(), Started: a.now(), Address: address, Socket: socket,
	})
	if err == nil {
		_ = replaceFile(path, text)
	}
}

func readDaemonFile(cfg *config.Config) *runningDaemon {
	text, err := os.ReadFile(daemonFile(cfg, "json"))
	var d runningDaemon
	if err != nil || json.Unmarshal(text, &d) != nil {
		return nil
	}
	return &d
}

// daemonOf returns the daemon that serves the database now; nil if none does, or none that says so.
func daemonOf(cfg *config.Config) *runningDaemon {
	d := readDaemonFile(cfg)
	if d == nil {
		return nil
	}
	lock := flock.New(daemonFile(cfg, "lock"), flock.SetFlag(os.O_RDONLY))
	if free, err := lock.TryRLock(); err != nil || free { // it was killed
		_ = lock.Unlock()
		return nil
	}
	return d
}

// printRunning says, instead of a second start, which daemon serves the database.
func (a *app) printRunning(cfg *config.Config, d *runningDaemon) error {
	if a.flags.json {
		return a.printJSON(d)
	}
	line := func(name, value string) { fmt.Fprintf(a.out, "  %-9s %s\n", name, value) }
	fmt.Fprintf(a.out, "sessiond %s runs already on this database, since %s (process %d).\n", printable(d.Version.Version),
		transcript.Ago(d.Started, a.now()), d.PID)
	if d.Address != "" {
		line("http", "http://"+d.Address)
	}
	if d.Socket != "" {
		line("socket", d.Socket)
	}
	line("database", cfg.DB)
	if note := a.olderDaemon(d); note != "" {
		fmt.Fprintln(a.out, "\nNote: "+note)
	}
	return nil
}

// olderDaemon says that a daemon is of another version than this program, and what to do; "" if it is of the same.
func (a *app) olderDaemon(d *runningDaemon) string {
	own := buildVersion()
	if d == nil || d.Version.Version == own.Version && d.Commit == own.Commit {
		return ""
	}
	return fmt.Sprintf("the daemon is sessiond %s, this is %s: %s", printable(describe(d.Version)), describe(own),
		a.howToRestart(d))
}

// describe returns a version, with the commit of one that has no number.
func describe(v api.Version) string {
	if v.Version != "dev" || len(v.Commit) < 12 {
		return v.Version
	}
	return v.Version + " of commit " + v.Commit[:12]
}

func (a *app) howToRestart(d *runningDaemon) string {
	if s, err := a.service(""); err == nil {
		if _, err := os.Stat(s.File); err == nil {
			return "`sessiond service restart` starts the new one"
		}
	}
	return fmt.Sprintf("stop it (process %d) and run `sessiond serve`", d.PID)
}
