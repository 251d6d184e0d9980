package session

// Outcomes of a memory flush.
const (
	FlushAsked  = "asked" // the agent was told; nothing came back yet
	FlushOK     = "ok"
	FlushFailed = "failed" // it is asked for again
)

// Flush is a memory flush: before a compaction the agent writes down what must not be lost.
// There is one for each overlay generation of a session.
type Flush struct {
	SessionID    ID     `db:"session_id" json:"-"`
	CompactionID int64  `db:"compaction_id" json:"-"` // the overlay in force when it was asked for; 0: none
	Generation   string `db:"-" json:"generation"`    // its name, "" before the first overlay
	At           Time   `db:"at" json:"at"`
	Outcome      string `db:"outcome" json:"outcome"`
}
