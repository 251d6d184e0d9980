package session

// FileOp is what a tool did to a file.
type FileOp string

// The operations.
const (
	OpRead   FileOp = "read"
	OpWrite  FileOp = "write"
	OpEdit   FileOp = "edit"
	OpDelete FileOp = "delete"
)

// TouchedFile says that a message's tool call read or changed a file. Paths are as the call
// gave them, made absolute with the session's directory where that is known.
type TouchedFile struct {
	Path      string `db:"path" json:"path"`
	MessageID int64  `db:"message_id" json:"-"`
	Op        FileOp `db:"op" json:"op"`
	SessionID ID     `db:"session_id" json:"session_id"`
}
