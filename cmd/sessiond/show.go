package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type showFlags struct {
	seq                               string
	last                              int64
	all, raw, expand, follow, noPager bool
	tree                              bool
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show SESSION", Short: "Read a conversation", Args: arguments(1, 1), ValidArgsFunction: a.completeSession, Aliases: []string{"cat"},
		Long: "Prints the conversation (current branch). Each tool call is one line; a line marks where a\n" +
			"compaction hides the messages above it from the model.",
		Example: "  sessiond show @\n  sessiond show 20260211_001 --seq 10-20 --expand\n  sessiond show @ -f",
		RunE:    a.onStore(func(ctx context.Context, s *store.Store, args []string) error { return a.show(ctx, s, args[0], f) }),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.seq, "seq", "", "only these messages: `SEQS` like 7, 7-12, 7-, -12")
	numberFlag(fl, &f.last, "last", "n", 1, "only the last `N` messages")
	fl.BoolVar(&f.all, "all", false, "all messages of the session, also on abandoned branches")
	fl.BoolVar(&f.tree, "tree", false, "draw the tree of branches instead")
	fl.BoolVar(&f.raw, "raw", false, "full texts and results, without line wrapping")
	fl.BoolVarP(&f.expand, "expand", "x", false, "show reasoning, arguments, results and summaries")
	fl.BoolVarP(&f.follow, "follow", "f", false, "show the last messages, then new ones as they are appended")
	fl.BoolVar(&f.noPager, "no-pager", false, "do not use a pager")
	return cmd
}

func (a *app) show(ctx context.Context, s *store.Store, name string, f showFlags) error {
	sess, err := a.resolve(ctx, s, name)
	if err != nil {
		return err
	}
	opt := transcript.TerminalOptions{Width: a.columns(), Color: a.color(), Raw: f.raw || !a.outTTY, Expand: f.expand, Zone: s.Zone()}
	if f.tree {
		return a.showTree(ctx, s, sess, opt, f.noPager)
	}
	from, to, err := seqRange(f.seq)
	if err != nil {
		return err
	}
	if f.follow && f.last == 0 && f.seq == "" {
		f.last = followLast
	}
	if f.last > 0 && from == 0 {
		from = max(1, sess.LastSeq-f.last+1)
	}
	spans, err := spansToShow(ctx, s, sess, from, to, f.all)
	if err != nil {
		return err
	}
	if len(spans) == 0 && f.seq != "" {
		return session.Errorf(session.NotFound, "session %s has no message at --seq %s on its current branch: its last seq is %d, and --all includes abandoned branches", sess.ID, f.seq, sess.LastSeq)
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
		msgs, damage := readSpans(ctx, s, spans)
		if damage != nil && !store.IsDamage(damage) {
			return damage
		}
		return errors.Join(damage, a.printJSON(map[string]any{
			"session": sess, "messages": api.ListOf(msgs, "").Data, "compactions": api.ListOf(compactions, "").Data, "links": api.ListOf(links, "").Data,
		}))
	}
	heading, err := a.family(ctx, s, sess, links)
	if err != nil {
		return err
	}
	extent := plural(sess.MessageCount, "message", "messages")
	if from == 0 && to == 0 && !f.all { // else the user chose the extent
		extent = transcript.Extent(&sess, ownOf(spans, sess.ID))
	}
	print := func(w io.Writer) error {
		a.showHeading(w, sess, extent, heading...)
		out := transcript.Mention(transcript.NewTerminal(w, opt), links)
		return showSpans(ctx, s, spans, transcript.NewStream(sess, compactions, out.Item), out)
	}
	if !f.follow {
		return a.page(print, f.noPager)
	}
	if err := print(a.out); err != nil {
		return err
	}
	return a.follow(ctx, s, sess.ID, opt)
}

// seqRange parses --seq; 0 is open.
func seqRange(s string) (from, to int64, err error) {
	if s == "" {
		return 0, 0, nil
	}
	first, last, ranged := strings.Cut(s, "-")
	if from, err = seqOf(first, ranged); err == nil {
		to = from
		if ranged {
			to, err = seqOf(last, true)
		}
	}
	if err != nil || to != 0 && from > to || s == "-" || first == "0" || ranged && last == "0" {
		return 0, 0, usagef("--seq %q is not a message (7) or a range (7-12, 7-, -12)", s)
	}
	return from, to, nil
}

