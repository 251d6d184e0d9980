package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/rs/zerolog"

	"sessiond/internal/config"
	"sessiond/internal/history"
	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/usage"
)

// app is one run of the program: the outside, the flags that every command has, and what a
// command opened.
type app struct {
	*env
	flags struct {
		db, config    string
		json, noColor bool
	}
	cfg       *config.Config
	asCopy    bool                     // of import
	purgedToo bool                     // of import
	told      map[history.Problem]bool // by import
}

// load reads the configuration once. more are further flags, by key.
func (a *app) load(more map[string]any) (*config.Config, error) {
	if a.cfg != nil {
		return a.cfg, nil
	}
	given := map[string]any{}
	for k, v := range more {
		given[k] = v
	}
	if a.flags.db != "" {
		given["db"] = a.absolute(a.flags.db)
	}
	cfg, err := config.Load(config.Input{Dirs: a.userDirs(), Path: a.flags.config, Environ: a.environ, Flags: given})
	if err != nil {
		return nil, err
	}
	a.cfg = cfg
	return cfg, nil
}

// absolute reads a path as the user's shell does.
func (a *app) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

// userDirs are the folders of whoever runs the command; a test gives its own in the
// environment.
func (a *app) userDirs() config.Dirs {
	dirs := config.UserDirs()
	for _, d := range []struct {
		name string
		to   *string
	}{{"XDG_CONFIG_HOME", &dirs.Config}, {"XDG_DATA_HOME", &dirs.Data}, {"XDG_RUNTIME_DIR", &dirs.Runtime}} {
		if v := a.getenv(d.name); v != "" {
			*d.to = v
		}
	}
	return dirs
}

// log writes to standard error; commands only warn, the daemon tells what it does.
func (a *app) log(level zerolog.Level) zerolog.Logger {
	return zerolog.New(zerolog.ConsoleWriter{Out: a.err, NoColor: !a.color(), TimeFormat: "15:04:05"}).Level(level).With().Timestamp().Logger()
}

// color tells whether colours are wanted.
func (a *app) color() bool {
	return a.outTTY && !a.flags.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// open opens the database for a command. Reading commands need no daemon and change nothing.
func (a *app) open(ctx context.Context, readOnly bool, log zerolog.Logger) (*store.Store, error) {
	return a.openFor(ctx, wiring{readOnly: readOnly, log: log})
}

func (a *app) openFor(ctx context.Context, w wiring) (*store.Store, error) {
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, cfg.DB, store.Options{
		ReadOnly: w.readOnly, Now: a.now, Zone: cfg.Zone(), Log: w.log,
		Measure: tokens.Reference().Measure, Touched: touched.Files, Silent: routing.SilentMessage, Committed: w.wrote,
	})
}

// read runs a reading command on the database.
func (a *app) read(ctx context.Context, do func(*store.Store) error) error {
	// A command that soon ends need not tidy up: the first collection comes at 16 MB, not at 4.
	debug.SetGCPercent(400)
	s, err := a.open(ctx, true, a.log(zerolog.WarnLevel))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// resolve finds the session that the user named.
func (a *app) resolve(ctx context.Context, s *store.Store, name string) (session.Session, error) {
	id, err := s.Resolve(ctx, name, a.dir)
	if err != nil {
		return session.Session{}, err
	}
	return s.Session(ctx, id)
}

// catalogue is the embedded one with the user's overrides.
func (a *app) catalogue() (*usage.Catalogue, error) {
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	overrides, err := os.ReadFile(cfg.Models())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, session.Errorf(session.Invalid, "read %s: %w", cfg.Models(), err)
	}
	return usage.Load(overrides)
}
