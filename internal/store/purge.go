package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Purge is the deletion of one session, in steps that hold up no append for long. Its order
// is what makes it safe to break off anywhere: hidden first, then the overlays, then the
// messages from the newest to the oldest, the row last. ResumePurge takes it up again.
type Purge struct {
	ID    session.ID
	store *Store
	forks []heir   // forks of it and of those, that live or are themselves kept for others
	keep  coverage // its messages that forks share
	next  int64    // no doomed message has a higher seq
	size  int      // messages of one step
	turn  string   // purging.started_at: another one since says that forks share less by now; "": the purge has ended
}

// purgeStep is how many messages one transaction deletes: appends wait behind it.
const purgeStep = 64

// PurgeRequest asks for the deletion of a session for good.
type PurgeRequest struct {
	Session    session.ID
	IfRevision *int64 // nil: whatever it is
	Scrub      bool   // wait until no byte of it is left in the files
	Idem       *Idempotency
}

// BeginPurge hides a session at once and for good, and gives what deletes it. Forks keep their
// whole path: messages that they share stay, in a row without a name, until the last of them
// is purged. A session that is being purged already goes on. A repeated request whose purge is
// done gets no Purge, but how many messages that deleted. Codes: NotFound, PreconditionFailed.
func (s *Store) BeginPurge(ctx context.Context, in PurgeRequest) (p *Purge, deleted int64, err error) {
	known, err := s.readMessageUsage(ctx, in.Session)
	if err != nil {
		return nil, 0, err
	}
	var done *outcome
	err = s.write(ctx, func(t *tx) error {
		if running, err := t.purgeRuns(in.Session); err != nil || running {
			return err
		}
		if done, err = findOutcome(t.Ctx, t, in.Idem); err != nil || done != nil {
			return err
		}
		return t.beginPurge(in, known)
	})
	switch {
	case err != nil:
		return nil, 0, err
	case done != nil:
		return nil, done.N, nil
	}
	p, err = s.ResumePurge(ctx, in.Session)
	return p, 0, err
}

func (t *tx) beginPurge(in PurgeRequest, known *messageUsage) error {
	sess, err := readSession(t.Ctx, t, in.Session)
	if err != nil {
		return err
	}
	if in.IfRevision != nil && *in.IfRevision != sess.Revision {
		return staleRevision(sess, *in.IfRevision)
	}
	if err := t.hide(sess, known); err != nil || in.Idem == nil {
		return err
	}
	return t.keepOutcome(in.Idem, outcome{SessionID: string(sess.ID), Revision: sess.Revision, Status: 200})
}

// RememberPurged keeps for a repeated request how many messages its purge deleted.
func (s *Store) RememberPurged(ctx context.Context, idem *Idempotency, deleted int64) error {
	return s.write(ctx, func(t *tx) error {
		return t.Exec(`UPDATE idempotency_keys SET n = ? WHERE key_hash = ?`, deleted, keyHash(idem))
	})
}

// Purging lists the sessions whose deletion was begun and not finished.
func (s *Store) Purging(ctx context.Context) ([]session.ID, error) {
	ids, err := engine.List[session.ID](ctx, s, `SELECT session_id FROM purging ORDER BY session_id`)
	return ids, err
}

// ResumePurge goes on with a deletion that was begun.
func (s *Store) ResumePurge(ctx context.Context, id session.ID) (*Purge, error) {
	p := &Purge{ID: id, store: s, size: purgeStep}
	var err error
	p.turn, err = engine.Get[string](ctx, s, `SELECT started_at FROM purging WHERE session_id = ?`, id)
	if engine.NoRows(err) { // another process ended it
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("purge %s: %w", id, err)
	}
	if err := p.findHeirs(ctx); err != nil {
		return nil, fmt.Errorf("purge %s: %w", id, err)
	}
	if p.keep, err = p.shared(ctx); err != nil {
		return nil, err
	}
	if p.next, err = engine.Get[int64](ctx, s, `SELECT last_seq FROM sessions WHERE id = ?`, id); err != nil &&
		!engine.NoRows(err) {
		return nil, fmt.Errorf("purge %s: %w", id, err)
	}
	err = p.dropOverlays(ctx)
	return p, session.Wrap(err, "purge %s", id)
}

