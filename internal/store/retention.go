package store

import (
	"context"
	"fmt"
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Retention says what may be removed by age, in days; 0: never.
type Retention struct {
	IdleDays   int // sessions that were not active for so long go to the trash, unless they are archived
	TrashDays  int // sessions that are in the trash for so long are purged
	EventsDays int // events that are so old are removed
}

// Expired lists what a retention would remove at a time: sessions for the trash, and sessions
// for good. It changes nothing.
func (s *Store) Expired(ctx context.Context, r Retention,
	now time.Time,
) (toTrash, toPurge []session.Session, err error) {
	if r.IdleDays > 0 {
		if toTrash, err = readSessions(ctx, s, idleSince, daysBefore(now, r.IdleDays)); err != nil {
			return nil, nil, fmt.Errorf("idle sessions: %w", err)
		}
	}
	if r.TrashDays > 0 {
		if toPurge, err = readSessions(ctx, s, trashedSince, daysBefore(now, r.TrashDays)); err != nil {
			return nil, nil, fmt.Errorf("old trash: %w", err)
		}
	}
	return toTrash, toPurge, nil
}

const (
	idleSince = `SELECT ` + sessionColumns + fromSessions + `WHERE s.active_at < ? AND s.archived_at IS NULL AND s.deleted_at IS NULL
		AND s.draft = 0 ORDER BY s.active_at, s.id`
	// The trash is looked through once a day: an index of its own would cost every append.
	trashedSince = `SELECT ` + sessionColumns + fromSessions + `WHERE s.deleted_at < ? AND s.purged_at IS NULL ORDER BY s.deleted_at, s.id`
)

// Newest returns the latest time at which a session changed, zero if there is none.
func (s *Store) Newest(ctx context.Context) (time.Time, error) {
	var at *session.Time
	err := s.Reader().GetContext(ctx, &at, `SELECT MAX(updated_at) FROM sessions`)
	if err != nil || at == nil {
		return time.Time{}, err
	}
	return at.Time, nil
}

// KnownTime returns the time of the newest event that was old at a time, else the latest at which a session changed;
// zero if there is none. Events are in order of arrival, so that those which a clock stamped that was set since tell of
// it.
func (s *Store) KnownTime(ctx context.Context, old time.Time) (time.Time, error) {
	at, err := engine.First[session.Time](ctx, s, lastEventBefore, session.At(old))
	if err != nil {
		return time.Time{}, err
	}
	if at == nil {
		return s.Newest(ctx)
	}
	return at.Time, nil
}

const lastEventBefore = `SELECT created_at FROM events WHERE created_at < ? ORDER BY id DESC LIMIT 1`

// ForgetKeys forgets the idempotency keys of more than a week ago.
func (s *Store) ForgetKeys(ctx context.Context, now time.Time) error {
	err := s.write(ctx, func(t *tx) error { return t.Exec(forgetKeys, daysBefore(now, 7), session.At(now)) })
	return session.Wrap(err, "forget old idempotency keys")
}

// Keys are in order of arrival. The query finds the first key of this week and deletes up to the
// last old key before it. A key with a time in the future does not end the search; it goes with the
// next old key after it.
const forgetKeys = `
	DELETE FROM idempotency_keys WHERE id <= (
		SELECT id FROM idempotency_keys WHERE created_at < ?1 AND id < COALESCE(
			(SELECT id FROM idempotency_keys WHERE created_at BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1), 9223372036854775807)
		ORDER BY id DESC LIMIT 1)`

func daysBefore(now time.Time, days int) session.Time {
	return session.At(now.Add(-time.Duration(days) * 24 * time.Hour))
}

// RemoveEvents removes the events that are older than a time, in short steps, and remembers up
// to where, so that a reader who comes back later is told of the gap.
func (s *Store) RemoveEvents(ctx context.Context, before time.Time) (removed int64, err error) {
	for {
		var n int64
		err := s.write(ctx, func(t *tx) error {
			var through *int64
			// Events are in the order of time, but for a clock that was set back.
			if err := t.Row(`SELECT MAX(id) FROM (SELECT id, created_at FROM events ORDER BY id LIMIT +?) AS oldest WHERE created_at < ?`,
				[]any{finishStep, session.At(before)}, &through); err != nil || through == nil {
				return err
			}
			if n, err = t.Changed(`DELETE FROM events WHERE id <= ?`, *through); err != nil {
				return err
			}
			return t.Exec(`UPDATE store SET events_removed_id = MAX(events_removed_id, ?) WHERE id = 1`, *through)
		})
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// A draft that anything refers to stays.
const forgetDrafts = `
	DELETE FROM sessions WHERE draft = 1 AND created_at < ?1 AND updated_at < ?1 AND message_count = 0
	AND NOT EXISTS (SELECT 1 FROM compactions c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.session_id = sessions.id AND c.session_id <> '')
	AND NOT EXISTS (SELECT 1 FROM states c WHERE c.session_id = sessions.id)
	AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_id = sessions.id AND c.parent_id <> '') RETURNING id`

// ForgetDrafts removes the empty drafts that were made before a time, and tells how many.
func (s *Store) ForgetDrafts(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.write(ctx, func(t *tx) error {
		gone, err := engine.List[session.ID](t.Ctx, t, forgetDrafts, session.At(before))
		if err != nil {
			return fmt.Errorf("forget drafts: %w", err)
		}
		n = int64(len(gone))
		for _, id := range gone {
			if err := t.ExecEach([]string{ // what does not keep it
				`DELETE FROM links WHERE session_id = ?`,
				`DELETE FROM compaction_undos WHERE session_id = ?`,
				`DELETE FROM marks WHERE session_id = ?`,
				`DELETE FROM flushes WHERE session_id = ?`,
				`DELETE FROM contexts WHERE session_id = ?`,
			}, id); err != nil {
				return fmt.Errorf("forget draft %s: %w", id, err)
			}
		}
		return nil
	})
	return n, err
}
