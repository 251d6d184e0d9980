package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func (a *app) doctorCommand() *cobra.Command {
	var quick bool
	var recover, report string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the database file and recount its counters",
		Example: "  sessiond doctor\n  sessiond doctor --recover ~/recovered.db\n  sessiond doctor --report codex",
		Long: `Check the database file and recount its counters. Changes nothing.

With --recover OUT, copy what can be read of a damaged database into the new file OUT, say what
could not be read, and check OUT. Stop the daemon first. To go on with OUT, put it in the place of
the database, and remove the files of the old one that end in -wal and -shm.

With --report PROGRAM, print which kinds of rows the histories of a program have, for a report of a
fault: versions, kinds, numbers and bytes. No text, title, path or name is in it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if recover != "" {
				return a.recover(ctx, a.absolute(recover))
			}
			if report != "" {
				return a.reportRows(ctx, report)
			}
			return a.readItself(ctx, func(s *store.Store) error {
				checks, err := s.Doctor(ctx, quick)
				if err != nil {
					return err
				}
				return a.printChecks(append(checks, a.connectionChecks()...), nil)
			})
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "skip the check of each page of the file")
	cmd.Flags().StringVar(&recover, "recover", "", "copy what can be read into the new file `OUT`")
	cmd.Flags().StringVar(&report, "report", "", "print the kinds of rows of `PROGRAM`, without any content")
	cmd.MarkFlagsMutuallyExclusive("quick", "recover", "report")
	return cmd
}

// reportRows prints the kinds of rows that a program's imported histories have.
func (a *app) reportRows(ctx context.Context, name string) error {
	program, known := session.ProgramNamed(name)
	if !known {
		return usagef("--report %q is no program that sessiond reads; `sessiond import --help` lists them", name)
	}
	return a.readItself(ctx, func(s *store.Store) error {
		rows := map[string]string{"source": string(program.Name)}
		found, err := analytics.New(s.Reader(), s.Zone()).WithSQL(s.SQLReader()).Run(ctx, "rows-of-program", rows)
		if err != nil {
			return err
		}
		if len(found.Rows) == 0 {
			return session.Errorf(session.NotFound,
				"no history of %s is imported; `sessiond import %s` imports what is on this host", program.Title, program.Name)
		}
		if a.flags.json {
			return a.printJSON(found)
		}
		v := buildVersion()
		fmt.Fprintf(a.out, "sessiond %s, %s/%s\n\n", v.Version, runtime.GOOS, runtime.GOARCH)
		a.printResult(found)
		return nil
	})
}

func (a *app) recover(ctx context.Context, out string) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	tables, err := store.Recover(ctx, cfg.DB, out, store.Options{})
	if err != nil {
		return err
	}
	for _, t := range tables {
		if a.flags.json {
			break
		}
		if t.Rows > 0 || len(t.Lost) > 0 {
			fmt.Fprintf(a.out, "%-16s %s rows copied\n", t.Table, humanize.Comma(t.Rows))
		}
		for _, lost := range t.Lost {
			fmt.Fprintf(a.out, "%-16s LOST: %s\n", "", lost)
		}
	}
	s, err := store.Open(ctx, out, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	checks, err := s.Doctor(ctx, false)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	return a.printChecks(checks, tables)
}

// printChecks prints what doctor found; tables are what was recovered before.
func (a *app) printChecks(checks []store.Check, tables []store.Recovered) error {
	ok := true
	for _, c := range checks {
		ok = ok && c.OK
	}
	if a.flags.json {
		if err := a.printJSON(struct {
			OK        bool              `json:"ok"`
			Checks    []store.Check     `json:"checks"`
			Recovered []store.Recovered `json:"recovered,omitempty"`
		}{ok, checks, tables}); err != nil {
			return err
		}
	} else {
		advice := ""
		for _, c := range checks {
			mark := "ok  "
			if !c.OK {
				mark = "BAD "
			} else if c.Advice != "" {
				mark = "note"
			}
			indent := strings.Repeat(" ", 22)
			fmt.Fprintf(a.out, "%s %-16s %s\n", mark, c.Name, a.fit(printable(c.Detail), indent))
			if c.Advice != advice && c.Advice != "" { // several checks in a row often have the same
				fmt.Fprintln(a.out, indent+a.fit(c.Advice, indent))
				advice = c.Advice
			}
		}
	}
	if !ok {
		return quietError{errors.New("a check failed")}
	}
	return nil
}
