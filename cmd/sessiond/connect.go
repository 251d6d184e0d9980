package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"sessiond/internal/connect"
	"sessiond/internal/history"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type connectFlags struct{ dryRun, yes, remove, atStart, forPrompts, beforeEdits bool }

func (a *app) connectCommand() *cobra.Command {
	var names []string
	for _, p := range a.host().Programs() {
		names = append(names, p.Name)
	}
	var f connectFlags
	cmd := &cobra.Command{
		Use: "connect [PROGRAM...]", Short: "Connect the agent programs on this host with sessiond",
		Args: arguments(0, unlimited),
		Long: "Adds sessiond to the configuration of PROGRAM, or of all programs found: its MCP server, with which\n" +
			"a model searches earlier sessions; hooks, which bring back what a compaction lost; and a skill, which\n" +
			"says when to search. Programs: " + strings.Join(names, ", ") + ".\n" +
			"It shows the changes and asks first. The rest of each file stays as it is, and a backup is kept beside\n" +
			"(NAME" + connect.BackupSuffix + "). --remove undoes it.",
		Example:   "  sessiond connect --dry-run\n  sessiond connect claude-code codex\n  sessiond connect --remove",
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "dry-run", "yes"); err != nil {
				return err
			}
			for _, hook := range []string{"at-start", "for-prompts", "before-edits"} {
				if err := exclusive(cmd, "remove", hook); err != nil {
					return err
				}
			}
			programs, err := a.programs(cmd.Context(), args)
			if err != nil {
				return err
			}
			return a.connect(cmd.Context(), programs, f)
		},
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the changes, write nothing")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&f.remove, "remove", false, "remove sessiond from the configurations")
	fl.BoolVar(&f.atStart, "at-start", false, "also a hook when a session starts")
	fl.BoolVar(&f.forPrompts, "for-prompts", false, "also a hook for each prompt")
	fl.BoolVar(&f.beforeEdits, "before-edits", false, "also a hook before a file is edited")
	return cmd
}

func (a *app) host() connect.Host { return connect.Host{System: a.system, Getenv: a.getenv} }

// programs returns the named programs, or those found on this host.
func (a *app) programs(ctx context.Context, names []string) ([]connect.Program, error) {
	if !filepath.IsAbs(a.getenv("HOME")) {
		return nil, session.Errorf(session.Invalid, "HOME is not set: it says where the programs keep their configurations")
	}
	var known []string
	programs := a.host().Programs()
	for _, p := range programs {
		known = append(known, p.Name)
	}
	var chosen []connect.Program
	if len(names) == 0 {
		chosen = slices.DeleteFunc(programs, func(p connect.Program) bool { return !a.here(p) })
		if len(chosen) == 0 {
			return nil, session.Errorf(session.NotFound, "no agent program is on this host; known: %s",
				strings.Join(known, ", "))
		}
		return chosen, nil
	}
	for _, name := range names {
		reads := false
		if p, ok := session.ProgramNamed(name); ok { // by a title or an alias
			name, reads = string(p.Name), true
		}
		at := slices.IndexFunc(programs, func(p connect.Program) bool { return p.Name == name })
		switch {
		case at < 0 && reads:
			return nil, usagef("sessiond imports the histories of %s, but cannot connect it; known: %s", name,
				strings.Join(known, ", "))
		case at < 0:
			return nil, usagef("unknown program %q; known: %s", name, strings.Join(known, ", "))
		case !a.here(programs[at]) && !a.imported(ctx, name):
			return nil, session.Errorf(session.NotFound, "%s is not on this host: %s does not exist, PATH has no such program, "+
				"and no history of it was imported", name, programs[at].Folder)
		}
		if !slices.ContainsFunc(chosen, func(p connect.Program) bool { return p.Name == name }) {
			chosen = append(chosen, programs[at])
		}
	}
	return chosen, nil
}

// here reports whether a program is on this host, or a history of it where the program keeps it: a program that was
// started by npx has no more.
func (a *app) here(p connect.Program) bool {
	return a.host().Found(p) || slices.ContainsFunc(a.sources(), func(src history.Source) bool {
		return string(src.Name()) == p.Name && slices.ContainsFunc(src.Places(), func(place string) bool {
			_, err := os.Stat(place)
			return err == nil
		})
	})
}

