package store

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// Rows of one step where they are small.
const (
	finishStep = 500
	eventStep  = 20_000 // ids that are looked at
)

// Finish deletes what is left of the session beside its messages, once Doomed gives none. The
// ledger keeps its numbers and forgets whose they were. Shells gives rows that stood only for
// forks and that nothing needs any more, perhaps: each is to be purged in its turn.
func (p *Purge) Finish(ctx context.Context) (shells []session.ID, err error) {
	for _, step := range []func(context.Context) error{p.unlinkCalls, p.forgetContexts, p.forgetEvents, p.forgetDocuments} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("purge %s: %w", p.ID, err)
		}
	}
	err = p.store.write(ctx, func(t *tx) error {
		var err error
		shells, err = t.endPurge(p)
		return err
	})
	return shells, wrap(err, "purge %s", p.ID)
}

// until repeats a statement that changes at most finishStep rows until it changes none.
func (p *Purge) until(ctx context.Context, query string, args ...any) error {
	for {
		var n int64
		err := p.store.write(ctx, func(t *tx) (err error) {
			n, err = t.changed(query, args...)
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
	newest, err := get[int64](ctx, p.store, `SELECT COALESCE(MAX(id), 0) FROM contexts`)
	if err != nil {
		return err
	}
	own, err := list[string](ctx, p.store, ownBlocks, p.ID)
	if err != nil {
		return err
	}
	if err := p.store.write(ctx, func(t *tx) error { return t.exec(deleteBlocks, string(session.JSONOf(own)), newest) }); err != nil {
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
	all, err := get[span](ctx, p.store, `SELECT COALESCE((SELECT id FROM events ORDER BY id LIMIT 1), 1) AS first,
		COALESCE((SELECT id FROM events ORDER BY id DESC LIMIT 1), 0) AS last`)
	if err != nil {
		return err
	}
	for at := all.First; at <= all.Last; at += eventStep {
		if err := p.store.write(ctx, func(t *tx) error {
			return t.exec(`DELETE FROM events WHERE id >= ? AND id < ? AND session_id = ? AND type <> ?`, at, at+eventStep, p.ID, EventSessionPurged)
		}); err != nil {
			return err
		}
	}
	return nil
}

// forgetDocuments deletes what stands beside the messages: states, marks, what was frozen into
// contexts and no fork inherits (in forks: for messages that are gone), flushes, and where an
// import stood.
func (p *Purge) forgetDocuments(ctx context.Context) error {
	unfrozen, err := p.unfrozen(ctx)
	if err != nil {
		return fmt.Errorf("what was frozen: %w", err)
	}
	return p.store.write(ctx, func(t *tx) error {
		if err := t.execEach([]string{
			`DELETE FROM states WHERE session_id = ?`,
			`DELETE FROM marks WHERE session_id = ?`,
			`DELETE FROM flushes WHERE session_id = ?`,
			`UPDATE imports SET session_id = '', state = NULL WHERE session_id = ?`,
		}, p.ID); err != nil {
			return err
		}
		if err := t.exec(`DELETE FROM frozen WHERE id IN (SELECT value FROM json_each(?))`, string(session.JSONOf(unfrozen))); err != nil {
			return err
		}
		for i := range p.forks {
			if err := t.exec(frozenOfNothing, p.forks[i].ID); err != nil {
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
	err = t.row(`SELECT started_at <> ?, told FROM purging WHERE session_id = ?`, []any{p.turn, id}, &again, &told)
	switch {
	case noRows(err):
		return nil, nil // another process was here first
	case err != nil:
		return nil, err
	case again:
		return []session.ID{id}, nil
	}
	var day, source, parentKind string
	var parent session.ID
	var draft, left bool
	err = t.row(`SELECT day, source, draft, parent_id, parent_kind, EXISTS (SELECT 1 FROM messages WHERE session_id = s.id)
		OR EXISTS (SELECT 1 FROM compactions WHERE session_id = s.id) OR EXISTS (SELECT 1 FROM frozen WHERE session_id = s.id) FROM sessions s WHERE id = ?`, []any{id},
		&day, &source, &draft, &parent, &parentKind, &left)
	if noRows(err) {
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
			if err := t.countPurged(day, source, 1, 0, false); err != nil {
				return nil, err
			}
		}
	}
	if err := t.exec(`DELETE FROM purging WHERE session_id = ?`, id); err != nil {
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
	n, err := t.changed(`INSERT INTO purging (session_id, started_at, told) SELECT id, ?, 1 FROM sessions WHERE id = ? AND purged_at IS NOT NULL
		ON CONFLICT DO UPDATE SET started_at = MAX(excluded.started_at, strftime('%Y-%m-%d %H:%M:%f', started_at, '+0.001 seconds'))`, t.now, parent)
	if err != nil || n == 0 {
		return nil, err
	}
	return []session.ID{parent}, nil
}

// deleteSession deletes an empty session's row. Its forks are its parent's from now on, if it
// was a fork itself: paths and overlays go on through it, and what they inherit is no more
// than it inherited.
func (t *tx) deleteSession(id, parent session.ID, parentKind string) error {
	if err := t.execEach([]string{
		`UPDATE links AS fork SET compaction_id = MIN(fork.compaction_id, own.compaction_id), activated_at = MIN(fork.activated_at, own.activated_at),
			frozen_id = MIN(fork.frozen_id, own.frozen_id) FROM (SELECT compaction_id, activated_at, frozen_id FROM links WHERE session_id = ?1) own
			WHERE fork.session_id IN (SELECT id FROM sessions WHERE parent_id = ?1 AND parent_id <> '')`,
		`DELETE FROM links WHERE session_id = ?1`,
		`DELETE FROM compaction_undos WHERE session_id = ?1`,
		`DELETE FROM frozen WHERE session_id = ?1`,
	}, id); err != nil {
		return err
	}
	if err := t.exec(`UPDATE sessions SET parent_id = ?2, parent_kind = ?3 WHERE parent_id = ?1 AND parent_id <> ''`, id, parent, parentKind); err != nil {
		return err
	}
	return t.exec(`DELETE FROM sessions WHERE id = ?`, id)
}
