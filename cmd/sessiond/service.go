package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/service"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

func (a *app) serviceCommand() *cobra.Command {
	var yes, dryRun, follow bool
	verbs := []string{"install", "status", "logs", "restart", "uninstall"}
	cmd := &cobra.Command{
		Use: "service install|status|logs|restart|uninstall", Short: "Keep the daemon running",
		Args: arguments(1, 1), ValidArgs: verbs,
		Long: "Gives the daemon to the service manager of your user: systemd on Linux, launchd on macOS, a hidden\n" +
			"task at logon on Windows (untested). It starts now and at each login, and again after a crash.\n" +
			"`status` says whether it runs, where and in which version; `restart` starts the version that is\n" +
			"installed now; `uninstall` stops it. No conversation is deleted.",
		Example: "  sessiond service install\n  sessiond service status\n  sessiond service logs --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			for flag, verb := range map[string]string{"follow": "logs", "yes": "install", "dry-run": "install"} {
				if cmd.Flags().Changed(flag) && args[0] != verb {
					return usagef("--%s belongs to `service %s`", flag, verb)
				}
			}
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			switch args[0] {
			case "install":
				return a.installService(cmd.Context(), cfg, yes, dryRun)
			case "status":
				return a.serviceStatus(cmd.Context(), cfg)
			case "logs":
				return a.serviceLogs(cmd.Context(), follow)
			case "restart":
				return a.restartService(cmd.Context(), cfg)
			case "uninstall":
				return a.uninstallService(cmd.Context())
			}
			return usagef("service takes %s, not %q", strings.Join(verbs, ", "), args[0])
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&yes, "yes", "y", false, "of install: do not ask")
	fl.BoolVar(&dryRun, "dry-run", false, "of install: print the service's file, write nothing")
	fl.BoolVarP(&follow, "follow", "f", false, "of logs: print what is logged from now on, too")
	return cmd
}

// service returns the service of this user, which runs a program.
func (a *app) service(binary string) (service.Service, error) {
	d := service.Daemon{Binary: binary, Environ: a.serviceEnviron(), UID: os.Getuid()}
	if a.flags.config != "" {
		d.Args = append(d.Args, "--config", a.absolute(a.flags.config))
	}
	if a.flags.db != "" { // not in the arguments, which everybody reads: a server's address may have a password
		d.Environ = append(slices.DeleteFunc(d.Environ, func(pair string) bool {
			return strings.HasPrefix(pair, "SESSIOND_DB=")
		}), "SESSIOND_DB="+a.database(a.flags.db))
	}
	return service.For(a.user(), d)
}

// serviceEnviron returns the variables of this shell on which the daemon's folders and settings depend. Keys of
// providers are not among them: api_key_file names a file for the daemon.
func (a *app) serviceEnviron() []string {
	var kept []string
	for _, pair := range a.environ {
		name, value, _ := strings.Cut(pair, "=")
		if value != "" && (name == "XDG_CONFIG_HOME" || name == "XDG_DATA_HOME" ||
			strings.HasPrefix(name, "SESSIOND_") && name != "SESSIOND_PAGER") {
			kept = append(kept, pair)
		}
	}
	slices.Sort(kept)
	return kept
}

