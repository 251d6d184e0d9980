package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/connect"
	"sessiond/internal/engine"
	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

func (a *app) uninstallCommand() *cobra.Command {
	var data, yes, dryRun bool
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Remove everything that sessiond added to this host", Args: arguments(0, 0),
		Long: "Stops and removes the service, removes sessiond from the configurations of all programs, and removes the\n" +
			"program itself where sessiond copied it. The conversations stay, with their settings: --data deletes\n" +
			"them, the search index, backups, token and configuration, too. What your agents keep themselves is\n" +
			"not touched. It shows what it removes and asks first.",
		Example: "  sessiond uninstall --dry-run\n  sessiond uninstall\n  sessiond uninstall --data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "dry-run", "yes"); err != nil {
				return err
			}
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			return a.uninstall(cmd.Context(), cfg, data, yes, dryRun)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&data, "data", false, "delete all conversations of sessiond and its configuration, too")
	fl.BoolVarP(&yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&dryRun, "dry-run", false, "show what would be removed, remove nothing")
	return cmd
}

// removal is what an uninstall removes.
type removal struct {
	service     bool
	connections []*connection
	data        []string // files of sessiond's own
	program     string   // a copy that sessiond made; "": another program installed it
}

// uninstall plans, shows, asks and removes. Codes: Conflict (a daemon runs that is no service).
func (a *app) uninstall(ctx context.Context, cfg *config.Config, data, yes, dryRun bool) error {
	r, err := a.planRemoval(data, cfg)
	if err != nil {
		return err
	}
	if d := daemonOf(cfg); d != nil && !r.service {
		return session.Errorf(session.Conflict,
			"a daemon runs that is no service (process %d): stop it first. Nothing was removed", d.PID)
	}
	kept := a.sizeOfData(ctx, cfg)
	if a.flags.json && !yes {
		return a.printJSON(r.listed())
	}
	if !a.flags.json {
		a.printRemoval(r, cfg, kept)
	}
	switch {
	case dryRun:
		fmt.Fprintln(a.out, "\nNothing was removed (--dry-run).")
		return nil
	case !r.service && len(r.connections) == 0 && len(r.data) == 0 && r.program == "":
		fmt.Fprintln(a.out, "\nThere is nothing to remove.")
		return nil
	case yes:
	case !a.inTTY:
		return usagef("nothing was removed: no terminal to ask on; --yes removes without asking")
	default:
		question := "\nRemove this? [y/N] "
		if data {
			question = "\nRemove this, and delete the conversations for good? [y/N] "
		}
		if sure, err := a.ask(ctx, question, false); err != nil || !sure {
			return err
		}
	}
	return a.remove(ctx, r)
}

// planRemoval looks for what sessiond added. It changes nothing.
func (a *app) planRemoval(data bool, cfg *config.Config) (r removal, err error) {
	if _, err := a.installedService(); err == nil {
		r.service = true
	}
	if filepath.IsAbs(a.getenv("HOME")) {
		plan, err := a.planConnections(a.host().Programs(), connect.Wanted{}, true)
		if err != nil {
			return r, err
		}
		r.connections = slices.DeleteFunc(plan, func(c *connection) bool { return len(c.changes) == 0 })
	}
	if data {
		r.data = a.dataFiles(cfg)
	}
	if folder := a.user().Programs(); folder != "" {
		to := filepath.Join(folder, a.programName())
		if self, err := os.Executable(); err == nil && isSessiond(to, self) {
			r.program = to
		}
	}
	return r, nil
}

// isSessiond reports whether a file is this program, or one of the same content.
func isSessiond(path, self string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	same, err := sameFile(self, path)
	return err == nil && same
}

// dataFiles returns the files that sessiond wrote for itself, and the configuration in its own folder. Other files in
// these folders are not among them.
func (a *app) dataFiles(cfg *config.Config) []string {
	var files []string
	if !engine.IsPostgres(cfg.DB) {
		files = append(engine.FilesOf(cfg.DB), daemonFile(cfg, "lock"), daemonFile(cfg, "json"))
	}
	files = append(files, engine.FilesOf(indexPath(cfg))...)
	files = append(files, indexPath(cfg)+".lock", firstLog(cfg), firstLock(cfg).Path(), listsFile(cfg))
	for _, pattern := range []string{answeredFile(cfg, "*"), filepath.Join(cfg.DataDir(), ".token-*")} {
		found, _ := filepath.Glob(pattern) // a folder's name that is no pattern has no files for it
		files = append(files, found...)
	}
	if filepath.Dir(cfg.TokenFile) == cfg.DataDir() {
		files = append(files, cfg.TokenFile)
	}
	if filepath.IsAbs(cfg.Socket) {
		files = append(files, cfg.Socket)
	}
	if file, _ := cfg.File(); file != "" && filepath.Dir(file) == filepath.Join(a.user().Config(), "sessiond") {
		files = append(files, file, cfg.Models())
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(file string) bool {
		info, err := os.Lstat(file)
		return err != nil || info.IsDir()
	})
}

