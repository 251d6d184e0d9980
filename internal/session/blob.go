package session

import (
	"bytes"
	"io"
)

// Blob is content stored once, however many parts hold it.
type Blob struct {
	SHA256    string `db:"sha256"`
	Size      int64  `db:"size"` // bytes
	MediaType string `db:"media_type"`
	Data      []byte `db:"data"`

	// From has the bytes instead of Data while an importer has not read them. The store reads them.
	From Content `db:"-"`
}

// Content is bytes in a file that is imported.
type Content interface {
	// Open reads the bytes from the first on. The error has code Busy when the file changed.
	Open() (io.Reader, error)
}

// Open returns a reader of the bytes.
func (b *Blob) Open() (io.Reader, error) {
	if b.From != nil {
		return b.From.Open()
	}
	return bytes.NewReader(b.Data), nil
}