// installService writes the service's file and starts the daemon.
func (a *app) installService(ctx context.Context, cfg *config.Config, yes, dryRun bool) error {
	binary, err := a.lastingSelf(ctx, yes, dryRun)
	if err != nil {
		return err
	}
	s, err := a.service(binary)
	if err != nil {
		return err
	}
	if dryRun {
		fmt.Fprintf(a.err, "%s would be:\n", s.File)
		_, err := a.out.Write(s.Text)
		return err
	}
	if err := a.checkFirstOnPath(binary); err != nil {
		return err
	}
	if err := a.probeManager(ctx, s); err != nil {
		return err
	}
	before := daemonOf(cfg)
	if before != nil && !a.serviceRuns(ctx, s) {
		return session.Errorf(session.Conflict, "a daemon runs already that is no service (process %d): stop it, then "+
			"`sessiond service install` starts it", before.PID)
	}
	if err := writeServiceFile(s); err != nil {
		return err
	}
	if s.Manager == "launchd" { // which loads a file that it knows not again
		for _, command := range s.Uninstall {
			_ = a.quietly(ctx, command)
		}
	}
	for _, command := range s.Install {
		if err := a.quietly(ctx, command); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "wrote %s\n", inOneLine(printable(s.File)))
	d, err := a.awaitDaemon(ctx, cfg, before)
	if err != nil {
		return err
	}
	a.printDaemon(cfg, d)
	if s.Note != "" {
		fmt.Fprintln(a.out, s.Note)
	}
	return nil
}

// checkFirstOnPath refuses to install a service of a program that is not the one that a shell runs. Codes: Conflict.
func (a *app) checkFirstOnPath(binary string) error {
	first := a.host().LookPath("sessiond")
	if first == "" {
		return nil
	}
	one, err := os.Stat(first)
	two, err2 := os.Stat(binary)
	if err != nil || err2 != nil || os.SameFile(one, two) {
		return nil
	}
	if same, err := sameFile(first, binary); err == nil && same {
		return nil
	}
	return session.Errorf(session.Conflict,
		"another sessiond is first on the PATH: %s, not %s. If it is an older one, update or remove it; a session manager "+
			"for X has a program of this name, too. Nothing was changed", first, binary)
}

// probeManager reports whether the service manager runs for this user. Codes: Unavailable.
func (a *app) probeManager(ctx context.Context, s service.Service) error {
	if a.host().LookPath(s.Probe[0]) == "" {
		return session.Errorf(session.Unavailable,
			"there is no %s here (%s is not on the PATH): let your own supervisor, or a container, run `sessiond serve`; "+
				"`sessiond service install --dry-run` prints what it would be told", s.Manager, s.Probe[0])
	}
	if err := a.quietly(ctx, s.Probe); err != nil {
		return session.Errorf(session.Unavailable,
			"%s does not run for this user, as in a container or behind su: let your own supervisor run `sessiond serve`: %w",
			s.Manager, err)
	}
	return nil
}

// writeServiceFile writes the file for its user alone: a setting may be an address with a password.
func writeServiceFile(s service.Service) error {
	folders := []string{filepath.Dir(s.File)}
	if s.Log != "" {
		folders = append(folders, filepath.Dir(s.Log))
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("write the service: %w", err)
		}
	}
	if err := replaceFile(s.File, s.Text); err != nil {
		return fmt.Errorf("write the service: %w", err)
	}
	return nil
}

// quietly runs a command of the service manager, whose words are only shown if it fails. Codes: Unavailable.
func (a *app) quietly(ctx context.Context, command []string) error {
	cmd := a.managerCommand(ctx, command)
	out, err := cmd.CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		if said == "" {
			said = err.Error()
		}
		return session.Errorf(session.Unavailable, "%s: %s", strings.Join(command, " "), said)
	}
	return nil
}

func (a *app) managerCommand(ctx context.Context, command []string) *exec.Cmd {
	path := a.host().LookPath(command[0])
	if path == "" {
		path = command[0]
	}
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Env = a.environ
	return cmd
}

func (a *app) serviceRuns(ctx context.Context, s service.Service) bool {
	return a.quietly(ctx, s.Active) == nil
}

