package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/guard"
)

func (a *app) tokenCommand() *cobra.Command {
	var t store.Token
	var source string
	cmd := &cobra.Command{
		Use: "token [add NAME | ls | rm NAME]", Short: "Print the token for HTTP clients, or make named tokens",
		Args: arguments(0, 2),
		Long: "Without arguments it prints the daemon's own token, which allows everything, and creates it on\n" +
			"first use. `add` makes a named token and prints it, once: it sees and writes the sessions of one\n" +
			"owner, by the routes below /v1. Sessions that it creates are that owner's. It is valid at once\n" +
			"for every daemon of the database, and until `rm`. `ls` lists the named tokens.",
		Example: "  sessiond token\n  sessiond token add laptop --owner ana\n" +
			"  sessiond token add bot --owner team --key agent:support:\n  sessiond token rm laptop",
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Source = session.Source(source)
			given := strings.Join(args, " ")
			switch {
			case len(args) == 0:
				return a.printToken()
			case given == "ls":
				return a.read(cmd.Context(), func(s *store.Store) error { return a.listTokens(cmd.Context(), s) })
			case len(args) == 2 && args[0] == "add":
				t.Name = args[1]
				return a.addToken(cmd.Context(), t)
			case len(args) == 2 && args[0] == "rm":
				return a.write(cmd.Context(), func(s *store.Store) error { return s.RemoveToken(cmd.Context(), args[1]) })
			}
			return usagef("token takes `add NAME`, `ls` or `rm NAME`, not %q", given)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&t.Owner, "owner", "", "of add: `OWNER` of the sessions, such as a person's name")
	fl.StringVar(&source, "source", "", "of add: only sessions of this `PROGRAM`, such as codex")
	fl.StringVar(&t.KeyPrefix, "key", "", "of add: only sessions whose routing key begins with `PREFIX`")
	return cmd
}

func (a *app) printToken() error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	token, _, err := guard.EnsureToken(cfg.TokenFile)
	if err != nil {
		return err
	}
	return a.report(map[string]string{"token": token, "file": cfg.TokenFile}, "%s\n", token)
}

func (a *app) addToken(ctx context.Context, t store.Token) error {
	switch {
	case t.Owner == "":
		return usagef("--owner is missing: it says whose sessions the token sees")
	case t.Source != "" && !slices.Contains(session.ProgramNames(), string(t.Source)):
		return usagef("--source %q is no program that sessiond knows", t.Source)
	}
	return a.write(ctx, func(s *store.Store) error {
		token, err := s.AddToken(ctx, t)
		if err != nil {
			return err
		}
		return a.report(map[string]string{"name": t.Name, "token": token}, "%s\n", token)
	})
}

func (a *app) listTokens(ctx context.Context, s *store.Store) error {
	all, err := s.Tokens(ctx)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(all)
	}
	if len(all) == 0 {
		_, err = fmt.Fprintln(a.out, "no named tokens: `sessiond token add NAME --owner OWNER` makes one")
		return err
	}
	rows := make([][]string, len(all))
	for i, t := range all {
		rows[i] = []string{
			t.Name, t.Owner, cmp.Or(string(t.Source), "–"), cmp.Or(t.KeyPrefix, "–"),
			transcript.Ago(t.CreatedAt.Time, a.now().In(a.cfg.Zone())),
		}
	}
	a.printTable([]column{{name: "NAME"}, {name: "OWNER"}, {name: "SOURCE"}, {name: "KEY", grow: true}, {name: "MADE"}},
		rows)
	return nil
}
