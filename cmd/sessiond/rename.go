package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// longestTitle is the longest title that rename stores, in columns.
const longestTitle = 200

func (a *app) renameCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rename SESSION TITLE", Short: "Give a session another title", Args: arguments(2, unlimited),
		ValidArgsFunction: a.completeSession,
		Long: "Sets the title of SESSION. No import and no model changes it afterwards. The source program\n" +
			"keeps its own title.",
		Example: "  sessiond rename @ 'The new parser'\n  sessiond rename 20260211_001 The new parser",
		RunE: func(cmd *cobra.Command, args []string) error {
			title := transcript.OneLine(strings.Join(args[1:], " "), longestTitle)
			if title == "" {
				return usagef("TITLE is empty: write the new title of the session")
			}
			return a.write(cmd.Context(), func(s *store.Store) error {
				sess, err := a.resolve(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				now, err := s.PatchSession(cmd.Context(), sess.ID, store.SessionPatch{Title: &title})
				if err != nil {
					return err
				}
				return a.report(now, "%s is now: %s\n", now.ID, now.Title)
			})
		},
	}
}

func (a *app) starCommand() *cobra.Command {
	var remove bool
	on := away{
		"star SESSION…", "Star sessions, to find them again",
		"`sessiond ls --starred` lists them. --remove takes the star away.", "starred",
		func(ctx context.Context, s *store.Store, id session.ID) (session.Session, error) {
			starred := !remove
			return s.PatchSession(ctx, id, store.SessionPatch{Starred: &starred})
		},
	}
	cmd := a.putAwayCommand(&on)
	cmd.Example = "  sessiond star @\n  sessiond star --remove 20260211_001\n  sessiond ls --starred"
	cmd.PreRun = func(*cobra.Command, []string) {
		if remove {
			on.done = "no longer starred"
		}
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the star")
	return cmd
}
