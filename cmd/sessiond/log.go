package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
			"is found by its old path.",
		Example: "  sessiond log -- main.go\n  sessiond log --op changed -n 5 -- internal/store\n  sessiond log -- . ~/old/place/of/this",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		RunE: a.onPagedStore(func(ctx context.Context, s *store.Store, args []string) error { return a.fileLog(ctx, s, args, f) }),
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
	filter.Ops = store.OpsNamed(f.op)
	for _, arg := range args {
		if arg == "" {
			return usagef("a PATH is empty; . means this folder")
		}
		filter.Paths = append(filter.Paths, a.spellings(arg)...)
	}
	slices.Sort(filter.Paths)
	filter.Paths = slices.Compact(filter.Paths)
	data, next, err := readPages(a.lengthOfList(f.pageFlags), store.Page{Cursor: f.cursor, Ascending: f.oldest}, func(page store.Page) ([]store.FileSession, string, error) {
		return s.FileSessions(ctx, filter, page)
	})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(data, next))
	}
	if len(data) == 0 {
		did := cmp.Or(map[string]string{"": "read or changed", "write": "wrote", "edit": "edited", "delete": "deleted"}[f.op], f.op)
		_, err := fmt.Fprintf(a.out, "No conversation %s %s.\n", did, printable(strings.Join(args, ", ")))
		return err
	}
	a.printFileLog(s, filter.Paths, data)
	a.printMore(next)
	return nil
}

// spellings returns the absolute names that a tool may have used for a path: as written, and with
// symbolic links resolved as far as the path exists.
func (a *app) spellings(path string) []string {
	path = filepath.Clean(a.absolute(path))
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return []string{path, filepath.Join(real, rest)}
		}
		if at == filepath.Dir(at) {
			return []string{path}
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// printFileLog prints a line for each session. It has a column of files only if they are not just
// the named one.
func (a *app) printFileLog(s *store.Store, paths []string, data []store.FileSession) {
	below := false
	rows := make([][]string, len(data))
	for i, f := range data {
		for _, file := range f.Files {
			below = below || len(paths) > 2 || !slices.Contains(paths, file)
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
