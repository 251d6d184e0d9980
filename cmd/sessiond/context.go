package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

func (a *app) contextCommand() *cobra.Command {
	var b contextmgr.Budget
	cmd := &cobra.Command{
		Use: "context SESSION", Short: "Show the context that the model would get now (changes nothing)",
		Example: "  sessiond context @\n  sessiond context @ --explain",
		Args:    arguments(1, 1), ValidArgsFunction: a.completeSession,
		Long: "Prints the context at the session's head: system text, summary of the hidden messages, and\n" +
			"the kept messages. --json prints the answer of GET /v1/sessions/{id}/context; copy its\n" +
			"`request` into the body for the provider.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onSession(cmd.Context(), reading, args[0], func(s *opened, sess session.Session) error {
				view, err := s.contexts.Assemble(cmd.Context(), sess.ID, b)
				if err != nil {
					return err
				}
				return a.printContext(view)
			})
		},
	}
	wires := slices.DeleteFunc(dialect.Names(), func(name string) bool { return !dialect.Sendable(name) })
	fl := cmd.Flags()
	fl.StringVar(&b.Model, "model", "", "use this `MODEL` instead of the session's")
	wordFlag(cmd, &b.Dialect, "dialect", "encode for this API: "+strings.Join(wires, ", "), wires...)
	numberFlag(fl, &b.Window, "window", "", 1, "use a window of `N` tokens")
	numberFlag(fl, &b.MaxOutput, "max-output", "", 1, "reserve `N` tokens for the reply")
	fl.BoolVar(&b.Explain, "explain", false, "explain where each number comes from and how tokens are counted")
	return cmd
}

func (a *app) printContext(v contextmgr.View) error {
	rendered, err := api.Render(v)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(rendered)
	}
	t := v.Tokens
	fmt.Fprintln(a.out, a.fit(fmt.Sprintf("%s of %s tokens (%s), compacts above %s, reserve %s · %s",
		humanize.Comma(t.Total), humanize.Comma(t.Window), t.Method, humanize.Comma(t.Threshold), humanize.Comma(t.Reserve),
		printable(cmp.Or(v.Model, "–"))), ""))
	switch c := v.Compaction; {
	case c == nil:
	case c.ID == "":
		fmt.Fprintln(a.out,
			a.fit("with a temporary digest of the hidden messages: the next turn, or `sessiond compact`, stores one", ""))
	default:
		without := map[session.Strategy]string{
			session.StrategyPrune: "without old tool output", session.StrategyTruncate: "without the hidden messages",
			session.StrategyClear: "without the hidden messages",
		}[c.Strategy]
		fmt.Fprintf(a.out, "%s: %s, %s\n", cmp.Or(without, "with a summary of the hidden messages"), c.ID, c.Status)
	}
	a.printCounting(v.Counting)
	for _, set := range v.Settings {
		fmt.Fprintf(a.out, "  %-22s %-10s %s\n", set.Name, settingText(set.Value), a.dim(set.Source))
	}
	for _, w := range v.Warnings {
		a.warn("%s", w)
	}
	if len(v.Pending) > 0 {
		fmt.Fprintf(a.out, "no request yet: tool calls without a result: %s\n", printable(strings.Join(v.Pending, ", ")))
	}
	fmt.Fprintln(a.out)
	if v.System != "" {
		a.printContextItem("system", v.System)
	}
	for i := range v.Messages {
		a.printContextItem(string(v.Messages[i].Role), contextText(&v.Messages[i]))
	}
	for _, lines := range [][]string{v.Adjustments, v.Losses} {
		for _, line := range lines {
			fmt.Fprintln(a.out, a.dim("· "+printable(line)))
		}
	}
	return nil
}

// printCounting explains the size of the context, with --explain.
func (a *app) printCounting(c *contextmgr.Counting) {
	if c == nil {
		return
	}
	fmt.Fprintf(a.out, "%s to %s tokens: %s of them are estimated (%s weights × %.3f, ± %s)\n",
		humanize.Comma(c.Low), humanize.Comma(c.High), humanize.Comma(c.Estimated), c.Family, c.Scale,
		humanize.Comma(c.Error))
	if n := c.Anchor; n != nil {
		fmt.Fprintf(a.out, "counted from the provider's report for %s (%s): %s in, %s out; then %s tokens in %d messages\n",
			n.Message, n.At.Format("2006-01-02 15:04"), humanize.Comma(n.Input), humanize.Comma(n.Output),
			humanize.Comma(n.Since), n.Messages)
	} else {
		fmt.Fprintln(a.out, "no token report of a provider applies to this context")
	}
	fmt.Fprintf(a.out, "tools and framing: %s tokens, %s\n", humanize.Comma(c.Overhead.Tokens), c.Overhead.Method)
}

// aboutTokens formats an estimate: about 68k tokens (estimate).
func aboutTokens(n int64) string { return "about " + transcript.ShortCount(n) + " tokens (estimate)" }

// printContextItem shows one message in a line on a terminal, whole through a pipe.
func (a *app) printContextItem(role, text string) {
	text = printable(text)
	if w := a.columns(); w > 0 {
		text = transcript.OneLine(text, max(20, w-12))
	}
	fmt.Fprintf(a.out, "%-10s  %s\n", role, text)
}

func contextText(m *session.Message) string {
	texts := []string{}
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case session.PartToolCall:
			texts = append(texts, fmt.Sprintf("→ %s(%s)", p.ToolName, p.Arguments))
		case session.PartText, session.PartToolResult, session.PartRefusal:
			texts = append(texts, p.Content())
		default:
			texts = append(texts, "["+string(p.Kind)+"]")
		}
	}
	return strings.Join(texts, "\n")
}