func seqOf(s string, open bool) (int64, error) {
	if s == "" && open {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

// spansToShow returns the ranges of messages to show, in order. In a fork, from and to count its
// own messages; 0 is open.
func spansToShow(ctx context.Context, s *store.Store, sess session.Session, from, to int64, all bool) ([]store.Span, error) {
	spans := []store.Span{{Session: sess.ID, From: 1, To: sess.LastSeq}}
	if !all {
		if sess.HeadID == nil {
			return nil, nil
		}
		var err error
		if spans, err = s.Spans(ctx, *sess.HeadID); err != nil {
			return nil, err
		}
		slices.Reverse(spans)
	}
	var shown []store.Span
	for _, sp := range spans {
		switch {
		case sp.Session == sess.ID:
			sp.From = max(sp.From, from)
			if to > 0 {
				sp.To = min(sp.To, to)
			}
		case from > 0:
			continue
		}
		if sp.From <= sp.To {
			shown = append(shown, sp)
		}
	}
	return shown, nil
}

func ownOf(spans []store.Span, id session.ID) (n int64) {
	for _, sp := range spans {
		if sp.Session == id {
			n += sp.To - sp.From + 1
		}
	}
	return n
}

// showSpans writes ranges of messages and reads a few at a time.
func showSpans(ctx context.Context, s *store.Store, spans []store.Span, items *transcript.Stream, out transcript.Writer) error {
	err := eachReadable(ctx, s, spans, items.Message)
	if err != nil && !store.IsDamage(err) {
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
		for ; store.IsDamage(err) && next <= sp.To; next++ {
			if one := s.EachInRange(ctx, sp.Session, next, next, fn); store.IsDamage(one) {
				lost, damage = append(lost, session.MessageRef{Session: sp.Session, Seq: next}.String()), one
			} else if one != nil {
				return one
			}
		}
		if err != nil && !store.IsDamage(err) {
			return err
		}
	}
	if damage == nil {
		return nil
	}
	return fmt.Errorf("the database is damaged, and these messages cannot be read: %s; `sessiond doctor` says what to do: %w", strings.Join(lost, " "), damage)
}

// mostLinks limits the forks and children that are mentioned.
const mostLinks = 1000

// family describes the parent and the children of a session.
func (a *app) family(ctx context.Context, s *store.Store, sess session.Session, links []session.Link) (facts []string, err error) {
	own, err := s.Link(ctx, sess)
	if err != nil {
		return nil, err
	}
	if own != nil {
		word := "started by "
		if own.Kind == session.ParentFork {
			word = "forked from "
		}
		if own.Message != nil {
			facts = append(facts, word+own.Message.String())
		} else {
			facts = append(facts, word+string(own.Parent))
		}
	}
	if !slices.ContainsFunc(links, func(l session.Link) bool { return l.Kind == session.ParentChild }) {
		return facts, nil
	}
	sum, err := s.Rollup(ctx, sess.ID)
	if err != nil {
		return nil, err
	}
	fact := "started " + plural(sum.Children, "session", "sessions")
	if cost := transcript.Money(sum.CostNanoUSD, sum.UnpricedCalls); cost != "" {
		fact += ", " + cost + " with them"
	}
	return append(facts, fact), nil
}

func (a *app) showHeading(w io.Writer, sess session.Session, extent string, more ...string) {
	facts := []string{string(sess.ID), string(sess.Source)}
	for _, fact := range []string{sess.Model, sess.Directory} {
		if fact != "" {
			facts = append(facts, fact)
		}
	}
	facts = append(facts, extent, "context "+aboutTokens(sess.ContextTokens))
	facts = append(facts, more...)
	const long = 400 // columns
	fmt.Fprintf(w, "%s\n%s\n\n", transcript.OneLine(orDash(sess.Title), long), a.dim(a.fit(strings.ReplaceAll(printable(strings.Join(facts, " · ")), "\n", " "), "")))
}

// page prints through the user's pager on a terminal, else directly.
func (a *app) page(print func(io.Writer) error, off bool) error {
	pager := a.getenv("PAGER")
	if pager == "" {
		pager = "less"
	}
	if off || !a.outTTY || pager == "cat" || a.getenv("TERM") == "dumb" {
		return print(a.out)
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, a.environ
	if a.getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return print(a.out)
	}
	err = print(&cleanWriter{to: to, color: true})
	if errors.Is(err, syscall.EPIPE) { // the user quit the pager
		err = nil
	}
	_ = to.Close()
	return errors.Join(err, cmd.Wait())
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
			more := []store.Span{{Session: id, From: seen + 1, To: now.LastSeq}}
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