// awaitDaemon returns the daemon that follows another one, nil for none, once it is ready. Codes: Unavailable.
func (a *app) awaitDaemon(ctx context.Context, cfg *config.Config, before *runningDaemon) (*runningDaemon, error) {
	const patience = 30 * time.Second // of a migration
	if engine.IsPostgres(cfg.DB) {
		return nil, nil
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if d := daemonOf(cfg); d != nil && (before == nil || d.PID != before.PID) {
			return d, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, session.Errorf(session.Unavailable, "the daemon was not ready within %s: `sessiond service logs` says why",
		patience)
}

func (a *app) printDaemon(cfg *config.Config, d *runningDaemon) {
	line := func(name, value string) { fmt.Fprintf(a.out, "%-9s %s\n", name, printable(value)) }
	if d == nil {
		line("daemon", "does not run")
		return
	}
	line("daemon", fmt.Sprintf("sessiond %s, process %d, started %s", describe(d.Version), d.PID,
		transcript.Ago(d.Started, a.now())))
	if d.Address != "" {
		line("http", "http://"+d.Address)
	}
	if d.Socket != "" {
		line("socket", d.Socket)
	}
	line("database", engine.PrintableName(cfg.DB))
	if note := a.olderDaemon(d); note != "" {
		line("note", note)
	}
}

// serviceStatus prints whether the service is installed and the daemon runs. It fails with NotFound if none runs.
func (a *app) serviceStatus(ctx context.Context, cfg *config.Config) error {
	s, err := a.service("")
	if err != nil {
		return err
	}
	_, failed := os.Stat(s.File)
	installed, active := failed == nil, false
	if installed {
		active = a.serviceRuns(ctx, s)
	}
	d := daemonOf(cfg)
	if a.flags.json {
		if err := a.printJSON(map[string]any{
			"manager": s.Manager, "file": s.File, "installed": installed, "active": active, "daemon": d,
		}); err != nil {
			return err
		}
	} else {
		state := "not installed: `sessiond service install`"
		if installed {
			state = map[bool]string{true: "active", false: "installed, not active"}[active] + ", " + s.File
		}
		fmt.Fprintf(a.out, "%-9s %s (%s)\n", "service", printable(state), s.Manager)
		a.printDaemon(cfg, d)
	}
	if d == nil && !active {
		return quietError{session.Errorf(session.NotFound, "no daemon runs")}
	}
	return nil
}

// installedService returns the service if it is installed. Codes: NotFound.
func (a *app) installedService() (service.Service, error) {
	s, err := a.service("")
	if err != nil {
		return s, err
	}
	if _, err := os.Stat(s.File); errors.Is(err, fs.ErrNotExist) {
		return s, session.Errorf(session.NotFound, "no service is installed (%s does not exist): `sessiond service install`",
			s.File)
	}
	return s, nil
}

func (a *app) serviceLogs(ctx context.Context, follow bool) error {
	s, err := a.installedService()
	if err != nil {
		return err
	}
	command := s.ShowLog
	if follow {
		command = s.FollowLog
	}
	cmd := a.managerCommand(ctx, command)
	cmd.Stdout, cmd.Stderr = a.out, a.err
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return session.Errorf(session.Unavailable, "%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

func (a *app) restartService(ctx context.Context, cfg *config.Config) error {
	s, err := a.installedService()
	if err != nil {
		return err
	}
	before := daemonOf(cfg)
	for _, command := range s.Restart {
		if err := a.quietly(ctx, command); err != nil {
			return err
		}
	}
	d, err := a.awaitDaemon(ctx, cfg, before)
	if err == nil {
		a.printDaemon(cfg, d)
	}
	return err
}

func (a *app) uninstallService(ctx context.Context) error {
	s, err := a.installedService()
	if err != nil {
		return err
	}
	for _, command := range s.Uninstall {
		if err := a.quietly(ctx, command); err != nil {
			a.warn("%s", err) // the file goes nevertheless, and with it the next start
		}
	}
	if err := os.Remove(s.File); err != nil {
		return err
	}
	for _, command := range s.Removed {
		if err := a.quietly(ctx, command); err != nil {
			a.warn("%s", err)
		}
	}
	fmt.Fprintf(a.out, "removed %s; the conversations stay\n", inOneLine(printable(s.File)))
	return nil
}
