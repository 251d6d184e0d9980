package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/connect"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type logFlags struct {
	pageFlags
	op string
}

func (a *app) logCommand() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use: "log -- PATH...", Short: "List the conversations that read or changed a file", Args: arguments(1, unlimited),
		Long: "Lists every conversation, of every agent, whose tools read or changed one of the\n" +
			"files, newest first. A folder means every file below it. A deleted or moved file\n" +
			"is found by its old path. The same file in another worktree of the repository counts.",
		Example: "  sessiond log -- main.go\n  sessiond log --op changed -n 5 -- internal/store\n" +
			"  sessiond log -- . ~/old/place/of/this",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		RunE: a.onPagedStore(func(ctx context.Context, s *store.Store, args []string) error {
			return a.fileLog(ctx, s, args, f)
		}),
	}
	wordFlag(cmd, &f.op, "op", "only this operation: read, changed (write, edit or delete), write, edit, delete",
		"read", "changed", string(session.OpWrite), string(session.OpEdit), string(session.OpDelete))
	fl := cmd.Flags()
	f.pageFlags.add(fl, defaultLimit)
	fl.BoolVar(&f.oldest, "oldest", false, "oldest first")
	return cmd
}

func (a *app) fileLog(ctx context.Context, s *store.Store, args []string, f logFlags) error {
	var filter store.FileFilter
	var names []string
	filter.Ops = store.OpsNamed(f.op)
	for _, arg := range args {
		if arg == "" {
			return usagef("a PATH is empty; . means this folder")
		}
		names = append(names, folders.Join(a.dir, arg))
	}
	var err error
	if filter.Paths, err = s.FilePaths(ctx, names...); err != nil {
		return err
	}
	data, next, err := readPages(a.lengthOfList(f.pageFlags), store.Page{Cursor: f.cursor, Ascending: f.oldest},
		func(page store.Page) ([]store.FileSession, string, error) {
			return s.FileSessions(ctx, filter, page)
		})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(data, next))
	}
	if len(data) == 0 {
		return a.printNoTouch(ctx, s, args, filter.Paths, f.op)
	}
	a.printFileLog(s, filter.Paths, data)
	a.printMore(next)
	return nil
}

// mostEndings limits the paths that are named instead of one without a conversation.
const mostEndings = 5

// printNoTouch says that nobody touched the named files, and which files of other folders end in one of the names.
func (a *app) printNoTouch(ctx context.Context, s *store.Store, args, paths []string, op string) error {
	did := cmp.Or(map[string]string{"": "read or changed", "write": "wrote", "edit": "edited", "delete": "deleted"}[op],
		op)
	line := fmt.Sprintf("No conversation %s %s.", did, printable(strings.Join(args, ", ")))
	var alike []string
	for _, arg := range args {
		found, err := s.FilesEnding(ctx, arg)
		if err != nil {
			return err
		}
		for _, f := range found {
			if slices.Contains(paths, f.Path) { // in another way than was asked for
				continue
			}
			if name := connect.QuoteShell(printable(f.Path)); len(alike) <= mostEndings && !slices.Contains(alike, name) {
				alike = append(alike, name)
			}
		}
	}
	if len(alike) > mostEndings {
		alike = append(alike[:mostEndings], "…")
	}
	if len(alike) > 0 {
		line += " Paths that end so:\n  " + strings.Join(alike, "\n  ")
	}
	_, err := fmt.Fprintln(a.out, line)
	return err
}

// printFileLog prints a line for each session. It has a column of files only if they are not just
// the named one.
func (a *app) printFileLog(s *store.Store, paths []string, data []store.FileSession) {
	touched := map[string]bool{}
	below := false
	rows := make([][]string, len(data))
	for i, f := range data {
		for _, file := range f.Files {
			touched[file] = true
			below = below || len(touched) > 1 || !slices.Contains(paths, file)
		}
		rows[i] = []string{
			f.Last.At.In(s.Zone()).Format("2006-01-02 15:04"), f.Last.Message.String(), string(f.Session.Source), did(f.Ops),
			a.filesTold(f), cmp.Or(transcript.OneLine(f.Session.Title, 80), "–"),
		}
	}
	cols := []column{
		{name: "last", keep: 4},
		{name: "message"},
		{name: "source", keep: 2},
		{name: "did", keep: 3},
		{name: "files", keep: 1, grow: true, least: 12},
		{name: "title", grow: true, least: a.leastTitle(len("20260211_001.100"))},
	}
	if !below {
		cols = slices.Delete(cols, 4, 5)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 4, 5)
		}
	}
	a.printTable(cols, rows)
}

// did counts the operations: edit 2, read.
func did(ops map[session.FileOp]int) string {
	var all []string
	for _, op := range []session.FileOp{session.OpWrite, session.OpEdit, session.OpDelete, session.OpRead} {
		switch n := ops[op]; {
		case n == 1:
			all = append(all, string(op))
		case n > 1:
			all = append(all, fmt.Sprintf("%s %d", op, n))
		}
	}
	return strings.Join(all, ", ")
}

// filesTold names the last of a session's files, relative to this folder, and counts the others.
func (a *app) filesTold(f store.FileSession) string {
	name := f.Last.Path
	if near, err := filepath.Rel(a.dir, name); err == nil && near != ".." && !strings.HasPrefix(near, "../") {
		name = near
	}
	if n := len(f.Files) + f.More - 1; n > 0 {
		return fmt.Sprintf("%s + %d", name, n)
	}
	return name
}