// sizeOfData says how many conversations the database has and how large its files are.
func (a *app) sizeOfData(ctx context.Context, cfg *config.Config) string {
	if engine.IsPostgres(cfg.DB) {
		return engine.PrintableName(cfg.DB)
	}
	var size int64
	for _, file := range a.dataFiles(cfg) {
		if info, err := os.Lstat(file); err == nil {
			size += info.Size()
		}
	}
	if size == 0 {
		return ""
	}
	sessions := ""
	if s, err := store.Open(ctx, cfg.DB, store.Options{ReadOnly: true, Now: a.now}); err == nil {
		var n int64
		if err := s.Reader().GetContext(ctx, &n, `SELECT COALESCE(SUM(sessions), 0) FROM daily_usage`); err == nil {
			sessions = transcript.Counted(n, "session") + ", "
		}
		_ = s.Close() // only read
	}
	return fmt.Sprintf("%s%s in %s", sessions, humanize.Bytes(uint64(size)), inOneLine(printable(cfg.DataDir())))
}

// listed returns a removal for programs.
func (r *removal) listed() map[string]any {
	return map[string]any{"service": r.service, "connections": r.connections, "data": r.data, "program": r.program}
}

func (a *app) printRemoval(r removal, cfg *config.Config, kept string) {
	gap := ""
	line := func(name, value string) {
		fmt.Fprintf(a.out, "%-14s %s\n", name, inOneLine(printable(value)))
		gap = "\n"
	}
	if r.service {
		if s, err := a.installedService(); err == nil {
			line("service", s.File)
		}
	}
	for _, c := range r.connections {
		for _, change := range c.changes {
			verb := "part of "
			if change.New == nil {
				verb = ""
			}
			line(c.Program, verb+change.Path)
		}
	}
	if r.program != "" {
		line("program", r.program)
	}
	if len(r.data) > 0 {
		line("conversations", fmt.Sprintf("%s (%s)", kept, transcript.Counted(len(r.data), "file")))
		if file, read := cfg.File(); read {
			line("configuration", file)
		}
	} else if kept != "" {
		fmt.Fprintln(a.out, gap+a.fit("Kept: "+kept+". --data deletes it, too.", "  "))
		gap = "\n"
	}
	if engine.IsPostgres(cfg.DB) {
		fmt.Fprintln(a.out, gap+"The database on the server stays: drop it there.")
	}
	if self, err := a.self(); err == nil && r.program == "" {
		fmt.Fprintln(a.out, gap+a.fit("The program stays: remove "+inOneLine(printable(self))+
			" with what installed it (apt, brew, npm), or delete it.", "  "))
	}
}

// remove removes all of it. What fails is told, and the rest goes nevertheless. The program is the last: it can be run
// again until then.
func (a *app) remove(ctx context.Context, r removal) error {
	var failed error
	if r.service {
		failed = a.uninstallService(ctx)
	}
	if len(r.connections) > 0 {
		failed = cmp.Or(failed, a.writeConnections(r.connections))
		if !a.flags.json {
			a.printWritten(r.connections, true)
		}
	}
	history.RemoveLeftovers()
	folders := map[string]bool{}
	for _, file := range r.data {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // a socket goes with its daemon
			a.warn("%s", err)
			failed = cmp.Or(failed, error(quietError{err}))
		}
		folders[filepath.Dir(file)] = true
	}
	for folder := range folders {
		if filepath.Base(folder) == "backups" {
			_ = os.Remove(folder)
			folders[filepath.Dir(folder)] = true
		}
	}
	for folder := range folders {
		if filepath.Base(folder) == "sessiond" { // an empty one of sessiond's own
			_ = os.Remove(folder)
		}
	}
	if r.program != "" && failed == nil {
		if err := os.Remove(r.program); err != nil {
			a.warn("%s", err)
			failed = quietError{err}
		}
	}
	if a.flags.json {
		return cmp.Or(a.printJSON(r.listed()), failed)
	}
	if failed == nil {
		fmt.Fprintln(a.out, "sessiond is removed.")
	}
	return failed
}
