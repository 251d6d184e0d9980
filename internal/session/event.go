package session

// Event is one row of the outbox, written in the transaction of the change that it reports. It never
// contains the text of a message.
type Event struct {
	RowID     int64  `db:"id" json:"-"`
	ID        string `db:"-" json:"id"` // <store epoch>-<row>
	SessionID ID     `db:"session_id" json:"session_id"`
	Type      string `db:"type" json:"type"`         // session.created, messages.appended …
	Seq       *int64 `db:"seq" json:"seq,omitempty"` // of messages.appended: the last message's
	Data      JSON   `db:"data" json:"data,omitempty"`
	CreatedAt Time   `db:"created_at" json:"created_at"`
}
