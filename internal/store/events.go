package store

import "sessiond/internal/session"

// Types of events in the outbox.
const (
	EventSessionCreated    = "session.created"
	EventSessionChanged    = "session.changed"
	EventSessionEnded      = "session.ended" // {"reason"}: its key went on to the next generation
	EventHeadMoved         = "head.moved"    // {"head", "from"}: messages, null before the first one
	EventStateChanged      = "state.changed" // {"name", "revision", "deleted"}
	EventMessagesAppended  = "messages.appended"
	EventCompactionStaged  = "compaction.staged"
	EventCompactionDone    = "compaction.done"
	EventCompactionFailed  = "compaction.failed"
	EventCompactionSkipped = "compaction.skipped"
	EventCompactionUndone  = "compaction.undone"
	EventCompactionRedone  = "compaction.redone"
)

// event writes to the outbox, in the transaction of what it tells.
func (t *tx) event(id session.ID, kind string, seq int64, data session.JSON) error {
	var last *int64
	if seq > 0 {
		last = &seq
	}
	_, err := t.exec(`INSERT INTO events (session_id, type, seq, data, created_at) VALUES (?, ?, ?, ?, ?)`,
		id, kind, last, data, t.now)
	return err
}
