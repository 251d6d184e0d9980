package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sessiond/internal/store"
)

func (a *app) doctorCommand() *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the file and recount everything that is counted",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.read(cmd.Context(), func(s *store.Store) error {
				checks, err := s.Doctor(cmd.Context(), quick)
				if err != nil {
					return err
				}
				return a.printChecks(checks)
			})
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "do not read every page of the file")
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
		for _, c := range checks {
			mark := "ok  "
			if !c.OK {
				mark = "BAD "
			}
			fmt.Fprintf(a.out, "%s %-16s %s\n", mark, c.Name, printable(c.Detail))
			if c.Advice != "" && !c.OK {
				fmt.Fprintf(a.out, "     %-16s %s\n", "", c.Advice)
			}
		}
	}
	if !ok {
		return quietError{errors.New("a check failed")}
	}
	return nil
}
