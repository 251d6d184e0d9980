package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/transcript"
)

type compactFlags struct {
	dryRun, undo, redo     bool
	model, cancel          bool
	strategy, instructions string
	keep, window           int64
}

func (a *app) compactCommand() *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use: "compact SESSION", Short: "Replace old messages in the context by a summary; undo, redo", Args: arguments(1, 1),
		ValidArgsFunction: a.completeSession,
		Long: "Compacts a session's context now: a summary replaces old messages. The messages stay stored\n" +
			"and unchanged: --undo restores the context, --redo applies the compaction again.\n" +
			"--dry-run shows which messages would be hidden and kept.\n" +
			"--model waits for a summary by the configured model; Ctrl-C stops it and changes nothing.\n" +
			"--cancel stops a compaction that runs in the daemon or in another command.",
		Example: "  sessiond compact @ --dry-run\n  sessiond compact @ --keep 20000\n  sessiond compact @ --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, group := range [][]string{
				{"dry-run", "undo", "redo", "cancel", "model"},
				{"strategy", "undo", "redo", "cancel"},
				{"instructions", "undo", "redo", "cancel"},
				{"keep", "undo", "redo", "cancel"},
				{"window", "undo", "redo", "cancel"},
			} {
				if err := exclusive(cmd, group...); err != nil {
					return err
				}
			}
			return a.onSession(cmd.Context(), wiring{readOnly: f.dryRun, remote: f.model}, args[0],
				func(s *opened, sess session.Session) error {
					return a.compact(cmd.Context(), s, sess, f)
				})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the plan, change nothing")
	fl.BoolVar(&f.undo, "undo", false, "undo the effective compaction")
	fl.BoolVar(&f.redo, "redo", false, "redo the compaction that was undone last")
	fl.BoolVar(&f.model, "model", false, "wait for a summary by the configured model")
	fl.BoolVar(&f.cancel, "cancel", false, "stop a running compaction")
	wordFlag(cmd, &f.strategy, "strategy", "summarize (default), prune, truncate, clear",
		string(session.StrategySummarize), string(session.StrategyPrune), string(session.StrategyTruncate),
		string(session.StrategyClear))
	fl.StringVar(&f.instructions, "instructions", "", "`TEXT` for the summarizer: what the summary must mention")
	numberFlag(fl, &f.keep, "keep", "", 1, "keep at least `N` tokens verbatim")
	numberFlag(fl, &f.window, "window", "", 1, "plan for a window of `N` tokens")
	return cmd
}

func (a *app) compact(ctx context.Context, s *opened, sess session.Session, f compactFlags) error {
	if f.cancel {
		return a.cancelCompactions(ctx, s, sess)
	}
	if f.model && a.cfg.Summarizer.Provider == digest.ExtractiveProvider {
		return session.Errorf(session.Invalid,
			"--model: no model is configured; set summarizer.provider to gemini or openai, "+
				"or leave out --model for a digest without a model")
	}
	if f.undo || f.redo {
		return a.shift(ctx, s, sess, f.undo)
	}
	in := contextmgr.CompactInput{
		Budget: contextmgr.Budget{Window: f.window}, Strategy: session.Strategy(f.strategy), Trigger: session.TriggerManual,
		Instructions: f.instructions, DryRun: f.dryRun, Model: f.model,
	}
	if f.keep > 0 {
		in.KeepTokens = &f.keep
	}
	if f.model && a.errTTY {
		fmt.Fprintf(a.err, "Waiting for a summary by %s. Ctrl-C stops it.\n", a.cfg.Summarizer.Provider)
	}
	c, preview, err := s.contexts.Compact(ctx, sess.ID, in)
	if f.model && err != nil && ctx.Err() != nil {
		a.warn("stopped; nothing changed")
		return quietError{err}
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		record := &c
		if f.dryRun {
			record = nil
		}
		return a.printJSON(struct {
			Compaction *session.Compaction `json:"compaction"`
			Plan       contextmgr.Preview  `json:"plan"`
		}{record, preview})
	}
	switch {
	case preview.NoGain != "":
		fmt.Fprintf(a.out, "%s%s.\n", strings.ToUpper(preview.NoGain[:1]), preview.NoGain[1:])
	case f.dryRun:
		a.printPlan(preview)
	case c.Status != session.StatusDone:
		fmt.Fprintf(a.out, "%s was skipped: %s.\n", c.ID, c.Reason)
	default:
		a.printCompacted(sess.ID, c, preview)
	}
	return nil
}

// printCompacted says what a compaction did, and why it did less than requested.
func (a *app) printCompacted(id session.ID, c session.Compaction, p contextmgr.Preview) {
	hidden := transcript.Counted(p.Hidden, "message")
	what := map[session.Strategy]string{
		session.StrategySummarize: "a summary and an index replace " + hidden,
		session.StrategyTruncate:  hidden + " are hidden",
		session.StrategyClear:     "all " + hidden + " are hidden",
		session.StrategyPrune:     "old tool output is hidden",
	}[c.Strategy]
	fmt.Fprintf(a.out, "%s: %s; the context went from %s to %s tokens.\n", c.ID, what, humanize.Comma(p.TokensBefore),
		humanize.Comma(p.TokensAfter))
	if c.Reason != "" {
		fmt.Fprintf(a.out, "%s.\n", c.Reason)
	}
	fmt.Fprintf(a.out, "`sessiond compact %s --undo` undoes it.\n", id)
}

