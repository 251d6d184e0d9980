package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/engine"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

func (a *app) copyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "copy FROM TO", Short: "Copy a database between a file and PostgreSQL", Args: arguments(2, 2),
		Long: "Copies a whole database: FROM and TO are a file or postgres://USER@HOST/DATABASE. Ids, names and\n" +
			"numbers stay. TO is a new file or an empty database, or a copy that broke off: it is continued.\n" +
			"Nothing may write to FROM between the two runs.",
		Example: "  sessiond copy sessions.db postgres://sessiond@db.example/sessiond",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.copyDatabase(cmd.Context(), a.database(args[0]), a.database(args[1]))
		},
	}
}

func (a *app) copyDatabase(ctx context.Context, fromName, toName string) (err error) {
	if fromName == toName {
		return usagef("FROM and TO are the same database")
	}
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	open := func(name string, readOnly bool) (*store.Store, error) {
		return store.Open(ctx, name, store.Options{ReadOnly: readOnly, Now: a.now, Zone: cfg.Zone()})
	}
	from, err := open(fromName, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := open(toName, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	counts := map[string]int64{}
	copied := int64(0)
	err = from.CopyTo(ctx, to, func(table string, rows int64) {
		if had, begun := counts[table]; begun {
			copied += rows - had
		}
		counts[table] = rows
		if a.outTTY && !a.flags.json {
			fmt.Fprintf(a.out, "\r\x1b[K%s: %s rows", table, humanize.Comma(rows))
		}
	})
	if a.outTTY && !a.flags.json {
		fmt.Fprint(a.out, "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	did := "now"
	if copied == 0 {
		did = "already: nothing was missing"
	}
	return a.report(map[string]any{
		"from": engine.PrintableName(fromName), "to": engine.PrintableName(toName),
		"rows": counts, "copied": copied,
	},
		"%s has %s and %s %s. `sessiond doctor --db` checks it; `sessiond serve --db` serves it.\n",
		engine.PrintableName(toName),
		transcript.Counted(counts["sessions"], "session"), transcript.Counted(counts["messages"], "message"), did)
}
