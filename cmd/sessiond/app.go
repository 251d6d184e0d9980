package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/routing"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
	"sessiond/internal/usage"
)

// app is one run of the program: its environment, the global flags and the configuration.
type app struct {
	*env
	flags struct {
		db, config             string
		json, noColor, noPager bool
	}
	cfg        *config.Config
	asCopy     bool                     // of import
	purgedToo  bool                     // of import
	unfinished bool                     // of import: the program is amid a reply
	told       map[history.Problem]bool // by import

	copied        string // a copy of the database that was brought up to date; "": none was needed
	warnedOfLists bool   // that the lists of models are damaged
}

// load reads the configuration once. more holds further settings from flags, by key.
func (a *app) load(more map[string]any) (*config.Config, error) {
	if a.cfg != nil {
		return a.cfg, nil
	}
	given := map[string]any{}
	maps.Copy(given, more)
	if a.flags.db != "" {
		given["db"] = a.database(a.flags.db)
	}
	cfg, err := config.Load(config.Input{
		Dirs: config.UserDirs(a.user()), Path: a.flags.config, Environ: a.environ, Flags: given,
	})
	if err != nil {
		return nil, err
	}
	a.cfg = cfg
	return cfg, nil
}

// database resolves a path from the working directory; an address of PostgreSQL stays.
func (a *app) database(name string) string {
	if engine.IsPostgres(name) {
		return name
	}
	return a.absolute(name)
}

// absolute resolves a path from the working directory.
func (a *app) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(cmp.Or(a.startDir, a.dir), path)
}

// replaceFile writes a small file of sessiond's own, whole or not at all, for its user alone.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".sessiond-*") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// user finds the user's folders.
func (a *app) user() folders.User { return folders.User{System: a.system, Getenv: a.getenv} }

// log writes to standard error. Commands log from level warn, the daemon from the configured one.
func (a *app) log(level zerolog.Level) zerolog.Logger {
	return zerolog.New(zerolog.ConsoleWriter{
		Out: a.err, NoColor: !a.color(),
		TimeFormat: "15:04:05",
	}).Level(level).With().Timestamp().Logger()
}

// color reports whether to print colours.
func (a *app) color() bool {
	return a.outTTY && !a.flags.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// logOf returns the log of what wire opens.
func (a *app) logOf(w wiring) zerolog.Logger {
	if w.log != nil {
		return *w.log
	}
	return a.log(zerolog.WarnLevel)
}

// open opens the database for a command. A reading command needs no daemon and writes nothing.
func (a *app) open(ctx context.Context, w wiring) (*store.Store, error) {
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	if err := a.daemonLost(ctx, cfg); err != nil {
		return nil, err
	}
	options := store.Options{
		ReadOnly: w.readOnly, New: w.begin, Now: a.now, Zone: cfg.Zone(), Log: a.logOf(w), Owner: cfg.Owner, Host: cfg.Host,
		SQL:     cfg.SQLDB,
		Measure: tokens.Reference().Measure, Touched: touched.Files, Silent: routing.SilentMessage, Committed: w.wrote,
	}
	s, err := store.Open(ctx, cfg.DB, options)
	if w.orCopy && errors.Is(err, engine.ErrOlderSchema) {
		return a.openCopy(ctx, options, err)
	}
	if err != nil || w.readOnly {
		return s, err
	}
	if err := a.decideImports(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// read runs a reading command on the database.
func (a *app) read(ctx context.Context, do func(*store.Store) error) error {
	return a.readAs(ctx, reading, do)
}

// readItself is read for what is no use on a copy, or must not take long.
func (a *app) readItself(ctx context.Context, do func(*store.Store) error) error {
	return a.readAs(ctx, wiring{readOnly: true}, do)
}

func (a *app) readAs(ctx context.Context, w wiring, do func(*store.Store) error) error {
	// A short command needs no early collection: the first one comes at 16 MB instead of 4.
	debug.SetGCPercent(400)
	s, err := a.open(ctx, w)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// write runs a writing command on the database.
func (a *app) write(ctx context.Context, do func(*store.Store) error) error {
	s, err := a.open(ctx, wiring{})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// onStore is the RunE of a command that reads the database.
func (a *app) onStore(do func(ctx context.Context, s *store.Store,
	args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(s *store.Store) error { return do(cmd.Context(), s, args) })
	}
}

// onPagedStore is onStore with the output in a pager.
func (a *app) onPagedStore(do func(ctx context.Context, s *store.Store,
	args []string) error,
) func(*cobra.Command, []string) error {
	return a.onStore(func(ctx context.Context, s *store.Store, args []string) error {
		return a.paged(ctx, func() error { return do(ctx, s, args) })
	})
}

// onSession runs do on the open database and the session that the user named.
func (a *app) onSession(ctx context.Context, w wiring, name string, do func(*opened, session.Session) error) error {
	return a.onMessage(ctx, w, name, func(s *opened, sess session.Session, _ *session.MessageRef) error {
		return do(s, sess)
	})
}

// onMessage is onSession with the message that the user named, nil without one.
func (a *app) onMessage(ctx context.Context, w wiring, name string,
	do func(*opened, session.Session, *session.MessageRef) error,
) error {
	return a.with(ctx, w, func(s *opened) error {
		sess, ref, err := a.named(ctx, s.store, name)
		if err != nil {
			return err
		}
		return do(s, sess, ref)
	})
}

// catalogue returns the embedded catalogue of models with the lists that were read and the user's overrides.
func (a *app) catalogue() (*usage.Catalogue, error) {
	cfg, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	overrides, err := os.ReadFile(cfg.Models())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, session.Errorf(session.Invalid, "read %s: %w", cfg.Models(), err)
	}
	lists := a.storedLists(cfg).Lists
	c, err := usage.Load(overrides, lists...)
	if err != nil && len(lists) > 0 {
		if without, ofOverrides := usage.Load(overrides); ofOverrides == nil {
			a.warnOfLists(cfg, err)
			return without, nil
		}
	}
	if err != nil {
		return nil, session.Errorf(session.CodeOf(err), "%s: %w", cfg.Models(), err)
	}
	return c, nil
}
