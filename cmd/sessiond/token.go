package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sessiond/internal/web/guard"
)

func (a *app) tokenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "token", Short: "Print the token for HTTP clients (created on first use)",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			token, _, err := guard.EnsureToken(cfg.TokenFile)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(map[string]string{"token": token, "file": cfg.TokenFile})
			}
			_, err = fmt.Fprintln(a.out, token)
			return err
		},
	}
}
