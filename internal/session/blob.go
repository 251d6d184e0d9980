package session

// Blob is content stored once, however many parts hold it.
type Blob struct {
	SHA256    string `db:"sha256"`
	Size      int64  `db:"size"` // bytes
	MediaType string `db:"media_type"`
	Data      []byte `db:"data"`
}
