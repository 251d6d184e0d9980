package session

// Context is the record of a context that a turn returned. The next context's prefix is compared with it,
// and reports are matched to it.
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
	Tokens         int64  `db:"tokens" json:"tokens"` // sessiond's estimate of the whole
	CreatedAt      Time   `db:"created_at" json:"created_at"`
	Limits         JSON   `db:"limits" json:"-"` // of its shortened parts; only the context manager reads it
}

// ContextBasis is what a session's context is made of beside the messages of its path.
type ContextBasis struct {
	Last    *Context          // the newest record of a context; nil: none
	Blocks  map[string]string // the caller's blocks of that one: kind → content
	Overlay *Compaction       // in force; nil: none
	Frozen  []Frozen          // by message
	Pins    []int64           // rows of messages, oldest first
	Report  *Call             // the newest one that counts for this context; nil: none
	Reports []Call            // of earlier contexts, newest first
}

// Kinds of blocks: the caller's content beside the messages, stored once per content.
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

// Frozen is content that a context added beside its messages, and that later contexts keep.
type Frozen struct {
	RowID        int64  `db:"id" json:"-"`
	SessionID    ID     `db:"session_id" json:"-"`
	MessageID    int64  `db:"message_id" json:"-"` // the message beside it
	Kind         string `db:"kind" json:"kind"`
	CompactionID *int64 `db:"compaction_id" json:"-"`
	Content      JSON   `db:"content" json:"content"`
}

// Resting is a session with a staged compaction, which takes effect when the session is idle.
type Resting struct {
	Session ID   `db:"session_id"`
	Since   Time `db:"updated_at"` // its last change
}
