package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
)

// settingText formats a setting's value as in the file; an unset one is a dash.
func settingText(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case string:
		return printable(v)
	case []string:
		return "[" + printable(strings.Join(v, ", ")) + "]"
	case map[string]any:
		b, err := session.MarshalPlain(v)
		if err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(v)
}

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the configuration and the source of each value",
		Example: "  sessiond config\n  SESSIOND_LISTEN=127.0.0.1:8000 sessiond config",
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
				rows = append(rows, []string{v.Key, settingText(v.Value), v.Origin})
			}
			a.printTable([]column{{name: "key"}, {name: "value", least: 20, grow: true}, {name: "from"}}, rows)
			for _, w := range cfg.Warnings() {
				a.warn("%s", w)
			}
			return nil
		},
	}
}
