package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/store"
)

func (a *app) doctorCommand() *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the database file and recount its counters",
		RunE: a.onStore(func(ctx context.Context, s *store.Store, _ []string) error {
			checks, err := s.Doctor(ctx, quick)
			if err != nil {
				return err
			}
			return a.printChecks(checks)
		}),
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "skip the check of each page of the file")
	return cmd
}

func (a *app) printChecks(checks []store.Check) error {
	ok := true
	for _, c := range checks {
		ok = ok && c.OK
	}
	if a.flags.json {
		if err := a.printJSON(struct {
			OK     bool          `json:"ok"`
			Checks []store.Check `json:"checks"`
		}{ok, checks}); err != nil {
			return err
		}
	} else {
		advice := ""
		for _, c := range checks {
			mark := "ok  "
			if !c.OK {
				mark = "BAD "
			}
			indent := strings.Repeat(" ", 22)
			fmt.Fprintf(a.out, "%s %-16s %s\n", mark, c.Name, a.fit(printable(c.Detail), indent))
			if c.Advice != advice && !c.OK { // several checks in a row often have the same
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
