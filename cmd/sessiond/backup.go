package main

import (
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/store"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup OUT", Short: "Back up the database to a file, also while the daemon runs", Args: arguments(1, 1),
		Example: "  sessiond backup ~/sessions-today.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readItself(cmd.Context(), func(s *store.Store) error {
				size, err := s.Backup(cmd.Context(), a.absolute(args[0]))
				if err != nil {
					return err
				}
				return a.report(map[string]any{"path": args[0], "bytes": size}, "%s: %s, checked and on disk\n", args[0],
					humanize.Bytes(uint64(size)))
			})
		},
	}
}
