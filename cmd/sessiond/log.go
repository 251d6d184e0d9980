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
)

type logFlags struct {
	op, cursor string
	limit      int64
	oldest     bool
}

func (a *app) logCommand() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use: "log -- PATH...", Short: "List the conversations that read or changed a file", Args: arguments(1, unlimited),
		Long: "Lists every conversation, of every agent, whose tools read or changed one of the\n" +
			"files, the last first. A folder stands for all that is below it. A file that was\n" +
			"moved is named by its old path, too: it need not be there any more.",
		Example: "  sessiond log -- main.go\n  sessiond log --op changed -n 5 -- internal/store\n  sessiond log -- . ~/old/place/of/this",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), func(s *store.Store) error { return a.fileLog(cmd.Context(), s, args, f) })
		},
	}
	wordFlag(cmd, &f.op, "op", "only who did this: read, changed (write, edit or delete), write, edit, delete",
		"read", "changed", string(session.OpWrite), string(session.OpEdit), string(session.OpDelete))
	fl := cmd.Flags()
	numberFlag(fl, &f.limit, "limit", "n", 1, "how many (default: 30 on a terminal, else all)")
	fl.BoolVar(&f.oldest, "oldest", false, "the first that did so first")
	fl.StringVar(&f.cursor, "cursor", "", "next_cursor of the list before")
	return cmd
}

func (a *app) fileLog(ctx context.Context, s *store.Store, args []string, f logFlags) error {
	var filter store.FileFilter
	filter.Ops = store.OpsNamed(f.op)
	for _, arg := range args {
		if arg == "" {
			return usageError{fmt.Errorf("an empty PATH names no file; . is this folder")}
		}
		filter.Paths = append(filter.Paths, a.spellings(arg)...)
	}
	slices.Sort(filter.Paths)
	filter.Paths = slices.Compact(filter.Paths)
	limit := int(f.limit)
	if limit == 0 && a.outTTY {
		limit = 30
	}
	page := store.Page{Limit: limit, Cursor: f.cursor, Ascending: f.oldest}
	if limit == 0 {
		page.Limit = 1000
	}
	data, next, err := s.FileSessions(ctx, filter, page)
	for err == nil && limit == 0 && next != "" {
		var more []store.FileSession
		page.Cursor = next
		more, next, err = s.FileSessions(ctx, filter, page)
		data = append(data, more...)
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(listOf(data, next))
	}
	if len(data) == 0 {
		_, err := fmt.Fprintf(a.out, "No conversation %s %s.\n", didTo(f.op), printable(strings.Join(args, ", ")))
		return err
	}
	a.printFileLog(s, filter.Paths, data)
	if next != "" {
		fmt.Fprintln(a.out, a.dim("… and more: --limit shows them"))
	}
	return nil
}

func didTo(op string) string {
	switch op {
	case "":
		return "read or changed"
	case string(session.OpWrite):
		return "wrote"
	case string(session.OpEdit):
		return "edited"
	case string(session.OpDelete):
		return "deleted"
	}
	return op // read, changed
}

// spellings are the absolute names under which a tool may have met a path: as it is written,
// and with its links resolved, as far as it is still there.
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

// printFileLog prints a line for each session. Which files they were is told only where more
// than the named ones may be meant.
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
		{name: "last", keep: 3},
		{name: "message"},
		{name: "source", keep: 2},
		{name: "did"},
		{name: "files", keep: 1, grow: true, least: 12},
		{name: "title", grow: true, least: 12},
	}
	if !below {
		cols = slices.Delete(cols, 4, 5)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 4, 5)
		}
	}
	a.printTable(cols, rows)
}

// did tells what was done how often: edit 2, read.
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

// filesTold names a session's files as one would from here: the last one, and how many others.
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
