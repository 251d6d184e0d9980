package session

import (
	"bytes"
	"io"
	"unicode/utf8"
	"unsafe"
)

// Blob is content stored once, however many parts hold it.
type Blob struct {
	SHA256    string `db:"sha256"`
	Size      int64  `db:"size"` // bytes
	MediaType string `db:"media_type"`
	Data      []byte `db:"data"`

	// From has the bytes in the place of Data when they are too many to hold at once.
	From Content `db:"-"`
}

// Content is bytes that lie elsewhere and are read there, as often as they are needed.
type Content interface {
	// Open reads the bytes from the first on. Each reader gives the same, or an error: of code
	// Busy when what lies there has changed since.
	Open() (io.Reader, error)
}

// Open reads the bytes, wherever they are.
func (b *Blob) Open() (io.Reader, error) {
	if b.From != nil {
		return b.From.Open()
	}
	return bytes.NewReader(b.Data), nil
}

// textOf gives bytes as a text without a copy, since they may be many. Nobody writes to a blob.
func textOf(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// Storable tells of bytes that are written to it whether SQLite's text holds them as they are:
// they are UTF-8 and hold no NUL. Its zero value is ready.
type Storable struct {
	torn [utf8.UTFMax]byte // a character whose rest is yet to come
	held int
	bad  bool
}

// Write takes the next bytes. There is no error.
func (s *Storable) Write(p []byte) (int, error) {
	n := len(p)
	for s.held > 0 && len(p) > 0 && !s.bad {
		s.torn[s.held] = p[0]
		s.held++
		p = p[1:]
		if utf8.FullRune(s.torn[:s.held]) {
			_, size := utf8.DecodeRune(s.torn[:s.held])
			s.bad, s.held = size < s.held, 0
		}
	}
	if s.bad || len(p) == 0 {
		return n, nil
	}
	whole := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if at := len(p) - back; utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				whole = at
			}
			break
		}
	}
	s.bad = bytes.IndexByte(p[:whole], 0) >= 0 || !utf8.Valid(p[:whole])
	s.held = copy(s.torn[:], p[whole:])
	return n, nil
}

// OK tells whether all that was written is storable.
func (s *Storable) OK() bool { return !s.bad && s.held == 0 }
