package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/store"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup OUT", Short: "Copy the database whole, also while the daemon runs", Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), func(s *store.Store) error {
				size, err := s.Backup(cmd.Context(), a.absolute(args[0]))
				if err != nil {
					return err
				}
				if a.flags.json {
					return a.printJSON(map[string]any{"path": args[0], "bytes": size})
				}
				_, err = fmt.Fprintf(a.out, "%s: %s, checked and on disk\n", args[0], humanize.Bytes(uint64(size)))
				return err
			})
		},
	}
}
