package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the configuration and where each value came from",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load(nil)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(cfg.Values())
			}
			rows := [][]string{}
			for _, v := range cfg.Values() {
				rows = append(rows, []string{v.Key, fmt.Sprint(v.Value), v.Origin})
			}
			a.printTable([]column{{name: "key"}, {name: "value", least: 20, grow: true}, {name: "from"}}, rows)
			for _, w := range cfg.Warnings() {
				fmt.Fprintln(a.err, "sessiond: "+w)
			}
			return nil
		},
	}
}