// hide takes a session out of everything that lists or reads, and empties what its row says.
// Names that were made from it leave its forks, too.
func (t *tx) hide(sess session.Session, known *messageUsage) error {
	if err := t.Exec(`INSERT INTO purging (session_id, started_at) VALUES (?, ?)`, sess.ID, t.Now); err != nil {
		return err
	}
	if err := t.bury(&sess); err != nil {
		return err
	}
	if err := t.renameForks(sess); err != nil {
		return err
	}
	if err := t.releaseChildren(sess.ID); err != nil {
		return err
	}
	err := t.moveUsage(sess.ID, known, func() error {
		return t.Exec(`UPDATE sessions SET purged_at = ?, deleted_at = COALESCE(deleted_at, ?), updated_at = ?, revision = revision + 1,
		title = '', title_source = '', key = '', generation = 0, source_id = '', directory = '', project = '', git_branch = '',
		head_id = NULL, compaction_id = NULL, context_tokens = 0, starred_at = NULL, settings = NULL, metadata = '{}', foreign_from = ''
		WHERE id = ?`,
			t.Now, t.Now, t.Now, sess.ID)
	})
	if err != nil {
		return fmt.Errorf("hide session: %w", err)
	}
	// A key without a session is forgotten with its label: it may be a person's number and name.
	if err := t.Exec(`DELETE FROM keys WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE key = ?1 AND key <> '')`, sess.Key); err != nil {
		return fmt.Errorf("forget the key: %w", err)
	}
	return t.Exec(`UPDATE store SET unscrubbed_at = COALESCE(unscrubbed_at, ?) WHERE id = 1`, t.Now)
}

// releaseChildren makes a session's sub-agents sessions without a parent, which count for their own projects.
func (t *tx) releaseChildren(id session.ID) error {
	children, err := engine.List[session.ID](t.Ctx, t, `SELECT id FROM sessions WHERE parent_id = ? AND parent_id <> '' AND parent_kind = 'child'`, id)
	if err != nil {
		return fmt.Errorf("children: %w", err)
	}
	for _, child := range children {
		err := t.moveUsage(child, nil, func() error {
			return t.ExecEach([]string{`DELETE FROM links WHERE session_id = ?`, `UPDATE sessions SET parent_id = '', parent_kind = '' WHERE id = ?`}, child)
		})
		if err != nil {
			return fmt.Errorf("child %s: %w", child, err)
		}
	}
	return nil
}

// numberOfFork is what a fork's title has more than the one that it was copied from.
var numberOfFork = pattern.New(`^ \(fork #[0-9]+\)$`)

// renameForks takes a title that was copied from the purged session out of its forks.
func (t *tx) renameForks(sess session.Session) error {
	if sess.Title == "" {
		return nil
	}
	forks, err := forksOf(t.Ctx, t, sess.ID)
	if err != nil {
		return err
	}
	for _, id := range forks {
		title, err := engine.Get[string](t.Ctx, t, `SELECT title FROM sessions WHERE id = ?`, id)
		if err != nil {
			return fmt.Errorf("title of fork %s: %w", id, err)
		}
		rest, same := strings.CutPrefix(title, sess.Title)
		if !same || rest != "" && !numberOfFork.MatchString(rest) {
			continue // its own
		}
		if err := t.Exec(`UPDATE sessions SET title = '', title_source = '', revision = revision + 1, updated_at = ? WHERE id = ?`, t.Now, id); err != nil {
			return fmt.Errorf("title of fork %s: %w", id, err)
		}
	}
	return nil
}

