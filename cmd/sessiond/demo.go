package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/demo"
)

// demoCommands are the commands that `sessiond demo COMMAND` runs: they stay within the store, or write a file that the
// user named.
var demoCommands = []string{
	"ls", "show", "log", "search", "stats", "year", "query", "rules", "context", "compact", "export", "keys",
	"models", "fork", "head", "rename", "star", "tag", "doctor", "secrets",
}

func (a *app) demoCommand() *cobra.Command {
	var at, listen string
	cmd := &cobra.Command{
		Use: "demo [COMMAND …]", Short: "Try sessiond on an invented history", Args: arguments(0, unlimited),
		Example: "  sessiond demo\n  sessiond demo ls\n  sessiond demo show @ --tree",
		Long: "Serves a page with invented conversations of several programs until Ctrl-C, and says how other\n" +
			"terminals look at them. With COMMAND it runs that on them instead, and ends. They are in a folder\n" +
			"below the system's one for temporary files, which is deleted at the end. Your own conversations,\n" +
			"configuration and programs are neither read nor changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !slices.Contains(demoCommands, args[0]) {
				return usagef("demo runs none of %q, but: %s", args[0], strings.Join(demoCommands, ", "))
			}
			if err := config.CheckListen(listen); err != nil {
				return usagef("--listen %w", err)
			}
			now, err := a.demoClock(at)
			if err != nil {
				return err
			}
			return a.demo(cmd.Context(), args, listen, now)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	fl.StringVar(&at, "at", "", "the clock stands still at `TIME` (RFC 3339), so that pictures are the same each time")
	fl.StringVar(&listen, "listen", "127.0.0.1:0", "TCP `ADDRESS` of the page; port 0 is a free one")
	return cmd
}

// demoClock returns the clock of the demonstration.
func (a *app) demoClock(at string) (func() time.Time, error) {
	if at == "" {
		return a.now, nil
	}
	fixed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return nil, usagef("--at needs a time like 2026-03-02T15:04:05Z, not %q", at)
	}
	return func() time.Time { return fixed }, nil
}

// demo runs a command on the invented history, or serves it. Nothing of the user's is reached: the home folder, the
// configuration and the environment are the demonstration's.
func (a *app) demo(ctx context.Context, args []string, listen string, now func() time.Time) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves must not keep the folder from being deleted
	removeDeadDemos(a.now())
	folder, err := os.MkdirTemp("", demoFolder)
	if err != nil {
		return fmt.Errorf("make a folder for the demonstration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	settings := filepath.Join(folder, "config.yaml")
	text := fmt.Sprintf("db: %q\nlisten: %q\nsocket: %q\ntoken_file: %q\nimport: {follow: false}\nlog: {level: warn}\n",
		filepath.Join(folder, "sessions.db"), listen, filepath.Join(folder, "sock"), filepath.Join(folder, "token"))
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return err
	}
	e := *a.env
	e.dir, e.startDir, e.now = demo.Project, a.dir, now
	e.environ = append(demoEnviron(a.environ), "HOME="+demo.Home, "SESSIOND_CONFIG="+settings)
	there := &app{env: &e}
	count, err := there.fillDemo(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if a.flags.json {
			args = append(args, "--json")
		}
		if code := run(ctx, args, &e); code != exitDone {
			return exitStatus(code)
		}
		return nil
	}
	cfg, err := there.load(nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%d invented conversations are in %s, which is deleted at the end.\n", count, folder)
	if err := a.printNext("In another terminal:", [][2]string{
		{"export SESSIOND_CONFIG=" + settings, "look at these conversations"},
		{"sessiond", "pick one"},
		{"sessiond open", "open the page"},
	}); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return there.serve(ctx, cfg, false, false)
}

// demoFolder begins the name of a demonstration's folder.
const demoFolder = "sessiond-demo-"

// longDemo is how long a demonstration without a socket may last: it runs one command.
const longDemo = time.Hour

// removeDeadDemos removes the folders of demonstrations that were killed. One that is served answers on its socket. An
// error is no news to the user: the next demonstration tries again.
func removeDeadDemos(now time.Time) {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), demoFolder+"*"))
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() {
			continue
		}
		socket := filepath.Join(folder, "sock")
		if _, err := os.Lstat(socket); err != nil {
			if now.Sub(info.ModTime()) > longDemo {
				_ = os.RemoveAll(folder)
			}
			continue
		}
		conn, err := net.Dial("unix", socket)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.RemoveAll(folder)
		}
	}
}

// exitStatus is the exit code of a command that has reported its error.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// demoEnviron leaves of an environment what says how to print.
func demoEnviron(environ []string) []string {
	kept := []string{
		"PATH", "TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "TZ", "PAGER", "SESSIOND_PAGER", "LESS", "TMPDIR", "TEMP",
		"TMP", "SystemRoot", "DISPLAY", "WAYLAND_DISPLAY",
	}
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(kept, name)
	})
}

// fillDemo stores and indexes the invented history.
func (a *app) fillDemo(ctx context.Context) (conversations int, err error) {
	err = a.with(ctx, wiring{}, func(s *opened) (err error) {
		if _, err := recordCatalogue(ctx, s.store, s.catalogue); err != nil {
			return err
		}
		if conversations, err = demo.Fill(ctx, s.store, s.catalogue, a.now()); err != nil {
			return err
		}
		_, err = s.index.CatchUp(ctx)
		return err
	})
	return conversations, err
}
