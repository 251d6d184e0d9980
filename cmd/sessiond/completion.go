package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a completion script for your shell", Args: arguments(1, 1),
		ValidArgs: []string{"bash", "zsh", "fish"},
		Long:      "Prints a script for bash, zsh or fish. It completes commands, flags, sessions and named queries.",
		Example: "  source <(sessiond completion bash)         # in ~/.bashrc\n" +
			"  source <(sessiond completion zsh)          # in ~/.zshrc, after compinit\n" +
			"  sessiond completion fish | source          # in ~/.config/fish/config.fish",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(a.out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(a.out)
			case "fish":
				return cmd.Root().GenFishCompletion(a.out, true)
			}
			return usagef("no completion for %q; supported shells: bash, zsh, fish", args[0])
		},
	}
}

// completeSession offers the newest sessions; the shell filters them by what was typed.
func (a *app) completeSession(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	const newest = 50
	var offers []string
	if len(given) == 0 {
		// Without a database there is nothing to offer; a completion reports no errors.
		_ = a.readItself(cmd.Context(), func(s *store.Store) error {
			sessions, _, err := s.Sessions(cmd.Context(), store.Filter{People: true}, store.Page{Limit: newest})
			for _, sess := range sessions {
				offers = append(offers, cobra.CompletionWithDesc(string(sess.ID), printable(cmp.Or(sess.Title, "–"))))
			}
			return err
		})
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeFilters completes the filters of sessions by the values that sessions have.
func (a *app) completeFilters(cmd *cobra.Command) {
	for flag, column := range map[string]store.Column{
		"source": store.ColumnSource, "model": store.ColumnModel, "project": store.ColumnProject,
		"directory": store.ColumnDirectory, "tag": store.ColumnTag,
		"branch": store.ColumnBranch,
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) (offers []string,
			_ cobra.ShellCompDirective,
		) {
			_ = a.readItself(cmd.Context(), func(s *store.Store) error {
				values, err := s.Values(cmd.Context(), column)
				for _, v := range values {
					offers = append(offers, cobra.CompletionWithDesc(printable(v.Text), transcript.Counted(v.Sessions, "session")))
				}
				return err
			})
			return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}) // fails only if the flag is missing
	}
	for _, flag := range []string{"parent", "children", "forks"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective,
		) {
			return a.completeSession(cmd, nil, typed)
		})
	}
}

// completeQuery offers the named queries.
func completeQuery(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	if all, err := analytics.Queries(false); err == nil && len(given) == 0 {
		for _, q := range all {
			offers = append(offers, cobra.CompletionWithDesc(q.Name, q.Description))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