// dropOverlays deletes the session's compactions, but those that a fork may be under: done
// ones about messages that it shares. They, and what purged forks shared, go before the
// messages that they name.
func (p *Purge) dropOverlays(ctx context.Context) error {
	return p.store.write(ctx, func(t *tx) error {
		if runs, err := t.purgeRuns(p.ID); err != nil || !runs {
			return err
		}
		if err := p.trimLinks(t); err != nil {
			return err
		}
		type overlay struct {
			ID      int64               `db:"id"`
			Done    bool                `db:"done"`
			Through *session.MessageRef `db:"through"`
		}
		own, err := engine.List[overlay](t.Ctx, t, `SELECT c.id, c.status = 'done' AS done, m.session_id || '.' || m.seq AS through
			FROM compactions c LEFT JOIN messages m ON m.id = c.through_id WHERE c.session_id = ? ORDER BY c.id`, p.ID)
		if err != nil {
			return err
		}
		for _, c := range own {
			if c.Done && c.Through != nil && p.inheritsOverlay(*c.Through) {
				continue
			}
			if err := t.ExecEach([]string{
				`UPDATE calls SET compaction_id = NULL, error = '' WHERE compaction_id = ?1`,
				`DELETE FROM compaction_undos WHERE session_id = ?2 AND compaction_id = ?1`,
				`DELETE FROM compactions WHERE id = ?1 AND session_id = ?2`,
			}, c.ID, p.ID); err != nil {
				return fmt.Errorf("overlays: %w", err)
			}
		}
		return t.Exec(`UPDATE sessions SET compaction_count = (SELECT COUNT(*) FROM compactions c WHERE c.session_id = sessions.id AND c.status = 'done'
			AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = c.id)) WHERE id = ?`, p.ID)
	})
}

// Doomed returns the rows of the messages that go next, newest first; none: only Finish is left.
// An index over the messages forgets them before Delete.
func (p *Purge) Doomed(ctx context.Context) ([]int64, error) {
	var rows []int64
	for len(rows) < p.size && p.next > 0 {
		read := 0
		err := engine.Each(ctx, p.store, func(m *session.Message) error {
			read, p.next = read+1, m.Seq-1
			if !p.keep.holds(m.Seq) {
				rows = append(rows, m.RowID)
			}
			return nil
		}, `SELECT id, seq FROM messages WHERE session_id = ? AND seq <= ? ORDER BY seq DESC LIMIT +?`, p.ID, p.next, p.size-len(rows))
		if err != nil {
			return nil, fmt.Errorf("purge %s: %w", p.ID, err)
		}
		if read == 0 {
			p.next = 0
		}
	}
	return rows, nil
}

// Delete deletes messages that Doomed gave, with all that hangs on them, in one transaction.
// What is gone already, because two delete at once, is passed over; and all of it once the other
// has ended the purge: what it left is looked at anew when the fork that it was left for is gone.
func (p *Purge) Delete(ctx context.Context, rows []int64) error {
	return p.store.write(ctx, func(t *tx) error {
		if runs, err := t.purgeRuns(p.ID); err != nil || !runs {
			return err
		}
		for _, row := range rows {
			if err := t.deleteMessage(p.ID, row); err != nil {
				return fmt.Errorf("purge %s: %w", p.ID, err)
			}
		}
		return t.Exec(`UPDATE sessions SET last_seq = (SELECT COALESCE(MAX(seq), 0) FROM messages WHERE session_id = sessions.id) WHERE id = ?`, p.ID)
	})
}

// purgeRuns reports whether the purge of a session goes on: another process may have ended it.
func (t *tx) purgeRuns(id session.ID) (bool, error) {
	return t.Exists(`SELECT 1 FROM purging WHERE session_id = ?`, id)
}

