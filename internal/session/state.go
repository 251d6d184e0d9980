package session

// State is a JSON document of a session, which clients share. sessiond stores any name and reads none.
// Clients use todos, permissions (an array with an element per approval), revert, diff and toggles.
type State struct {
	Session   ID     `db:"session_id" json:"session_id"`
	Name      string `db:"name" json:"name" doc:"The document's name"`
	Revision  int64  `db:"revision" json:"revision" doc:"Counts its changes, also after a deletion; the number in the ETag"`
	Size      int64  `db:"size" json:"size" doc:"Bytes"`
	Value     JSON   `db:"value" json:"-"`
	UpdatedAt Time   `db:"updated_at" json:"updated_at"`
	Deleted   *Time  `db:"deleted_at" json:"-"`
}
