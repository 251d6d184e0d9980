package session

// Outcomes of a memory flush.
const (
	FlushAsked  = "asked" // the agent was asked and has not answered yet
	FlushOK     = "ok"
	FlushFailed = "failed" // the next turn asks again
)

// Flush is a memory flush: before a compaction, the agent writes its important facts to its memory. Each
// overlay generation of a session has one.
type Flush struct {
	SessionID    ID     `db:"session_id" json:"-"`
	CompactionID int64  `db:"compaction_id" json:"-"` // the effective overlay at the request; 0: none
	Generation   string `db:"-" json:"generation" doc:"The compaction in effect at the request, like cmp_12; \"\": none"`
	At           Time   `db:"at" json:"at"`
	Outcome      string `db:"outcome" json:"outcome" doc:"asked, ok or failed"`
}
