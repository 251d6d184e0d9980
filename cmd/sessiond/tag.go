package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/api"
)

type tagFlags struct {
	message string
	remove  bool
	note    string
}

func (a *app) tagCommand() *cobra.Command {
	var f tagFlags
	cmd := &cobra.Command{
		Use: "tag [SESSION [TAG…]]", Short: "Tag sessions and messages, and write notes", Args: arguments(0, unlimited),
		ValidArgsFunction: a.completeSession,
		Long: "Puts tags of 1 to 64 characters on SESSION, or on one of its messages: `tag 20260211_001.12 TAG`.\n" +
			"Without TAG it prints the tags and notes of SESSION, without SESSION all tags.\n\n" +
			"`sessiond ls --tag TAG` lists sessions that have a tag, on them or on a message; `sessiond search` finds\n" +
			"the words of tags and notes.",
		Example: "  sessiond tag @ release\n  sessiond tag @ -m 12 'before the rewrite' --note 'works with go 1.26 alone'\n" +
			"  sessiond tag --remove 20260211_001 release\n  sessiond tag @ --note -        # reads the note\n  sessiond tag",
		RunE: func(cmd *cobra.Command, args []string) error {
			changesNote := cmd.Flags().Changed("note")
			switch {
			case len(args) == 0 && (f.remove || changesNote || f.message != ""):
				return usagef("name the session: sessiond tag SESSION TAG")
			case f.remove && changesNote:
				return usagef("--remove removes tags; to remove a note write --note ''")
			case f.remove && len(args) == 1:
				return usagef("name the tags to remove: sessiond tag --remove SESSION TAG")
			case len(args) == 0:
				return a.listTags(cmd.Context())
			case len(args) == 1 && !changesNote:
				return a.showMarks(cmd.Context(), args[0], f.message)
			}
			var note *string
			if changesNote {
				text, err := a.noteText(cmd.Context(), f.note)
				if err != nil {
					return err
				}
				note = &text
			}
			return a.tag(cmd.Context(), args[0], f, args[1:], note)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.message, "message", "m", "", "tag this `MESSAGE` of the session: its number")
	fl.BoolVar(&f.remove, "remove", false, "remove the tags")
	fl.StringVar(&f.note, "note", "", "write this `NOTE`; - reads it from stdin, '' removes it")
	return cmd
}

const noteInput = 1 << 20 // bytes; session.CheckNote limits the characters

// noteText returns the text of a note that a flag gives.
func (a *app) noteText(ctx context.Context, given string) (string, error) {
	if given == "-" {
		text, err := a.input(ctx, noteInput)
		if err != nil {
			return "", err
		}
		given = string(text)
	}
	return session.CheckNote(given)
}

func (a *app) listTags(ctx context.Context) error {
	return a.read(ctx, func(s *store.Store) error {
		tags, err := s.Values(ctx, store.ColumnTag)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(api.ListOf(api.TagsInUse(tags), ""))
		}
		if len(tags) == 0 {
			fmt.Fprintln(a.out, "No session has a tag yet: `sessiond tag SESSION TAG` sets one.")
			return nil
		}
		rows := make([][]string, len(tags))
		for i, t := range tags {
			rows[i] = []string{printable(t.Text), fmt.Sprint(t.Sessions)}
		}
		a.printTable([]column{{name: "tag", grow: true}, {name: "sessions", right: true}}, rows)
		return nil
	})
}

func (a *app) showMarks(ctx context.Context, name, message string) error {
	return a.onMessage(ctx, reading, name, func(s *opened, sess session.Session,
		ref *session.MessageRef,
	) error {
		ref, err := a.taggedMessage(ctx, s.store, sess.ID, message, ref)
		if err != nil {
			return err
		}
		shown, err := tagsAndNotes(ctx, s.store, sess.ID, func(m *session.Mark) bool { return ref == nil || isOn(m, ref) })
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(api.ListOf(shown, ""))
		}
		for _, m := range shown {
			at := string(sess.ID)
			if m.Message != nil {
				at = m.Message.String()
			}
			text := "#" + m.Text
			if m.Kind == store.MarkNote {
				text = "note: " + strings.ReplaceAll(m.Text, "\n", "\n  ")
			}
			fmt.Fprintf(a.out, "%s  %s\n", at, transcript.Clean(text))
		}
		if len(shown) == 0 {
			fmt.Fprintf(a.out, "%s has no tag and no note.\n", sess.ID)
		}
		return nil
	})
}

// tagsAndNotes lists those of a session and of its messages that are wanted.
func tagsAndNotes(ctx context.Context, s *store.Store, id session.ID, wanted func(*session.Mark) bool,
) ([]session.Mark, error) {
	all, err := s.Marks(ctx, id)
	return slices.DeleteFunc(all, func(m session.Mark) bool { return m.Kind == store.MarkPin || !wanted(&m) }), err
}

// isOn reports whether a mark is on a message; nil: on the session itself.
func isOn(m *session.Mark, ref *session.MessageRef) bool {
	if m.Message == nil || ref == nil {
		return m.Message == nil && ref == nil
	}
	return *m.Message == *ref
}

// taggedMessage returns the message that is tagged; nil: the session itself.
func (a *app) taggedMessage(ctx context.Context, s *store.Store, id session.ID, message string,
	named *session.MessageRef,
) (*session.MessageRef, error) {
	if message == "" {
		return named, nil
	}
	return a.namedMessage(ctx, s, "--message", message, id, named)
}

func (a *app) tag(ctx context.Context, name string, f tagFlags, tags []string, note *string) error {
	return a.onMessage(ctx, wiring{}, name, func(s *opened, sess session.Session, ref *session.MessageRef) error {
		ref, err := a.taggedMessage(ctx, s.store, sess.ID, f.message, ref)
		if err != nil {
			return err
		}
		of := store.Marking{Session: sess.ID, Message: ref}
		if len(tags) > 0 {
			add, remove := tags, []string(nil)
			if f.remove {
				add, remove = nil, tags
			}
			if _, err := s.store.ChangeTags(ctx, of, add, remove); err != nil {
				return err
			}
		}
		if note != nil {
			if _, err := s.store.SetNote(ctx, of, *note, nil); err != nil {
				return err
			}
		}
		return a.showTagged(ctx, s.store, of)
	})
}

// showTagged prints what a session or a message has after a change.
func (a *app) showTagged(ctx context.Context, s *store.Store, of store.Marking) error {
	marks, err := tagsAndNotes(ctx, s, of.Session, func(m *session.Mark) bool { return isOn(m, of.Message) })
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(api.ListOf(marks, ""))
	}
	at := string(of.Session)
	if of.Message != nil {
		at = of.Message.String()
	}
	var words []string
	for _, m := range marks {
		if m.Kind == store.MarkTag {
			words = append(words, "#"+m.Text)
		} else {
			words = append(words, "a note")
		}
	}
	if len(words) == 0 {
		words = []string{"no tag and no note"}
	}
	fmt.Fprintf(a.out, "%s has %s\n", at, printable(strings.Join(words, ", ")))
	return nil
}
