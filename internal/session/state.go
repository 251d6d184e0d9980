package session

// Names of documents that clients share. sessiond keeps any other as well and reads none.
const (
	StateTodos       = "todos"       // what is to be done
	StatePermissions = "permissions" // an array: one element for each approval
	StateRevert      = "revert"      // what an undo in the working folder would put back
	StateDiff        = "diff"        // what the session changed in files
	StateToggles     = "toggles"     // switches of the client
)

// State is a JSON document that belongs to a session.
type State struct {
	Session   ID     `db:"session_id" json:"session_id"`
	Name      string `db:"name" json:"name"`
	Revision  int64  `db:"revision" json:"revision"` // counts its changes, also across a deletion
	Size      int64  `db:"size" json:"size"`         // bytes
	Value     JSON   `db:"value" json:"-"`
	UpdatedAt Time   `db:"updated_at" json:"updated_at"`
	Deleted   *Time  `db:"deleted_at" json:"-"`
}
