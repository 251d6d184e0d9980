package session

// Context is the record of one context that was handed out by turns: what its prefix was
// made of, so that the next one can be compared with it and a report can be matched to it.
type Context struct {
	RowID          int64  `db:"id" json:"-"`
	SessionID      ID     `db:"session_id" json:"-"`
	HeadID         *int64 `db:"head_id" json:"-"`
	CompactionID   *int64 `db:"compaction_id" json:"-"`
	Epoch          int64  `db:"epoch" json:"epoch"`
	Model          string `db:"model" json:"model"`
	Dialect        string `db:"dialect" json:"dialect"`
	SystemHash     string `db:"system_hash" json:"-"`
	InitialHash    string `db:"initial_hash" json:"-"`
	ToolsHash      string `db:"tools_hash" json:"-"`
	OverheadTokens int64  `db:"overhead_tokens" json:"overhead_tokens"`
	Tokens         int64  `db:"tokens" json:"tokens"` // sessiond's own estimate of all of it
	CreatedAt      Time   `db:"created_at" json:"created_at"`
	Limits         JSON   `db:"limits" json:"-"` // of what was shortened in it; the context manager's own
}

// Kinds of blocks: what the caller gives beside the messages, kept once per content.
const (
	BlockSystem  = "system"
	BlockInitial = "initial"
	BlockTools   = "tools"
)

// Kinds of frozen content.
const (
	FrozenRecall     = "recall"
	FrozenVolatile   = "volatile"
	FrozenClosedCall = "closed_call"
)

// Frozen is something that was put into a context beside its messages and stays there.
type Frozen struct {
	RowID        int64  `db:"id" json:"-"`
	SessionID    ID     `db:"session_id" json:"-"`
	MessageID    int64  `db:"message_id" json:"-"` // the message it stands with
	Kind         string `db:"kind" json:"kind"`
	CompactionID *int64 `db:"compaction_id" json:"-"`
	Content      JSON   `db:"content" json:"content"`
}

// Resting is a session for which a compaction stands ready, to take effect once it rests.
type Resting struct {
	Session ID   `db:"session_id"`
	Since   Time `db:"updated_at"` // its last change
}