// cancelCompactions cancels the running compactions of a session, in any process.
func (a *app) cancelCompactions(ctx context.Context, s *opened, sess session.Session) error {
	all, err := s.store.Compactions(ctx, sess.ID)
	if err != nil {
		return err
	}
	cancelled := []session.Compaction{}
	for _, c := range all {
		if c.Status != session.StatusRunning || c.SessionID != sess.ID {
			continue
		}
		if c, err = s.contexts.Cancel(ctx, sess.ID, c.RowID); err != nil {
			return err
		}
		cancelled = append(cancelled, c)
	}
	if len(cancelled) == 0 {
		return session.Errorf(session.Conflict, "no compaction of session %s is running", sess.ID)
	}
	if a.flags.json {
		return a.printJSON(cancelled)
	}
	for _, c := range cancelled {
		fmt.Fprintf(a.out, "%s is cancelled; nothing changed.\n", c.ID)
	}
	return nil
}

// printPlan draws the context now and after the plan, to one scale: hidden, replaced, kept.
func (a *app) printPlan(p contextmgr.Preview) {
	const width = 40
	all := max(p.TokensBefore, p.TokensAfter, p.HiddenTokens+p.KeptTokens, 1)
	bar := func(tokens int64, cell string) string {
		return strings.Repeat(cell, int((max(tokens, 0)*width+all/2)/all))
	}
	now := bar(p.HiddenTokens, "░") + bar(p.KeptTokens, "█")
	then := bar(p.TokensAfter-p.KeptTokens, "▒") + bar(p.KeptTokens, "█")
	for _, line := range []struct {
		name, bar string
		tokens    int64
	}{{"now", now, p.TokensBefore}, {"then", then, p.TokensAfter}} {
		fmt.Fprintf(a.out, "%-5s %s%s %s tokens\n", line.name, line.bar,
			strings.Repeat(" ", max(0, width-utf8.RuneCountInString(line.bar))), humanize.Comma(line.tokens))
	}
	fmt.Fprintf(a.out, "░ hidden  %s, %s tokens, through %s\n", transcript.Counted(p.Hidden, "message"),
		humanize.Comma(p.HiddenTokens), refText(p.Through))
	fmt.Fprintf(a.out, "▒ new     summary, system text and pins, %s tokens\n",
		humanize.Comma(max(p.TokensAfter-p.KeptTokens, 0)))
	fmt.Fprintf(a.out, "█ kept    %s, %s tokens, from %s\n", transcript.Counted(p.Kept, "message"),
		humanize.Comma(p.KeptTokens), refText(p.FirstKept))
	if p.TurnStart != nil {
		fmt.Fprintf(a.out, "  the cut splits a turn: the context repeats its question %s\n", p.TurnStart)
	}
	cost := "the digest is free"
	switch model := a.cfg.Summarizer; {
	case p.CostNanoUSD != nil:
		cost += "; a model's summary costs about " + transcript.Money(p.CostNanoUSD, 0)
	case model.Provider != digest.ExtractiveProvider:
		cost += fmt.Sprintf("; what a summary by %s costs is not known", modelOf(model).ModelName())
	}
	fmt.Fprintf(a.out, "  %s\n", cost)
}

func refText(r *session.MessageRef) string {
	if r == nil {
		return "–"
	}
	return r.String()
}

// shift undoes the effective compaction, or redoes the one undone last.
func (a *app) shift(ctx context.Context, s *opened, sess session.Session, undo bool) error {
	what, id, err := "undone", sess.CompactionID, error(nil)
	if undo {
		if id == nil {
			return a.nothingToUndo(ctx, s, sess)
		}
		sess, err = s.contexts.Undo(ctx, sess.ID, *id)
	} else {
		what = "redone"
		if id, err = lastUndone(ctx, s, sess); err != nil {
			return err
		}
		sess, err = s.contexts.Redo(ctx, sess.ID, *id)
	}
	if err != nil {
		return err
	}
	warning, err := s.contexts.SizeWarning(ctx, sess.ID)
	if err != nil {
		return err
	}
	if warning != "" {
		a.warn("%s", warning)
	}
	return a.report(sess, "%s is %s; context %s.\n", session.CompactionName(*id), what, aboutTokens(sess.ContextTokens))
}

// lastUndone finds the undone compaction that follows the effective one.
func lastUndone(ctx context.Context, s *opened, sess session.Session) (*int64, error) {
	all, err := s.store.Compactions(ctx, sess.ID)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		follows := c.PreviousID == nil && sess.CompactionID == nil ||
			c.PreviousID != nil && sess.CompactionID != nil && *c.PreviousID == *sess.CompactionID
		if c.Undone && follows {
			return &c.RowID, nil
		}
	}
	return nil, session.Errorf(session.Conflict,
		"nothing to redo: in session %s no compaction was undone after the one in force", sess.ID)
}

// nothingToUndo is the error where no compaction is in force; it mentions one to redo.
func (a *app) nothingToUndo(ctx context.Context, s *opened, sess session.Session) error {
	said := fmt.Sprintf("nothing to undo: no compaction is in force in session %s", sess.ID)
	if id, err := lastUndone(ctx, s, sess); err == nil {
		said += fmt.Sprintf("; `sessiond compact %s --redo` redoes %s", sess.ID, session.CompactionName(*id))
	}
	return session.Errorf(session.Conflict, "%s", said)
}
