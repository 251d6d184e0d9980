package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type showFlags struct {
	seq, grep                       string
	last                            int64
	all, full, expand, follow, tree bool
	prompts, program                bool
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show SESSION [SEQS]", Short: "Read a conversation", Args: arguments(1, 2), ValidArgsFunction: a.completeSession,
		Aliases: []string{"cat"},
		Long: "Prints the conversation (current branch). Each tool call is one line; a line marks where a\n" +
			"compaction hides the messages above it from the model. SEQS are messages: 27, 120..140,\n" +
			"120.., ..12. The id of a message (20260211_001.27) shows it with the messages around it.\n" +
			"A pipe gets the same text as a terminal; --full prints everything. Rows of the program itself\n" +
			"are counted in one line; --program shows them.",
		Example: "  sessiond show @\n  sessiond show @ --prompts\n  sessiond show 20260211_001 120..140 --expand\n" +
			"  sessiond show @ -n 3\n" +
			"  sessiond show @ --grep 'lock timeout'\n  sessiond show @ -f",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "tree", "prompts", "grep", "follow"); err != nil {
				return err
			}
			if len(args) == 2 {
				if f.seq != "" {
					return usagef("SEQS and --seq exclude one another")
				}
				f.seq = args[1]
			}
			return a.read(cmd.Context(), func(s *store.Store) error {
				if f.follow {
					return a.show(cmd.Context(), s, args[0], f)
				}
				return a.paged(cmd.Context(), func() error { return a.show(cmd.Context(), s, args[0], f) })
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.seq, "seq", "", "only these messages, as SEQS")
	fl.Lookup("seq").Hidden = true // the argument says the same
	numberFlag(fl, &f.last, "last", "n", 1, "only the last `N` messages, prompts or matches")
	fl.BoolVar(&f.prompts, "prompts", false, "list what the person asked, with the ids of the messages")
	fl.StringVar(&f.grep, "grep", "", "list the messages with all these `WORDS`, in any case")
	fl.BoolVar(&f.all, "all", false, "all messages of the session, also on abandoned branches")
	fl.BoolVar(&f.tree, "tree", false, "draw the tree of branches instead")
	fl.BoolVarP(&f.expand, "expand", "x", false, "show reasoning, arguments, results and summaries")
	fl.BoolVar(&f.program, "program", false, "also show rows of the program: settings, snapshots, lists of skills")
	fl.BoolVar(&f.full, "full", false, "show everything, without line wrapping")
	fl.BoolVarP(&f.follow, "follow", "f", false, "show the last messages, then new ones as they are appended")
	return cmd
}

func (a *app) show(ctx context.Context, s *store.Store, name string, f showFlags) error {
	sess, ref, err := a.named(ctx, s, name)
	if err != nil {
		return err
	}
	opt := transcript.TerminalOptions{Width: a.columns(), Color: a.color(), Raw: f.full, Expand: f.expand, Zone: s.Zone()}
	if f.tree {
		return a.showTree(ctx, s, sess, opt)
	}
	if f.follow && f.last == 0 && f.seq == "" {
		f.last = followLast
	}
	part, err := partToShow(ctx, s, sess, ref, f)
	if err != nil {
		return err
	}
	switch {
	case f.prompts:
		return a.showPrompts(ctx, s, sess, part, f.last)
	case f.grep != "":
		return a.showMatches(ctx, s, sess, part, f.grep, f.last)
	}
	compactions, err := s.Compactions(ctx, sess.ID)
	if err != nil {
		return err
	}
	links, err := s.Hanging(ctx, sess.ID, mostLinks)
	if err != nil {
		return err
	}
	if a.flags.json {
		msgs, damage := readSpans(ctx, s, part.spans)
		if damage != nil && !engine.IsDamage(damage) {
			return damage
		}
		listed, err := a.listed(ctx, s, []session.Session{sess}, false)
		if err != nil {
			return err
		}
		return errors.Join(damage, a.printJSON(map[string]any{
			"session": listed[0], "messages": api.ListOf(msgs, "").Data, "compactions": api.ListOf(compactions, "").Data,
			"links": api.ListOf(links, "").Data,
		}))
	}
	opt.Mark, opt.Program, opt.Folded = part.named, f.program || part.program, ": --program shows them"
	heading, err := startedBy(ctx, s, sess)
	if err != nil {
		return err
	}
	extent, err := part.extent(ctx, s, &sess, f.all)
	if err != nil {
		return err
	}
	if err := a.showHeading(ctx, s, sess, extent, heading...); err != nil {
		return err
	}
	out := transcript.Mention(transcript.NewTerminal(a.out, opt), links)
	if err := showSpans(ctx, s, part, transcript.NewStream(sess, compactions, out.Item), out); err != nil || !f.follow {
		return err
	}
	opt.Folded = "" // a line at each look would be more than the talk
	return a.follow(ctx, s, sess.ID, opt)
}

