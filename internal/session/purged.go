package session

// Purged tells what the deletion of a session for good left behind.
type Purged struct {
	ID       ID       `json:"id"`
	Messages int64    `json:"messages"` // deleted; what forks share stays with them
	Scrubbed bool     `json:"scrubbed"` // no byte of it is left in the database, the search index or their logs
	Backups  []string `json:"backups"`  // files that still hold it
}
