package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
)

func (a *app) rulesCommand() *cobra.Command {
	var drop int64
	cmd := &cobra.Command{
		Use: "rules SESSION", Short: "List the standing rules of a conversation, or withdraw one", Args: arguments(1, 1),
		ValidArgsFunction: a.completeSession,
		Long: "Lists the sentences in which a person sets a rule for all work (never …, always …, must …), with their\n" +
			"messages. Compaction keeps each rule word for word until the person withdraws it: \"forget that\",\n" +
			"\"from now on X instead\", or --drop, which appends such a message.",
		Example: "  sessiond rules @\n  sessiond rules @ --drop 2",
		RunE: func(cmd *cobra.Command, args []string) error {
			w := wiring{readOnly: drop == 0}
			return a.onSession(cmd.Context(), w, args[0], func(s *opened, sess session.Session) error {
				return a.rules(cmd.Context(), s, sess, int(drop))
			})
		},
	}
	numberFlag(cmd.Flags(), &drop, "drop", "", 1, "withdraw rule `N` of the list")
	return cmd
}

func (a *app) rules(ctx context.Context, s *opened, sess session.Session, drop int) error {
	rules := []digest.Rule{}
	if sess.HeadID != nil {
		path, err := s.store.Path(ctx, *sess.HeadID, 0)
		if err != nil {
			return err
		}
		rules = digest.StandingRules(path, s.givers(sess.Key))
	}
	if drop > len(rules) {
		return usagef("--drop %d: there are %d rules", drop, len(rules))
	}
	if drop > 0 {
		said := session.Message{
			Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true,
			Parts: []session.Part{session.TextPart("Forget the rule: " + rules[drop-1].Text)},
		}
		done, err := s.store.Append(ctx, store.Append{Session: sess.ID, Messages: []session.Message{said}})
		if err != nil {
			return err
		}
		a.keepSearchable(ctx, s)
		return a.printAppended(done)
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"rules": rules})
	}
	if len(rules) == 0 {
		fmt.Fprintln(a.out, "No standing rules. A sentence like \"Never push without asking me.\" is one.")
	}
	for i, r := range rules {
		before := fmt.Sprintf("%2d  %s  ", i+1, r.Message)
		indent := strings.Repeat(" ", len(before))
		fmt.Fprintf(a.out, "%s%s\n", a.dim(before), a.fit(printable(r.Text), indent))
	}
	return nil
}
