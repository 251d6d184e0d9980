package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/picker"
	"sessiond/internal/session"
)

// The newest conversations are imported for at most earlyTime before the picker opens; the rest comes behind it.
const (
	earlyTime = 2 * time.Second
	indexTime = time.Second
)

// The ticks of the first screen.
const (
	tickImport = iota
	tickKeepRunning
	tickConnect
)

// firstScreen is `sessiond` alone, on a terminal, where nothing is stored yet: what is found, three ticks, and then the
// picker with the newest conversations.
func (a *app) firstScreen(ctx context.Context, root *cobra.Command, cfg *config.Config) error {
	pasts, err := a.findPasts(ctx)
	if err != nil {
		return err
	}
	there := found(pasts)
	if len(there) == 0 {
		return a.welcome(ctx, cfg.DB)
	}
	fmt.Fprintln(a.out,
		a.fit("sessiond keeps the conversations of every AI agent on this host in one file. Found here:", ""))
	fmt.Fprintln(a.out)
	a.printPasts(there)
	fmt.Fprintln(a.out)
	names := make([]string, len(there))
	for i, h := range there {
		names[i] = string(h.source.Name())
	}
	below := "It reads the histories of " + strings.Join(names, ", ") + ", and writes only\n" +
		folders.Tilde(a.getenv("HOME"), cfg.DataDir()) + " and what you tick. Nothing leaves this host."
	ticks, goOn, err := picker.AskTicks(ctx, a.firstTicks(ctx, cfg, there), below,
		picker.Terminal{In: a.in, Out: raw(a.out), Environ: a.environ, NoColor: !a.color()})
	switch {
	case err != nil:
		return err
	case !goOn:
		fmt.Fprintln(a.out, "Nothing was done. `sessiond` shows this again; `sessiond help` lists all commands.")
		return nil
	}
	return a.begin(ctx, root, cfg, there, ticks)
}

func (a *app) firstTicks(ctx context.Context, cfg *config.Config, there []past) []picker.Tick {
	var sessions int
	var disk float64
	for _, h := range there {
		sessions, disk = sessions+h.New, disk+diskNeeded(h)
	}
	ticks := []picker.Tick{
		tickImport: {
			Name: "import", On: true,
			About: fmt.Sprintf("%s, needs about %s", plural(int64(sessions), "conversation", "conversations"),
				humanize.Bytes(uint64(disk))),
		},
		tickKeepRunning: {
			Name: "keep running", On: true, About: "a service of yours follows new messages (" + serviceName(a) + ")",
		},
		tickConnect: {Name: "connect", About: "your agents search all this; shows each change and asks"},
	}
	if s, err := a.service("sessiond"); err != nil {
		ticks[tickKeepRunning].Why = "this system has no service manager that sessiond knows"
	} else if err := a.probeManager(ctx, s); err != nil {
		ticks[tickKeepRunning].Why = s.Manager + " does not run for this user: use `sessiond serve`"
	}
	if daemonOf(cfg) != nil {
		ticks[tickKeepRunning].Why = "a daemon runs already"
	}
	if ticks[tickKeepRunning].Why != "" {
		ticks[tickKeepRunning].On = false
	}
	return ticks
}

func serviceName(a *app) string {
	s, err := a.service("sessiond")
	if err != nil {
		return ""
	}
	return s.Manager
}

// begin does what is ticked, then opens the picker.
func (a *app) begin(ctx context.Context, root *cobra.Command, cfg *config.Config, there []past, t []picker.Tick) error {
	self, err := a.self()
	if err == nil && t[tickKeepRunning].On {
		self, err = a.lastingSelf(ctx, true, false)
	}
	if err != nil {
		return err
	}
	if t[tickImport].On {
		fmt.Fprintln(a.out, "Importing the newest conversations; the others follow in the background.")
		if err := a.importNewest(ctx, there); err != nil {
			return err
		}
	}
	if t[tickConnect].On {
		programs, err := a.programs(ctx, nil)
		if err == nil {
			err = a.connect(ctx, programs, connectFlags{})
		}
		if err != nil {
			a.complain(root, err) // the rest goes on
		}
	}
	switch {
	case t[tickImport].On:
		if err := a.importRest(cfg, self, t[tickKeepRunning].On); err != nil {
			return err
		}
		return a.pick(ctx, root)
	case t[tickKeepRunning].On:
		return a.installService(ctx, cfg, true, false)
	}
	return nil
}

// importNewest imports the newest conversations and indexes them.
func (a *app) importNewest(ctx context.Context, there []past) error {
	a.readHostLists()
	return a.with(ctx, wiring{}, func(s *opened) error {
		if _, err := recordCatalogue(ctx, s.store, s.catalogue); err != nil {
			return err
		}
		im := a.importer(s)
		im.Serving, im.Once = a.daemonServes(ctx), true
		var newest []history.Newest
		for _, h := range there {
			newest = append(newest, history.Newest{Source: h.source, Whose: h.whose, Found: h.found})
		}
		if err := im.ImportNewest(ctx, newest, earlyTime); err != nil {
			return err
		}
		brief, cancel := context.WithTimeout(ctx, indexTime)
		defer cancel()
		_, _ = s.index.CatchUp(brief) // the import of the rest goes on
		return nil
	})
}

// importRest starts an import that goes on after this process, also if that becomes an agent. With keep it then
// installs the service, which would follow the histories beside the import before.
func (a *app) importRest(cfg *config.Config, self string, keep bool) error {
	args := []string{"import", "--yes", "--first"}
	if keep {
		args = append(args, "--keep-running")
	}
	log, err := os.OpenFile(firstLog(cfg), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("begin the import in the background: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has it
	if err := a.startApart(self, cfg, log, args); err != nil {
		return fmt.Errorf("begin the import in the background: %w", err)
	}
	return nil
}

// firstLog is where the import in the background says what it could not read; it stays only if something failed.
func firstLog(cfg *config.Config) string { return filepath.Join(cfg.DataDir(), "first-import.log") }

func firstLock(cfg *config.Config) *flock.Flock {
	return flock.New(filepath.Join(cfg.DataDir(), ".first-import"), flock.SetPermissions(0o600))
}

// finishFirst runs the import behind the first screen, then installs the service if that was ticked.
func (a *app) finishFirst(ctx context.Context, keep bool, importAll func() error) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	lock := firstLock(cfg)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = session.Errorf(session.Conflict, "the first import runs already")
	}
	if err != nil {
		return err
	}
	err = importAll()
	err = errors.Join(err, lock.Unlock(), os.Remove(lock.Path()))
	if keep && ctx.Err() == nil {
		err = errors.Join(err, a.installService(ctx, cfg, true, false))
	}
	if err == nil {
		_ = os.Remove(firstLog(cfg))
	}
	return err
}

// firstImportRuns reports whether the import behind the first screen goes on.
func firstImportRuns(cfg *config.Config) bool {
	lock := firstLock(cfg)
	if _, err := os.Stat(lock.Path()); err != nil {
		return false
	}
	free, err := lock.TryRLock()
	if free {
		_ = lock.Unlock()
	}
	return err == nil && !free
}
