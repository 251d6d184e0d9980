package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/secrets"
	"sessiond/internal/store"
)

func (a *app) secretsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "secrets", Short: "List the keys and passwords that stand in your histories",
		Long: "Reads all stored messages and lists the keys and passwords in them: what kind, when first and last,\n" +
			"in how many messages, which programs and providers they went to, and where to replace them.\n" +
			"It never prints a value. `sessiond show MESSAGE` shows one in its place.\n" +
			"A key of a known service has a shape; others are named by what stands before them (DB_PASS=…). It\n" +
			"finds what `sessiond export --redact` masks, so it misses a password in plain prose.\n" +
			"Examples, as manuals and tests have them, are counted; --all lists them.",
		Example: "  sessiond secrets\n  sessiond secrets --all\n  sessiond secrets --json",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.read(cmd.Context(), func(s *store.Store) error { return a.secrets(cmd.Context(), s, all) })
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list examples, too")
	return cmd
}

func (a *app) secrets(ctx context.Context, s *store.Store, all bool) error {
	last, err := s.LastMessageID(ctx)
	if err != nil {
		return err
	}
	bar := a.bar("reading", last, false)
	list, err := secrets.Scan(ctx, s, func(messages int) { _ = bar.Add(messages) }) // fails only to draw
	a.endBar(bar, err == nil)
	if err != nil {
		return err
	}
	examples := 0
	if !all {
		list = slices.DeleteFunc(list, func(secret secrets.Secret) bool {
			if secret.Example {
				examples++
			}
			return secret.Example
		})
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"data": list, "examples_left_out": examples})
	}
	if len(list) == 0 {
		fmt.Fprintln(a.out, "No key or password is in the stored messages, as far as their shapes and names say.")
	} else {
		a.printSecrets(s, list)
	}
	if examples > 0 {
		fmt.Fprintf(a.out, "\n%s, as in manuals and tests: --all lists them.\n", plural(int64(examples), "more is an example",
			"more are examples"))
	}
	return nil
}

// printSecrets prints the list, then where the secrets are replaced.
func (a *app) printSecrets(s *store.Store, list []secrets.Secret) {
	var rows [][]string
	var kinds, rotate []string
	for _, secret := range list {
		kind := secret.Kind
		if !secret.Known {
			kind += "?"
		}
		sent := "nobody"
		if len(secret.Providers) > 0 {
			sent = strings.Join(secret.Providers, ", ")
		}
		newest := secret.Places[len(secret.Places)-1]
		rows = append(rows, []string{
			fmt.Sprint(secret.Number), kind, secret.FirstSeen.In(s.Zone()).Format("2006-01-02"),
			secret.LastSeen.In(s.Zone()).Format("2006-01-02"), humanize.Comma(int64(secret.Messages)),
			strings.Join(secret.Programs, ", "), sent, newest.Last.String(),
		})
		if secret.Rotate != "" && !slices.Contains(kinds, secret.Kind) {
			kinds = append(kinds, secret.Kind)
			rotate = append(rotate, secret.Rotate)
		}
	}
	a.printTable([]column{
		{name: "", right: true},
		{name: "kind"},
		{name: "first seen", keep: 1},
		{name: "last seen"},
		{name: "messages", right: true, keep: 2},
		{name: "programs", keep: 3, grow: true, least: 8},
		{name: "sent to", grow: true, least: 8},
		{name: "newest place"},
	}, rows)
	if slices.ContainsFunc(list, func(secret secrets.Secret) bool { return !secret.Known }) {
		fmt.Fprintln(a.out, a.fit("?: only its name says so (PASSWORD=…, \"token\": …)", ""))
	}
	if len(kinds) > 0 {
		fmt.Fprintln(a.out, "\nReplace them, then withdraw the old ones:")
		for i, kind := range kinds {
			fmt.Fprintf(a.out, "  %-22s %s\n", kind, rotate[i])
		}
	}
	fmt.Fprintln(a.out, "\n"+a.fit(fmt.Sprintf("`sessiond show %s` shows the newest place, `sessiond secrets --json` "+
		"has all of them. `sessiond purge --scrub` removes a session from here; its program keeps its own file.",
		list[0].Places[len(list[0].Places)-1].Last), ""))
}

// printSeenSecrets says, after the first import, how many keys the agents have seen. Examples and values that only a
// name announces do not count.
func (a *app) printSeenSecrets(ctx context.Context, s *store.Store) error {
	list, err := secrets.Scan(ctx, s, func(int) {})
	if err != nil {
		return err
	}
	keys := 0
	for _, secret := range list {
		if secret.Known && !secret.Example {
			keys++
		}
	}
	if keys > 0 {
		fmt.Fprintf(a.out, "\n%s seen by your agents: `sessiond secrets` lists %s, without the values.\n",
			plural(int64(keys), "key was", "keys were"), map[bool]string{true: "it", false: "them"}[keys == 1])
	}
	return nil
}
