package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

type compactFlags struct {
	dryRun, undo, redo     bool
	strategy, instructions string
	keep, window           int64
}

func (a *app) compactCommand() *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use: "compact SESSION", Short: "Put a summary in the place of old messages; undo, redo", Args: arguments(1, 1), ValidArgsFunction: a.completeSession,
		Long: "Makes room in a session's context now. No message is changed: --undo gives the\n" +
			"context back as it was, --redo takes the undo back.\n" +
			"--dry-run shows what would be hidden and kept.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.undo && f.redo || f.dryRun && (f.undo || f.redo) {
				return usageError{fmt.Errorf("--dry-run, --undo and --redo exclude one another")}
			}
			return a.with(cmd.Context(), wiring{readOnly: f.dryRun, log: a.log(zerolog.WarnLevel)}, func(s *services) error {
				return a.compact(cmd.Context(), s, args[0], f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, change nothing")
	fl.BoolVar(&f.undo, "undo", false, "undo the compaction that is in force")
	fl.BoolVar(&f.redo, "redo", false, "take the last undo back")
	wordFlag(cmd, &f.strategy, "strategy", "summarize (default), prune, truncate, clear",
		string(session.StrategySummarize), string(session.StrategyPrune), string(session.StrategyTruncate), string(session.StrategyClear))
	fl.StringVar(&f.instructions, "instructions", "", "what the summary must keep")
	numberFlag(fl, &f.keep, "keep", "", 1, "tokens to keep verbatim at least")
	numberFlag(fl, &f.window, "window", "", 1, "plan for a window of so many tokens")
	return cmd
}

func (a *app) compact(ctx context.Context, s *services, name string, f compactFlags) error {
	sess, err := a.resolve(ctx, s.store, name)
	if err != nil {
		return err
	}
	if f.undo || f.redo {
		return a.shift(ctx, s, sess, f.undo)
	}
	in := contextmgr.CompactInput{
		Budget: contextmgr.Budget{Window: f.window}, Strategy: session.Strategy(f.strategy), Trigger: session.TriggerManual,
		Instructions: f.instructions, DryRun: f.dryRun,
	}
	if f.keep > 0 {
		in.KeepTokens = &f.keep
	}
	c, preview, err := s.contexts.Compact(ctx, sess.ID, in)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(struct {
			Compaction *session.Compaction `json:"compaction"`
			Plan       contextmgr.Preview  `json:"plan"`
		}{recorded(c, f.dryRun), preview})
	}
	switch {
	case preview.NoGain != "":
		fmt.Fprintf(a.out, "Nothing to do: %s.\n", preview.NoGain)
	case f.dryRun:
		a.printPlan(preview)
	default:
		fmt.Fprintf(a.out, "%s: %s stand for %s; the context went from %s to %s tokens.\n`sessiond compact %s --undo` takes it back.\n",
			c.ID, "a summary and an index", plural(int64(preview.Hidden), "message", "messages"),
			humanize.Comma(preview.TokensBefore), humanize.Comma(preview.TokensAfter), sess.ID)
	}
	return nil
}

// recorded is the record of a compaction, nil for a dry run, which has none.
func recorded(c session.Compaction, dryRun bool) *session.Compaction {
	if dryRun {
		return nil
	}
	return &c
}

// printPlan draws the path: what would be hidden and what stays.
func (a *app) printPlan(p contextmgr.Preview) {
	const width = 40
	hidden := 0
	if all := p.HiddenTokens + p.KeptTokens; all > 0 {
		hidden = int(p.HiddenTokens * width / all)
	}
	for i := range width {
		if i < hidden {
			fmt.Fprint(a.out, "░")
		} else {
			fmt.Fprint(a.out, "█")
		}
	}
	fmt.Fprintf(a.out, "\n░ hidden  %s, %s tokens, through %s\n", plural(int64(p.Hidden), "message", "messages"), humanize.Comma(p.HiddenTokens), refText(p.Through))
	fmt.Fprintf(a.out, "█ kept    %s, %s tokens, from %s\n", plural(int64(p.Kept), "message", "messages"), humanize.Comma(p.KeptTokens), refText(p.FirstKept))
	if p.TurnStart != nil {
		fmt.Fprintf(a.out, "  the cut is inside a turn: its question %s is shown again\n", p.TurnStart)
	}
	cost := "the summary costs nothing"
	if p.CostNanoUSD != nil {
		cost = "the summary costs about " + transcript.Money(p.CostNanoUSD, 0)
	}
	fmt.Fprintf(a.out, "  context   %s → %s tokens, %s\n", humanize.Comma(p.TokensBefore), humanize.Comma(p.TokensAfter), cost)
}

func refText(r *session.MessageRef) string {
	if r == nil {
		return "–"
	}
	return r.String()
}

// shift undoes the effective compaction, or redoes the one that was undone last.
func (a *app) shift(ctx context.Context, s *services, sess session.Session, undo bool) error {
	what, id, err := "undone", sess.CompactionID, error(nil)
	if undo {
		if id == nil {
			return session.Errorf(session.Conflict, "no compaction is in force in session %s", sess.ID)
		}
		sess, err = s.contexts.Undo(ctx, sess.ID, *id)
	} else {
		what = "in force again"
		if id, err = lastUndone(ctx, s, sess); err != nil {
			return err
		}
		sess, err = s.contexts.Redo(ctx, sess.ID, *id)
	}
	if session.CodeOf(err) == session.DoesNotFit {
		return fmt.Errorf("%w: it stays in force, and nothing was changed", err)
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(sess)
	}
	_, err = fmt.Fprintf(a.out, "%s is %s; the context holds %s tokens.\n", session.CompactionName(*id), what, humanize.Comma(sess.ContextTokens))
	return err
}

// lastUndone finds the undone compaction that continues what is in force now.
func lastUndone(ctx context.Context, s *services, sess session.Session) (*int64, error) {
	all, err := s.store.Compactions(ctx, sess.ID)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		follows := c.PreviousID == nil && sess.CompactionID == nil || c.PreviousID != nil && sess.CompactionID != nil && *c.PreviousID == *sess.CompactionID
		if c.Undone && follows {
			return &c.RowID, nil
		}
	}
	return nil, session.Errorf(session.Conflict, "no undo of session %s can be taken back", sess.ID)
}
