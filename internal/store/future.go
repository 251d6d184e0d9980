package store

import (
	"time"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// farAhead is how far in the future a stored time lies that is mended. A nearer one comes true by itself.
const farAhead = 30 * 24 * time.Hour

// mendFuture gives sessions that lie far in the future the time at which they arrived, as far as the events tell:
// an older version kept a file's times, and a clock may have been ahead. Else they would lead every list for ever.
// What they are dated, created_at, stays.
func (t *tx) mendFuture() error {
	ahead := session.At(t.Now.Add(farAhead))
	if found, err := t.Exists(sessionFromFuture, ahead); err != nil || !found {
		return session.Wrap(err, "sessions from the future")
	}
	if behind, err := t.clockIsBehind(ahead); err != nil || behind {
		return session.Wrap(err, "sessions from the future")
	}
	return session.Wrap(t.Exec(`UPDATE sessions AS s SET active_at = (`+arrivalOf+`),
		updated_at = CASE WHEN updated_at > ?2 THEN (`+arrivalOf+`) ELSE updated_at END,
		inbound_at = CASE WHEN inbound_at > ?2 THEN (`+arrivalOf+`) ELSE inbound_at END WHERE active_at > ?2`, t.Now, ahead),
		"sessions from the future")
}

const sessionFromFuture = `SELECT 1 FROM sessions INDEXED BY sessions_active WHERE active_at > ? LIMIT 1`

// arrivalOf is the time of the session's last event, or of one before it that lies in the past; before all events it
// is that of the first, or of the database.
const arrivalOf = `SELECT COALESCE(
	(SELECT created_at FROM events WHERE created_at <= ?1 AND id <= (SELECT MAX(id) FROM events e WHERE e.session_id = s.id) ORDER BY id DESC LIMIT 1),
	(SELECT created_at FROM events WHERE created_at <= ?1 ORDER BY id LIMIT 1),
	(SELECT created_at FROM store WHERE id = 1))`

// clockIsBehind reports whether the clock of this start may be wrong, and what seems to lie in the future is the
// present: then the first event from there follows one of the time before it, without a leap.
func (t *tx) clockIsBehind(ahead session.Time) (bool, error) {
	var born session.Time
	var removed int64
	err := t.Row(`SELECT created_at, events_removed_id FROM store WHERE id = 1`, nil, &born, &removed)
	if err != nil || born.After(t.Now.Time) {
		return true, err
	}
	type event struct {
		ID int64        `db:"id"`
		At session.Time `db:"created_at"`
	}
	future, err := engine.First[event](t.Ctx, t, `SELECT id, created_at FROM events WHERE created_at > ? ORDER BY id LIMIT 1`, ahead)
	if err != nil || future == nil {
		return false, err
	}
	before, err := engine.First[session.Time](t.Ctx, t, `SELECT created_at FROM events WHERE id < ? ORDER BY id DESC LIMIT 1`, future.ID)
	if err != nil || before == nil && removed > 0 {
		return true, err
	}
	if before == nil {
		before = &born
	}
	return future.At.Sub(before.Time) < farAhead, nil
}