// showSpans writes ranges of messages and reads a few at a time.
func showSpans(ctx context.Context, s *store.Store, p part, items *transcript.Stream, out transcript.Writer) error {
	inMiddle := p.before > 0
	err := eachReadable(ctx, s, p.spans, func(m *session.Message) error {
		if inMiddle {
			items.GoesOn(m)
			inMiddle = false
		}
		return items.Message(m)
	})
	if err != nil && !engine.IsDamage(err) {
		return err
	}
	return errors.Join(items.Close(), out.Close(), err)
}

// readSpans reads whole ranges of messages.
func readSpans(ctx context.Context, s *store.Store, spans []store.Span) (msgs []session.Message, err error) {
	err = eachReadable(ctx, s, spans, func(m *session.Message) error {
		msgs = append(msgs, *m)
		return nil
	})
	return msgs, err
}

// eachReadable calls fn with the messages of spans. Where the database is damaged it goes on behind the
// messages that cannot be read, and its error names them.
func eachReadable(ctx context.Context, s *store.Store, spans []store.Span, fn func(*session.Message) error) error {
	var damage error
	var lost []string
	for _, sp := range spans {
		next := sp.From
		err := s.EachInRange(ctx, sp.Session, sp.From, sp.To, func(m *session.Message) error {
			next = m.Seq + 1
			return fn(m)
		})
		for ; engine.IsDamage(err) && next <= sp.To; next++ {
			if one := s.EachInRange(ctx, sp.Session, next, next, fn); engine.IsDamage(one) {
				lost, damage = append(lost, session.MessageRef{Session: sp.Session, Seq: next}.String()), one
			} else if one != nil {
				return one
			}
		}
		if err != nil && !engine.IsDamage(err) {
			return err
		}
	}
	if damage == nil {
		return nil
	}
	return fmt.Errorf("the database is damaged, and these messages cannot be read: %s; "+
		"`sessiond doctor` says what to do: %w", strings.Join(lost, " "), damage)
}

// mostLinks limits the forks and children that are mentioned.
const mostLinks = 1000

// startedBy names what a session was forked from or started by.
func startedBy(ctx context.Context, s *store.Store, sess session.Session) (facts []string, err error) {
	own, err := s.Link(ctx, sess)
	if err != nil || own == nil {
		return nil, err
	}
	word, of := "started by ", string(own.Parent)
	if own.Kind == session.ParentFork {
		word = "forked from "
	}
	if own.Message != nil {
		of = own.Message.String()
	}
	return []string{word + of}, nil
}

func (a *app) showHeading(ctx context.Context, s *store.Store, sess session.Session, extent string,
	more ...string,
) error {
	listed, err := a.listed(ctx, s, []session.Session{sess}, false)
	if err != nil {
		return err
	}
	measure := &listed[0].Measure
	size := cmp.Or(transcript.Context(measure.Context), "context of 0 tokens")
	facts := []string{
		string(sess.ID), string(sess.Source), sess.Model, sess.Directory, extent, size,
		transcript.Costs(&sess, measure),
	}
	facts = slices.DeleteFunc(append(facts, more...), func(fact string) bool { return fact == "" })
	const long = 400 // columns
	_, err = fmt.Fprintf(a.out, "%s\n%s\n\n", transcript.OneLine(cmp.Or(sess.Title, "–"), long),
		a.dim(a.fit(strings.ReplaceAll(printable(strings.Join(facts, " · ")), "\n", " "), "")))
	return err
}

const (
	followInterval = 400 * time.Millisecond
	followLast     = 20 // messages shown before the new ones
)

// follow prints new messages until the user stops it.
func (a *app) follow(ctx context.Context, s *store.Store, id session.ID, opt transcript.TerminalOptions) error {
	sess, err := s.Session(ctx, id)
	if err != nil {
		return err
	}
	seen := sess.LastSeq
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := s.Session(ctx, id)
		if err == nil && now.LastSeq > seen {
			more := part{spans: []store.Span{{Session: id, From: seen + 1, To: now.LastSeq}}}
			out := transcript.NewTerminal(a.out, opt)
			seen, err = now.LastSeq, showSpans(ctx, s, more, transcript.NewStream(sess, nil, out.Item), out)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
