package session

// Purged is the result of a purge.
type Purged struct {
	ID       ID       `json:"id"`
	Messages int64    `json:"messages"` // deleted
	Shared   int64    `json:"shared"`   // kept, because forks need them
	Scrubbed bool     `json:"scrubbed"` // the database, the search index and their logs contain no byte of it
	Backups  []string `json:"backups"`  // files that still contain it
}