func (t *tx) deleteMessage(id session.ID, row int64) error {
	var tokens int64
	var day string
	var origin session.Origin
	var talk session.Talk
	var source session.Source
	err := t.Row(`SELECT m.tokens, m.day, m.origin, m.talk, s.source FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id = ? AND m.session_id = ?`,
		[]any{row, id}, &tokens, &day, &origin, &talk, &source)
	if engine.NoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	blobs, err := engine.List[string](t.Ctx, t, `SELECT blob FROM parts WHERE id BETWEEN CAST(?1 AS BIGINT) << 10 AND (CAST(?1 AS BIGINT) << 10 | 1023) AND blob IS NOT NULL`, row)
	if err != nil {
		return err
	}
	if err := t.ExecEach([]string{
		`DELETE FROM parts WHERE id BETWEEN CAST(?1 AS BIGINT) << 10 AND (CAST(?1 AS BIGINT) << 10 | 1023)`,
		`DELETE FROM touched_files WHERE message_id = ?1`,
		`DELETE FROM messages WHERE id = ?1`,
		`DELETE FROM marks WHERE session_id = ?2 AND message_id = ?1`,
		`DELETE FROM frozen WHERE session_id = ?2 AND message_id = ?1`,
	}, row, id); err != nil {
		return err
	}
	if err := t.Exec(`UPDATE sessions SET message_count = message_count - 1, said_count = said_count - ?, total_tokens = total_tokens - ? WHERE id = ?`,
		talk == session.Said, tokens, id); err != nil {
		return err
	}
	for _, sha := range blobs {
		if err := t.Exec(`DELETE FROM blobs WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM parts WHERE blob = ?1)`, sha); err != nil {
			return err
		}
	}
	purged := usageSum{Messages: 1}
	if origin == session.Person {
		purged.Prompts = 1
	}
	return t.countPurged(day, source, purged)
}

// IsPurged reports whether a session was purged here; false if it never existed.
func (s *Store) IsPurged(ctx context.Context, id session.ID) (bool, error) {
	found, err := engine.First[int64](ctx, s, `SELECT 1 FROM sessions WHERE id = ? AND purged_at IS NOT NULL`, id)
	return found != nil, err
}

// countPurged keeps what the roll-up counts explainable after the rows are gone.
func (t *tx) countPurged(day string, source session.Source, u usageSum) error {
	return t.Exec(`INSERT INTO purged_days (day, source, sessions, subagents, messages, prompts) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (day, source) DO UPDATE SET sessions = purged_days.sessions + excluded.sessions, subagents = purged_days.subagents + excluded.subagents,
		messages = purged_days.messages + excluded.messages, prompts = purged_days.prompts + excluded.prompts`,
		day, source, u.Sessions, u.Subagents, u.Messages, u.Prompts)
}

// checkExists refuses what would be written beside a session that was purged meanwhile.
func (t *tx) checkExists(id session.ID) error {
	if lives, err := t.Exists(`SELECT 1 FROM sessions WHERE id = ? AND purged_at IS NULL`, id); err != nil || lives {
		return err
	}
	return noSession(id)
}

// Rows of one step where they are small.
const (
	finishStep = 500
	eventStep  = 20_000 // ids that are looked at
)

// Finish deletes what is left of the session beside its messages, once Doomed gives none. The
// ledger keeps its numbers and forgets whose they were. Shells gives rows that stood only for
// forks and that nothing needs any more, perhaps: each is to be purged in its turn.
func (p *Purge) Finish(ctx context.Context) (shells []session.ID, err error) {
	if p.turn == "" { // its forks were not read: what they share would go
		return nil, nil
	}
	for _, step := range []func(context.Context) error{
		p.unlinkCalls, p.forgetContexts, p.forgetEvents,
		p.forgetDocuments,
	} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("purge %s: %w", p.ID, err)
		}
	}
	err = p.store.write(ctx, func(t *tx) error {
		var err error
		shells, err = t.endPurge(p)
		return err
	})
	return shells, session.Wrap(err, "purge %s", p.ID)
}

// until repeats a statement that changes at most finishStep rows until it changes none.
func (p *Purge) until(ctx context.Context, query string, args ...any) error {
	for {
		var n int64
		err := p.store.write(ctx, func(t *tx) (err error) {
			n, err = t.Changed(query, args...)
			return err
		})
		if err != nil || n < finishStep {
			return err
		}
	}
}

