package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// away is a command that hides, shows or stars sessions.
type away struct {
	use, short, long string
	done             string // printed for each session
	do               func(ctx context.Context, s *store.Store, id session.ID) (session.Session, error)
}

func (a *app) archiveCommand(on bool) *cobra.Command {
	w := away{
		"archive SESSION…", "Hide sessions from the lists",
		"Archived sessions leave `ls` but stay searchable, readable and open for messages.\n" +
			"`sessiond ls --archived` lists them.", "archived",
		func(ctx context.Context, s *store.Store, id session.ID) (session.Session, error) {
			return s.PatchSession(ctx, id, store.SessionPatch{Archived: &on})
		},
	}
	if !on {
		w.use, w.short, w.long, w.done = "unarchive SESSION…", "Show archived sessions in the lists again", "",
			"back in the lists"
	}
	return a.putAwayCommand(&w)
}

func (a *app) trashCommand(on bool) *cobra.Command {
	w := away{
		"trash SESSION…", "Move sessions to the trash",
		"Sessions in the trash are not listed or searched. Nothing is deleted: `sessiond untrash`\n" +
			"restores them, `sessiond purge` deletes them for good, `sessiond ls --trash` lists them.", "in the trash",
		func(ctx context.Context, s *store.Store, id session.ID) (session.Session, error) {
			return s.SetTrash(ctx, id, on, nil, nil)
		},
	}
	if !on {
		w.use, w.short, w.long, w.done = "untrash SESSION…", "Restore sessions from the trash", "", "out of the trash"
	}
	return a.putAwayCommand(&w)
}

// example returns a line to copy, of the command's name.
func (w *away) example() string {
	name, _, _ := strings.Cut(w.use, " ")
	return "  sessiond " + name + " 20260211_001"
}

func (a *app) putAwayCommand(w *away) *cobra.Command {
	return &cobra.Command{
		Use: w.use, Short: w.short, Long: w.long, Args: arguments(1, unlimited), ValidArgsFunction: a.completeSession,
		Example: w.example(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd.Context(), func(s *store.Store) error { return a.putAway(cmd.Context(), s, w, args) })
		},
	}
}

func (a *app) putAway(ctx context.Context, s *store.Store, w *away, names []string) error {
	found, err := a.resolveAll(ctx, s, names)
	if err != nil {
		return err
	}
	changed := make([]session.Session, 0, len(found))
	for _, sess := range found {
		now, err := w.do(ctx, s, sess.ID)
		if err != nil {
			return err
		}
		changed = append(changed, now)
		if !a.flags.json {
			fmt.Fprintf(a.out, "%s is %s: %s\n", now.ID, w.done, printable(cmp.Or(now.Title, noTitle)))
		}
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"data": changed})
	}
	return nil
}

// resolveAll finds all the sessions that the user named, before a command changes the first.
func (a *app) resolveAll(ctx context.Context, s *store.Store, names []string) ([]session.Session, error) {
	found := make([]session.Session, 0, len(names))
	for _, name := range names {
		sess, err := a.resolve(ctx, s, name)
		if err != nil {
			return nil, err
		}
		found = append(found, sess)
	}
	return found, nil
}

// noTitle stands for a title that is empty.
const noTitle = "(no title)"
