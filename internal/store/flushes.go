package store

import (
	"context"
	"fmt"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Flush reads the memory flush of a session's overlay generation; nil when none was asked for.
func (s *Store) Flush(ctx context.Context, id session.ID, generation int64) (*session.Flush, error) {
	return readFlush(ctx, s, id, generation)
}

func readFlush(ctx context.Context, q engine.Queryer, id session.ID, generation int64) (*session.Flush, error) {
	f, err := engine.First[session.Flush](ctx, q, `SELECT session_id, compaction_id, at, outcome FROM flushes WHERE session_id = ? AND compaction_id = ?`, id, generation)
	if err != nil {
		return nil, fmt.Errorf("flush of %s: %w", id, err)
	}
	if f != nil && f.CompactionID != 0 {
		f.Generation = session.CompactionName(f.CompactionID)
	}
	return f, nil
}

// AskFlush notes that an agent was asked for a memory flush, and tells it in an event. One
// that was made already stays so. Codes: NotFound.
func (s *Store) AskFlush(ctx context.Context, id session.ID, generation int64) error {
	return s.write(ctx, func(t *tx) error {
		if err := t.checkExists(id); err != nil {
			return err
		}
		n, err := t.Changed(`INSERT INTO flushes (session_id, compaction_id, at, outcome) VALUES (?, ?, ?, 'asked')
			ON CONFLICT (session_id, compaction_id) DO UPDATE SET at = excluded.at, outcome = 'asked' WHERE flushes.outcome = 'failed'`, id, generation, t.Now)
		if err != nil {
			return fmt.Errorf("ask for a flush: %w", err)
		}
		if n == 0 {
			return nil
		}
		return t.event(id, EventFlushAsked, 0, session.JSONOf(map[string]string{"generation": generationName(generation)}))
	})
}

func generationName(generation int64) string {
	if generation == 0 {
		return ""
	}
	return session.CompactionName(generation)
}

// RecordFlush keeps what came of a memory flush. generation is that of the directive; nil is
// the one that was asked for last, which need not be the overlay in force now: a compaction
// may have come while the agent wrote. A failed one is asked for again.
// Codes: NotFound (the session), Invalid (no such generation).
func (s *Store) RecordFlush(ctx context.Context, id session.ID, generation *int64,
	outcome string,
) (session.Flush, error) {
	return write(ctx, s, func(t *tx) (f session.Flush, err error) {
		sess, err := readSession(t.Ctx, t, id)
		if err != nil {
			return f, err
		}
		of, err := t.flushGeneration(sess, generation)
		if err != nil {
			return f, err
		}
		if err := t.Exec(`INSERT INTO flushes (session_id, compaction_id, at, outcome) VALUES (?, ?, ?, ?)
			ON CONFLICT (session_id, compaction_id) DO UPDATE SET at = excluded.at, outcome = excluded.outcome WHERE flushes.outcome <> 'ok'`, id, of, t.Now, outcome); err != nil {
			return f, fmt.Errorf("record the flush: %w", err)
		}
		now, err := readFlush(t.Ctx, t, id, of)
		if err == nil && now != nil {
			f = *now
		}
		return f, err
	})
}

func (t *tx) flushGeneration(sess session.Session, given *int64) (int64, error) {
	if given != nil {
		if *given == 0 {
			return 0, nil
		}
		c, err := readCompaction(t.Ctx, t, *given)
		if err != nil || c.SessionID != sess.ID && (sess.CompactionID == nil || *sess.CompactionID != *given) {
			return 0, session.Errorf(session.Invalid, "session %s has no overlay %s", sess.ID,
				session.CompactionName(*given)).At("generation", "no overlay of this session")
		}
		return *given, nil
	}
	asked, err := engine.Get[int64](t.Ctx, t, `SELECT compaction_id FROM flushes WHERE session_id = ? AND outcome = 'asked' ORDER BY compaction_id DESC LIMIT 1`, sess.ID)
	switch {
	case err == nil:
		return asked, nil
	case !engine.NoRows(err):
		return 0, err
	case sess.CompactionID != nil:
		return *sess.CompactionID, nil
	}
	return 0, nil
}