func (p *Purge) unlinkCalls(ctx context.Context) error {
	if err := p.until(ctx, `UPDATE calls SET session_id = '', message_id = NULL, compaction_id = NULL, context_id = NULL, error = '', directory = '', metadata = NULL
		WHERE id IN (SELECT id FROM calls WHERE session_id = ?1 AND session_id <> '' LIMIT +?2)`, p.ID, finishStep); err != nil {
		return err
	}
	return p.until(ctx, `UPDATE sessions SET input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0,
		cost_nanousd = NULL, unpriced_calls = 0 WHERE id = ?`, p.ID)
}

// forgetContexts deletes the records of contexts, and the caller's blocks that no other session
// was given. The readers find these; the transaction only looks at the contexts that came since.
func (p *Purge) forgetContexts(ctx context.Context) error {
	newest, err := engine.Get[int64](ctx, p.store, `SELECT COALESCE(MAX(id), 0) FROM contexts`)
	if err != nil {
		return err
	}
	own, err := engine.List[string](ctx, p.store, ownBlocks, p.ID)
	if err != nil {
		return err
	}
	if err := p.store.write(ctx, func(t *tx) error {
		return t.Exec(deleteBlocks, string(session.JSONOf(own)), newest)
	}); err != nil {
		return err
	}
	return p.until(ctx, `DELETE FROM contexts WHERE id IN (SELECT id FROM contexts WHERE session_id = ? LIMIT +?)`, p.ID, finishStep)
}

const (
	ownBlocks = `
		SELECT system_hash FROM contexts WHERE session_id = ?1
		UNION SELECT initial_hash FROM contexts WHERE session_id = ?1
		UNION SELECT tools_hash FROM contexts WHERE session_id = ?1
		EXCEPT SELECT system_hash FROM contexts WHERE session_id <> ?1
		EXCEPT SELECT initial_hash FROM contexts WHERE session_id <> ?1
		EXCEPT SELECT tools_hash FROM contexts WHERE session_id <> ?1`
	deleteBlocks = `
		DELETE FROM blocks WHERE hash IN (SELECT value FROM json_each(?1))
		AND NOT EXISTS (SELECT 1 FROM contexts WHERE id > ?2 AND blocks.hash IN (system_hash, initial_hash, tools_hash))`
)

func (p *Purge) forgetEvents(ctx context.Context) error {
	type span struct {
		First int64 `db:"first"`
		Last  int64 `db:"last"`
	}
	all, err := engine.Get[span](ctx, p.store, `SELECT COALESCE((SELECT id FROM events ORDER BY id LIMIT 1), 1) AS first,
		COALESCE((SELECT id FROM events ORDER BY id DESC LIMIT 1), 0) AS last`)
	if err != nil {
		return err
	}
	for at := all.First; at <= all.Last; at += eventStep {
		if err := p.store.write(ctx, func(t *tx) error {
			return t.Exec(`DELETE FROM events WHERE id >= ? AND id < ? AND session_id = ? AND type <> ?`, at, at+eventStep, p.ID, EventSessionPurged)
		}); err != nil {
			return err
		}
	}
	return nil
}

