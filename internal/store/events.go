package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// Types of events in the outbox.
const (
	EventSessionCreated    = "session.created"
	EventSessionChanged    = "session.changed" // {"changed": ["settings"]} where they changed, else null
	EventSessionEnded      = "session.ended"   // {"reason"}: its key went on to the next generation
	EventHeadMoved         = "head.moved"      // {"head", "from"}: messages, null before the first one
	EventStateChanged      = "state.changed"   // {"name", "revision", "deleted"}
	EventFlushAsked        = "flush.asked"     // {"generation"}: a memory flush is wanted before a compaction
	EventMessagesAppended  = "messages.appended"
	EventCompactionStaged  = "compaction.staged"
	EventCompactionDone    = "compaction.done"
	EventCompactionFailed  = "compaction.failed"
	EventCompactionSkipped = "compaction.skipped"
	EventCompactionUndone  = "compaction.undone"
	EventCompactionRedone  = "compaction.redone"
	EventSessionPurged     = "session.purged" // nothing but its id is told
)

// event writes to the outbox, in the transaction of what it tells.
func (t *tx) event(id session.ID, kind string, seq int64, data session.JSON) error {
	var last *int64
	if seq > 0 {
		last = &seq
	}
	return t.Exec(`INSERT INTO events (session_id, type, seq, data, created_at) VALUES (?, ?, ?, ?, ?)`,
		id, kind, last, data, t.Now)
}

// EventsAfter gives events of all sessions, oldest first, whose ids are above after: in the
// order in which their writes were committed, also those of other processes.
func (s *Store) EventsAfter(ctx context.Context, after int64, limit int) ([]session.Event, error) {
	events, err := engine.List[session.Event](ctx, s, `SELECT id, session_id, type, seq, data, created_at FROM events WHERE id > ? ORDER BY id LIMIT +?`, after, limit)
	return events, session.Wrap(err, "events after %d", after)
}

// LoggedEvents returns the events of a range of ids that a log mentions, oldest first: of sessions and of
// compactions, not of messages.
func (s *Store) LoggedEvents(ctx context.Context, after, through int64) ([]session.Event, error) {
	events, err := engine.List[session.Event](ctx, s, `SELECT id, session_id, type, seq, data, created_at FROM events WHERE id > ? AND id <= ?
		AND type IN ('session.created', 'session.changed', 'compaction.done') ORDER BY id`, after, through)
	return events, session.Wrap(err, "events from %d to %d", after, through)
}

// DataVersion changes whenever another process commits; on PostgreSQL also when this one writes an event.
func (s *Store) DataVersion(ctx context.Context) (int64, error) {
	if s.IsPostgres() {
		return engine.Get[int64](ctx, s, `SELECT COALESCE(MAX(id), 0) FROM events`)
	}
	return s.DB.DataVersion(ctx)
}

// EventRange returns where the outbox stands: the epoch of its ids, the last event that was
// removed for its age (0: none was) and the last that was written. They are those of all owners, as ids are.
func (s *Store) EventRange(ctx context.Context) (epoch string, removed, last int64, err error) {
	ctx = session.WithoutScope(ctx)
	written := `COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)`
	if s.IsPostgres() {
		// The sequence also counts a transaction that has not committed: a stream that begins now gets its events.
		written = `MAX(events_removed_id, COALESCE((SELECT MAX(id) FROM events), 0))`
	}
	err = s.Read(ctx, engine.NewReading(`SELECT epoch, events_removed_id, `+written+` FROM store WHERE id = 1`, nil,
		func(row *sqlx.Rows) error {
			return row.Scan(&epoch, &removed, &last)
		}))
	return epoch, removed, last, err
}

// EventsWentBack reports whether the outbox ends before an event that it had: a backup was restored, or a server took
// over that lacks the last writes. On PostgreSQL it also ends earlier while a purge deletes the newest events.
func (s *Store) EventsWentBack(ctx context.Context, had int64) (bool, error) {
	_, _, last, err := s.EventRange(ctx)
	if err != nil || last >= had || !s.IsPostgres() {
		return err == nil && last < had, err
	}
	purging, err := engine.First[int64](session.WithoutScope(ctx), s, `SELECT 1 FROM purging LIMIT 1`)
	return purging == nil, err
}

// PurgedElsewhere reports whether a session was purged after an event. A file's processes share one index,
// which the purging one cleans: there the answer is no.
func (s *Store) PurgedElsewhere(ctx context.Context, after int64) (bool, error) {
	if !s.IsPostgres() {
		return false, nil
	}
	found, err := engine.First[int64](ctx, s, `SELECT id FROM events WHERE id > ? AND type = ? ORDER BY id LIMIT 1`, after, EventSessionPurged)
	return found != nil, err
}
