package session

// FileOp is a tool's operation on a file.
type FileOp string

// The operations.
const (
	OpRead   FileOp = "read"
	OpWrite  FileOp = "write"
	OpEdit   FileOp = "edit"
	OpDelete FileOp = "delete"
)

// TouchedFile is a file that a message's tool call read or changed. Its path is the call's, made absolute
// with the session's directory if that is known.
type TouchedFile struct {
	Path      string `db:"path" json:"path"`
	MessageID int64  `db:"message_id" json:"-"`
	Op        FileOp `db:"op" json:"op"`
	SessionID ID     `db:"session_id" json:"session_id"`
}