// forgetDocuments deletes what belongs to the session beside its messages: states, marks, what was frozen into
// contexts and no fork inherits (in forks: for messages that are gone), flushes, and where an
// import stood.
func (p *Purge) forgetDocuments(ctx context.Context) error {
	unfrozen, err := p.unfrozen(ctx)
	if err != nil {
		return fmt.Errorf("what was frozen: %w", err)
	}
	return p.store.write(ctx, func(t *tx) error {
		if err := t.ExecEach([]string{
			`DELETE FROM states WHERE session_id = ?`,
			`DELETE FROM marks WHERE session_id = ?`,
			`DELETE FROM flushes WHERE session_id = ?`,
			`UPDATE imports SET session_id = '', state = NULL WHERE session_id = ?`,
		}, p.ID); err != nil {
			return err
		}
		if err := t.forgetTranscripts(p.ID); err != nil {
			return err
		}
		if err := t.Exec(`DELETE FROM frozen WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`, string(session.JSONOf(unfrozen))); err != nil {
			return err
		}
		for i := range p.forks {
			if err := t.Exec(frozenOfNothing, p.forks[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
}

const frozenOfNothing = `DELETE FROM frozen WHERE session_id = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE id = frozen.message_id)`

// endPurge deletes the row, if nothing of the session stays for its forks, and tells it.
func (t *tx) endPurge(p *Purge) (shells []session.ID, err error) {
	id := p.ID
	var again, told bool
	err = t.Row(`SELECT started_at <> ?, told FROM purging WHERE session_id = ?`, []any{p.turn, id}, &again, &told)
	switch {
	case engine.NoRows(err):
		return nil, nil // another process was here first
	case err != nil:
		return nil, err
	case again:
		return []session.ID{id}, nil
	}
	var day, kind, parentKind string
	var source session.Source
	var parent session.ID
	var draft, left bool
	err = t.Row(`SELECT day, source, kind, draft, parent_id, parent_kind, EXISTS (SELECT 1 FROM messages WHERE session_id = s.id)
		OR EXISTS (SELECT 1 FROM compactions WHERE session_id = s.id) OR EXISTS (SELECT 1 FROM frozen WHERE session_id = s.id) FROM sessions s WHERE id = ?`, []any{id},
		&day, &source, &kind, &draft, &parent, &parentKind, &left)
	if engine.NoRows(err) {
		return nil, nil // another process was here first
	}
	if err != nil {
		return nil, err
	}
	if !left {
		if parentKind != session.ParentFork {
			parent, parentKind = "", ""
		}
		if err := t.deleteSession(id, parent, parentKind); err != nil {
			return nil, err
		}
		if !draft {
			purged := usageSum{Sessions: 1}
			if kind == session.KindSubagent {
				purged.Subagents = 1
			}
			if err := t.countPurged(day, source, purged); err != nil {
				return nil, err
			}
		}
	}
	if err := t.Exec(`DELETE FROM purging WHERE session_id = ?`, id); err != nil {
		return nil, err
	}
	if !told {
		if err := t.event(id, EventSessionPurged, 0, nil); err != nil {
			return nil, err
		}
	}
	if parentKind != session.ParentFork {
		return nil, nil
	}
	// Where another process purges the parent now, it looks anew at what is still shared.
	at := t.Now
	begun, err := engine.First[session.Time](t.Ctx, t, `SELECT started_at FROM purging WHERE session_id = ?`, parent)
	if err != nil {
		return nil, err
	}
	if begun != nil && !at.After(begun.Time) {
		at = session.At(begun.Add(time.Millisecond))
	}
	n, err := t.Changed(`INSERT INTO purging (session_id, started_at, told) SELECT id, ?, 1 FROM sessions WHERE id = ? AND purged_at IS NOT NULL
		ON CONFLICT (session_id) DO UPDATE SET started_at = excluded.started_at`, at, parent)
	if err != nil || n == 0 {
		return nil, err
	}
	return []session.ID{parent}, nil
}

// deleteSession deletes an empty session's row. Its forks are its parent's from now on, if it
// was a fork itself: paths and overlays go on through it, and what they inherit is no more
// than it inherited.
func (t *tx) deleteSession(id, parent session.ID, parentKind string) error {
	if err := t.ExecEach([]string{
		`UPDATE links AS fork SET compaction_id = MIN(fork.compaction_id, own.compaction_id), activated_at = MIN(fork.activated_at, own.activated_at),
			frozen_id = MIN(fork.frozen_id, own.frozen_id) FROM (SELECT compaction_id, activated_at, frozen_id FROM links WHERE session_id = ?1) own
			WHERE fork.session_id IN (SELECT id FROM sessions WHERE parent_id = ?1 AND parent_id <> '')`,
		`DELETE FROM links WHERE session_id = ?1`,
		`DELETE FROM compaction_undos WHERE session_id = ?1`,
		`DELETE FROM frozen WHERE session_id = ?1`,
	}, id); err != nil {
		return err
	}
	if err := t.Exec(`UPDATE sessions SET parent_id = ?2, parent_kind = ?3 WHERE parent_id = ?1 AND parent_id <> ''`, id, parent, parentKind); err != nil {
		return err
	}
	return t.Exec(`DELETE FROM sessions WHERE id = ?`, id)
}