// imported reports whether the database has sessions of a program.
func (a *app) imported(ctx context.Context, name string) (found bool) {
	err := a.readItself(ctx, func(s *store.Store) error {
		sources, err := s.Values(ctx, store.ColumnSource)
		found = slices.ContainsFunc(sources, func(v store.Value) bool { return v.Text == name })
		return err
	})
	return err == nil && found
}

// connection is a program with the changes that connect it.
type connection struct {
	Program string   `json:"program"`
	State   string   `json:"state"`           // before
	Files   []string `json:"files,omitempty"` // to change
	Written bool     `json:"written"`
	Error   string   `json:"error,omitempty"`
	changes []connect.Change
	done    int // of them
}

// connect plans, shows, asks and writes. A program with a broken file is left out, and fails the command at its end.
func (a *app) connect(ctx context.Context, programs []connect.Program, f connectFlags) error {
	binary, err := "", error(nil) // a removal needs none
	if !f.remove {
		if binary, err = a.lastingSelf(ctx, f.yes, f.dryRun); err != nil {
			return err
		}
	}
	wanted := connect.Wanted{Binary: binary, Events: connect.Events(f.atStart, f.forPrompts, f.beforeEdits)}
	plan, failed := a.planConnections(programs, wanted, f.remove)
	changes := 0
	for _, c := range plan {
		changes += len(c.changes)
	}
	if a.flags.json {
		if changes > 0 && f.yes {
			err = a.writeConnections(plan)
		}
		return errors.Join(a.printJSON(map[string]any{"data": plan}), cmp.Or(err, failed))
	}
	a.printConnections(plan, f.dryRun)
	switch {
	case changes == 0:
		if failed == nil {
			fmt.Fprintln(a.out, "\nThere is nothing to change.")
		}
		return failed
	case f.dryRun:
		fmt.Fprintln(a.out, "\nNothing was written (--dry-run).")
		return failed
	case !f.yes && !a.inTTY:
		return usagef("nothing was changed: no terminal to ask on; --yes writes without asking")
	case !f.yes:
		question := fmt.Sprintf("\nWrite %s? [y/N] ", transcript.Counted(changes, "change"))
		if sure, err := a.ask(ctx, question, false); err != nil || !sure {
			return errors.Join(err, failed)
		}
	}
	err = a.writeConnections(plan)
	a.printWritten(plan, f.remove)
	return cmp.Or(err, failed)
}

// planConnections reads the programs' files. Its error is that of a broken file, and told.
func (a *app) planConnections(programs []connect.Program, wanted connect.Wanted,
	remove bool,
) (plan []*connection, failed error) {
	planner := a.host().Planner()
	for _, p := range programs {
		c := &connection{Program: p.Name}
		state, err := p.State()
		if err == nil {
			c.changes, err = planner.Plan(p, wanted, remove)
		}
		c.State = state.String()
		if err != nil {
			c.State, c.Error = "error", err.Error()
			a.warn("%s: nothing was changed: %s", p.Name, err)
			failed = quietError{err}
		}
		for _, change := range c.changes {
			c.Files = append(c.Files, change.Path)
		}
		plan = append(plan, c)
	}
	return plan, failed
}

// printWritten says which files were written, and what is left for the user to do.
func (a *app) printWritten(plan []*connection, removed bool) {
	written := false
	for _, c := range plan {
		hooked := false
		for _, change := range c.changes[:c.done] {
			verb := "wrote"
			if change.New == nil {
				verb = "deleted"
			}
			fmt.Fprintf(a.out, "%s: %s %s\n", c.Program, verb, inOneLine(change.Path))
			written, hooked = true, hooked || slices.Contains(change.Parts, connect.Hooks)
			if change.Left {
				fmt.Fprintf(a.out, "%s: %s has the entry of sessiond that was there before `sessiond connect`; the same command "+
					"again removes it.\n", c.Program, inOneLine(change.Path))
			}
		}
		if hooked && c.Program == "codex" && !removed {
			fmt.Fprintln(a.out, "codex: it skips new and changed hooks until you trust them: type /hooks in Codex.")
		}
	}
	if written && !removed {
		fmt.Fprintln(a.out, "Restart running programs to see the change.")
	}
}

