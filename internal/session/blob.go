package session

import "unsafe"

// Blob is content stored once, however many parts hold it.
type Blob struct {
	SHA256    string `db:"sha256"`
	Size      int64  `db:"size"` // bytes
	MediaType string `db:"media_type"`
	Data      []byte `db:"data"`
}

// textOf returns bytes as a string without a copy, since they may be many. Nobody writes to a blob.
func textOf(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }
