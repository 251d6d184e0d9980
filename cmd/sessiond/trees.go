package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

func (a *app) forkCommand() *cobra.Command {
	var at, title string
	var states []string
	cmd := &cobra.Command{
		Use: "fork SESSION", Short: "Fork a session at one of its messages", Args: arguments(1, 1),
		ValidArgsFunction: a.completeSession,
		Long: "Begins a new session that shares the conversation of SESSION up to its head, or up to a\n" +
			"message: --at names it, or SESSION does (20260211_001.12). No message is copied, and SESSION\n" +
			"does not change. Prints the new id.",
		Example: "  sessiond fork @\n  sessiond fork 20260211_001.12\n  sessiond fork @ --at 12 --title 'The other way'",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := store.Fork{States: states}
			if cmd.Flags().Changed("title") {
				in.Title = &title
			}
			return a.fork(cmd.Context(), args[0], at, in)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&at, "at", "", "the last shared `MESSAGE`: SEQ, or SESSION.SEQ of its tree (default: the head)")
	fl.StringVar(&title, "title", "", "`TITLE` (default: the session's title with the fork's number)")
	fl.StringSliceVar(&states, "state", nil, "copy the JSON document of this `NAME` (todos, …); repeatable")
	return cmd
}

func (a *app) fork(ctx context.Context, name, at string, in store.Fork) error {
	return a.onMessage(ctx, wiring{}, name, func(s *opened, sess session.Session, ref *session.MessageRef) (err error) {
		in.Session = sess.ID
		if in.At, err = a.namedMessage(ctx, s.store, "--at", at, sess.ID, ref); err != nil {
			return err
		}
		made, err := s.store.Fork(ctx, in)
		if err != nil {
			return err
		}
		return a.report(made, "%s\n", made.ID)
	})
}

// beforeFirst names the place before a session's first message on the command line.
const beforeFirst = "start"

func (a *app) headCommand() *cobra.Command {
	var summarize bool
	cmd := &cobra.Command{
		Use: "head SESSION [MESSAGE]", Short: "Continue from another message (the rest stays as a branch)",
		Args: arguments(1, 2), ValidArgsFunction: a.completeSession,
		Long: "Moves the head to a message of the session's tree: the next message follows it. MESSAGE\n" +
			"is a seq (12), an id (20260211_001.12, which also needs no SESSION), or `start` for the place\n" +
			"before the first message. Without MESSAGE it prints the head.",
		Example: "  sessiond head @ 12\n  sessiond head 20260211_001.12 --summarize\n  sessiond show @ --tree",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return a.moveHead(cmd.Context(), args[0], args[1], summarize)
			}
			message := false
			err := a.read(cmd.Context(), func(s *store.Store) error {
				sess, ref, err := a.named(cmd.Context(), s, args[0])
				message = ref != nil
				switch {
				case err != nil || message:
					return err
				case summarize:
					return usagef("--summarize needs MESSAGE: it summarizes the branch that the head leaves")
				}
				return a.printHead(sess)
			})
			if err == nil && message {
				return a.moveHead(cmd.Context(), args[0], "", summarize)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&summarize, "summarize", false, "add a short summary of the abandoned branch")
	return cmd
}

func (a *app) printHead(sess session.Session) error {
	at := beforeFirst
	if sess.Head != nil {
		at = sess.Head.String()
	}
	return a.report(map[string]any{
		"session_id": sess.ID, "head": sess.Head, "revision": sess.Revision,
		"context_tokens": sess.ContextTokens,
	}, "%s\n", at)
}

// moveHead moves the head to a message; to is "" if name names it.
func (a *app) moveHead(ctx context.Context, name, to string, summarize bool) error {
	return a.onMessage(ctx, wiring{}, name, func(s *opened, sess session.Session, ref *session.MessageRef) (err error) {
		in := store.HeadMove{Session: sess.ID}
		if to != beforeFirst {
			if in.To, err = a.namedMessage(ctx, s.store, "MESSAGE", to, sess.ID, ref); err != nil {
				return err
			}
			if in.To == nil {
				return usagef("MESSAGE is empty: name a message, or `start` for the place before the first")
			}
		}
		done, err := s.store.MoveHead(ctx, in)
		if err != nil {
			return err
		}
		if !summarize || !done.Moved || done.From == nil {
			return a.printHead(done.Session)
		}
		if _, _, err := s.contexts.SummarizeBranch(ctx, sess.ID, *done.From, in.To); err != nil {
			return err
		}
		if sess, err = s.store.Session(ctx, sess.ID); err != nil {
			return err
		}
		if err := a.printHead(sess); err != nil {
			return err
		}
		a.keepSearchable(ctx, s)
		return nil
	})
}

func (a *app) labelCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use: "label SESSION MESSAGE [TEXT]", Short: "Label a message, or remove its label", Args: arguments(1, 3),
		ValidArgsFunction: a.completeSession,
		Long: "Labels MESSAGE with TEXT of 1 to 64 characters: it becomes its first tag. `label 20260211_001.12 TEXT`\n" +
			"is the same as `label 20260211_001 12 TEXT`. `show --tree` and named queries show it; `sessiond tag` sets\n" +
			"further tags.",
		Example: "  sessiond label @ 12 'before the rewrite'\n  sessiond label @ 12 --remove",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := ""
			if !remove && len(args) > 1 {
				var err error
				if text, err = session.CheckTag(args[len(args)-1]); err != nil {
					return err
				}
				args = args[:len(args)-1]
			}
			if text == "" && !remove || len(args) > 2 {
				return usagef("give either the label's text or --remove")
			}
			return a.label(cmd.Context(), args[0], strings.Join(args[1:], ""), text, !remove)
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the label")
	return cmd
}

func (a *app) label(ctx context.Context, name, message, text string, on bool) error {
	return a.onMessage(ctx, wiring{}, name, func(s *opened, sess session.Session, ref *session.MessageRef) error {
		ref, err := a.namedMessage(ctx, s.store, "MESSAGE", message, sess.ID, ref)
		if err == nil && ref == nil {
			err = usagef("MESSAGE is empty: name a seq of the session (42) or a message of its tree (20260211_001.42)")
		}
		if err == nil {
			_, err = s.store.SetMark(ctx, sess.ID, *ref, store.MarkLabel, text, on)
		}
		return err
	})
}

// showTree draws the whole tree of a session.
func (a *app) showTree(ctx context.Context, s *store.Store, sess session.Session,
	opt transcript.TerminalOptions,
) error {
	tree, err := s.Tree(ctx, sess.ID, store.TreePage{})
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{
			"session": sess, "segments": api.ListOf(tree.Segments, "").Data,
			"leaves": tree.Leaves,
		})
	}
	if err := a.showHeading(ctx, s, sess, transcript.Counted(sess.SaidCount, "message")); err != nil {
		return err
	}
	return transcript.Tree(a.out, sess.ID, tree.Segments, opt)
}