// writeConnections writes the changes. A file that cannot be written is told, and stops its program, not the others.
func (a *app) writeConnections(plan []*connection) (failed error) {
	unlock, err := a.host().Lock()
	if err != nil {
		return err
	}
	defer unlock() //nolint:errcheck // ends with the process at the latest
	for _, c := range plan {
		for _, change := range c.changes {
			if err := change.Write(); err != nil {
				c.Error = err.Error()
				a.warn("%s: %s", c.Program, err)
				failed = quietError{err}
				break
			}
			c.done++
		}
		c.Written = c.done > 0
	}
	return failed
}

// printConnections prints what is connected and what would be, then the changes as a diff. Secrets beside them are
// masked. With whole it also prints the texts of new files, which are sessiond's own.
func (a *app) printConnections(plan []*connection, whole bool) {
	var rows [][]string
	var added, changed, removed int
	for _, c := range plan {
		var parts []string
		for _, change := range c.changes {
			for _, part := range change.Parts {
				if !slices.Contains(parts, string(part)) {
					parts = append(parts, string(part))
				}
			}
			switch {
			case change.Old == nil:
				added++
			case change.New == nil:
				removed++
			default:
				changed++
			}
		}
		rows = append(rows, []string{c.Program, c.State, strings.Join(parts, ", ")})
	}
	a.printTable([]column{{name: "program"}, {name: "now", least: 13, grow: true}, {name: "to change", keep: 1}}, rows)
	if added+changed+removed == 0 {
		return
	}
	var sums []string
	for _, n := range []struct {
		files int
		what  string
	}{{added, "new"}, {changed, "changed"}, {removed, "deleted"}} {
		if n.files > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", n.files, n.what))
		}
	}
	files := "files"
	if added+changed+removed == 1 {
		files = "file"
	}
	fmt.Fprintf(a.out, "\n%s %s:\n", strings.Join(sums, ", "), files)
	for _, c := range plan {
		for _, change := range c.changes {
			a.printChange(change, whole)
		}
	}
}

// printChange prints a change of a file as a diff, or its name alone if it is new and its text is not asked for.
func (a *app) printChange(c connect.Change, whole bool) {
	oldName, newName := inOneLine(c.Path), inOneLine(c.Path)
	switch {
	case c.Old == nil && !whole:
		fmt.Fprintf(a.out, "+++ %s (new, %s; --dry-run shows it)\n", newName,
			transcript.Counted(bytes.Count(c.New, []byte("\n")), "line"))
		return
	case c.New == nil && !whole:
		fmt.Fprintf(a.out, "--- %s (deleted)\n", oldName)
		return
	case c.Old == nil:
		oldName = os.DevNull
	case c.New == nil:
		newName = os.DevNull
	}
	said, _ := redact.Mask(string(diff.Diff(oldName, c.Old, newName, c.New)))
	_, said, _ = strings.Cut(said, "\n") // `diff OLD NEW`
	_, _ = io.WriteString(a.out, "\n"+said)
}

// connectionChecks are doctor's lines about the programs on this host. None of them fails the check.
func (a *app) connectionChecks() []store.Check {
	var checks []store.Check
	for _, p := range a.host().Programs() {
		if !a.here(p) {
			continue
		}
		c := store.Check{Name: p.Name, OK: true}
		state, err := p.State()
		if c.Detail = state.String(); err != nil {
			c.Detail = "cannot be read: " + err.Error()
		}
		if state.Gone != "" {
			c.Detail += ", but " + state.Gone + " does not exist: run `sessiond connect` again"
		}
		if len(state.Pending) > 0 {
			c.Detail += ": type /hooks in Codex"
		}
		if at, answered := a.lastAnswer(p.Name); answered {
			c.Detail += ", last answered " + transcript.Ago(at, a.now())
		}
		checks = append(checks, c)
	}
	return checks
}

// self returns the absolute path with which sessiond was started. A symbolic link stays one: it outlives an update.
func (a *app) self() (string, error) {
	path := a.program
	if strings.ContainsRune(path, filepath.Separator) {
		return a.absolute(path), nil
	}
	running, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find sessiond itself: %w", err)
	}
	// By its name, the PATH has led to it, unless its caller gave it that name.
	if found, err := exec.LookPath(path); err == nil {
		one, err := os.Stat(found)
		if two, err2 := os.Stat(running); err == nil && err2 == nil && os.SameFile(one, two) {
			return a.absolute(found), nil
		}
	}
	return running, nil
}
