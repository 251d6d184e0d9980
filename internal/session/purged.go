package session

// Purged tells what the deletion of a session for good left behind.
type Purged struct {
	ID       ID       `json:"id"`
	Messages int64    `json:"messages"` // deleted
	Shared   int64    `json:"shared"`   // that stay, since forks need them
	Scrubbed bool     `json:"scrubbed"` // no byte of it is left in the database, the search index or their logs
	Backups  []string `json:"backups"`  // files that still hold it
}
