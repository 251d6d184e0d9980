package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/jobs"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

type purgeFlags struct{ scrub, expired, dryRun, yes bool }

func (a *app) purgeCommand() *cobra.Command {
	var f purgeFlags
	cmd := &cobra.Command{
		Use: "purge [SESSION…]", Short: "Delete sessions for good", Args: arguments(0, unlimited),
		ValidArgsFunction: a.completeSession,
		Long: "Deletes sessions with everything made from them: texts, attached files, summaries,\n" +
			"recalls, titles, entries of the search index. Usage numbers stay. Forks keep their path.\n" +
			"Fragments may stay in the database files until --scrub rewrites them; without SESSION it\n" +
			"does so after earlier purges. The command lists backups that still contain the session.\n" +
			"The source program and exports keep their copies; imports leave the session out, unless\n" +
			"they have --purged.\n" +
			"--expired applies the configured retention now.",
		Example: "  sessiond purge 20260211_001 --dry-run\n  sessiond purge 20260211_001 --scrub\n  sessiond purge --expired",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch err := exclusive(cmd, "dry-run", "scrub"); {
			case err != nil:
				return err
			case f.expired && len(args) > 0:
				return usagef("--expired selects the sessions itself; leave out SESSION")
			case len(args) == 0 && !f.expired && !f.scrub:
				return usagef("purge needs SESSION…, --expired or --scrub")
			}
			return a.with(cmd.Context(), wiring{readOnly: f.dryRun}, func(s *opened) error {
				return a.purge(cmd.Context(), s, args, f)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.scrub, "scrub", false, "rewrite the database files so that no byte is left (takes as long as a copy)")
	fl.BoolVar(&f.expired, "expired", false, "apply the configured retention")
	fl.BoolVar(&f.dryRun, "dry-run", false, "list the sessions to delete, change nothing")
	fl.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

// purger deletes from the database and the search index.
func (s *opened) purger(cfg *config.Config, log zerolog.Logger) *jobs.Purger {
	return &jobs.Purger{Store: s.store, Index: s.index, BackupDir: backupsOf(cfg).Dir, Log: log}
}

// keeper applies the configured retention.
func (s *opened) keeper(cfg *config.Config, purger *jobs.Purger, a *app, log zerolog.Logger) *jobs.Keeper {
	r := cfg.Retention
	return &jobs.Keeper{
		Rule:  store.Retention{IdleDays: r.IdleDays, TrashDays: r.TrashDays, EventsDays: r.EventsDays},
		Store: s.store, Purger: purger, Log: log, Now: a.now,
	}
}

func (a *app) purge(ctx context.Context, s *opened, names []string, f purgeFlags) error {
	purger := s.purger(a.cfg, a.log(zerolog.WarnLevel))
	if f.expired {
		return a.purgeExpired(ctx, s, s.keeper(a.cfg, purger, a, a.log(zerolog.WarnLevel)), f)
	}
	broken, err := s.store.Purging(ctx)
	if err != nil {
		return err
	}
	if !f.dryRun && len(broken) > 0 {
		if err := purger.Resume(ctx); err != nil {
			return err
		}
		for _, id := range broken {
			fmt.Fprintf(a.err, "%s is purged: an interrupted purge was finished.\n", id)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(broken, session.ID(name)) })
	}
	found, err := a.doomed(ctx, s.store, names)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.listDoomed("would be purged", found)
	}
	if len(found) > 0 {
		if sure, err := a.sure(ctx, found, f.yes); err != nil || !sure {
			return err
		}
	}
	done := make([]session.Purged, 0, len(found))
	for i, sess := range found {
		one, err := purger.Purge(ctx, store.PurgeRequest{Session: sess.ID, Scrub: f.scrub && i == len(found)-1})
		if err != nil {
			return err
		}
		done = append(done, one)
	}
	scrubbed := f.scrub
	if f.scrub && len(found) == 0 {
		if scrubbed, err = purger.Scrub(ctx); err != nil {
			return err
		}
	}
	if a.flags.json {
		return a.printJSON(map[string]any{"data": done, "scrubbed": scrubbed})
	}
	a.tellPurged(done, f.scrub, scrubbed)
	return nil
}

// doomed finds the sessions to purge. What deletes needs an id of a session, not words of its title or one of its
// messages. Ids of sessions that are gone are left out, so that a purge of several that was killed can be run again.
func (a *app) doomed(ctx context.Context, s *store.Store, names []string) ([]session.Session, error) {
	found := []session.Session{}
	for _, name := range names {
		gone, err := s.IsGone(ctx, name)
		if err != nil {
			return nil, err
		}
		if gone {
			fmt.Fprintf(a.err, "%s is gone already.\n", name)
			continue
		}
		named, err := s.Named(ctx, name, a.dir)
		if err != nil {
			return nil, err
		}
		if named.Message != nil {
			return nil, usagef("%s is a message, and purge deletes whole sessions: name %s", name, named.Session)
		}
		sess, err := s.Session(ctx, named.Session)
		if err != nil {
			return nil, err
		}
		found = append(found, sess)
	}
	return found, nil
}

// sure asks for a confirmation.
func (a *app) sure(ctx context.Context, doomed []session.Session, yes bool) (bool, error) {
	switch {
	case yes:
		return true, nil
	case !a.inTTY || a.flags.json:
		return false, usagef("nothing was purged: no terminal to ask on; --yes purges without asking")
	}
	if err := a.listDoomed("will be purged", doomed); err != nil {
		return false, err
	}
	return a.ask(ctx, "Delete for good? [y/N] ", false)
}

func (a *app) listDoomed(what string, doomed []session.Session) error {
	if a.flags.json {
		return a.printJSON(map[string]any{"data": doomed})
	}
	if len(doomed) == 0 {
		fmt.Fprintf(a.out, "Nothing %s.\n", what)
	}
	for _, s := range doomed {
		fmt.Fprintf(a.out, "%s %s: %s, %s\n", s.ID, what, printable(cmp.Or(s.Title, noTitle)),
			transcript.Counted(s.MessageCount, "message"))
	}
	return nil
}

func (a *app) tellPurged(done []session.Purged, asked, scrubbed bool) {
	for _, one := range done {
		fmt.Fprintf(a.out, "%s is purged: %s.\n", one.ID, transcript.Counted(one.Messages, "message"))
		if one.Shared > 0 {
			fmt.Fprintf(a.out, "  %s stay until the last fork that shares them is purged\n",
				transcript.Counted(one.Shared, "message"))
		}
		for _, path := range one.Backups {
			fmt.Fprintf(a.out, "  the backup %s still contains it\n", printable(path))
		}
	}
	switch {
	case asked && scrubbed:
		fmt.Fprintln(a.out, "The database and the search index were rewritten: no byte of purged sessions is left in them.")
	case asked:
		fmt.Fprintln(a.out, "Nothing to rewrite: no purge since the last --scrub.")
	default:
		fmt.Fprintln(a.out, "Fragments may stay in the database files: `sessiond purge --scrub` rewrites them.")
	}
}

func (a *app) purgeExpired(ctx context.Context, s *opened, k *jobs.Keeper, f purgeFlags) error {
	if k.Rule == (store.Retention{EventsDays: k.Rule.EventsDays}) && !a.flags.json {
		fmt.Fprintln(a.out, "No retention is configured: set retention.idle_days or retention.trash_days.")
	}
	toTrash, toPurge, err := s.store.Expired(ctx, k.Rule, a.now())
	if err != nil {
		return err
	}
	if f.dryRun {
		if a.flags.json {
			return a.printJSON(map[string]any{"to_trash": sessionIDs(toTrash), "to_purge": sessionIDs(toPurge)})
		}
		return errors.Join(a.listDoomed("would go to the trash", toTrash), a.listDoomed("would be purged", toPurge))
	}
	if len(toPurge) > 0 {
		if sure, err := a.sure(ctx, toPurge, f.yes); err != nil || !sure {
			return err
		}
	}
	done, err := k.Apply(ctx)
	if err != nil {
		return err
	}
	if f.scrub {
		if _, err := k.Purger.Scrub(ctx); err != nil {
			return err
		}
	}
	return a.report(done, "%s went to the trash, %s purged, %s removed.\n",
		transcript.Counted(len(done.Trashed), "session"),
		plural(int64(len(done.Purged)), "was", "were"), transcript.Counted(done.Events, "old event"))
}

func sessionIDs(all []session.Session) []session.ID {
	ids := make([]session.ID, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	return ids
}
