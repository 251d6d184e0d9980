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

// TextCheck tells of bytes that are written to it whether they are a text. Its zero value is
// ready.
type TextCheck struct {
	torn [utf8.UTFMax]byte // a character whose rest is yet to come
	held int
	bad  bool // no UTF-8
	nul  bool
}

// Write takes the next bytes. There is no error.
func (c *TextCheck) Write(p []byte) (int, error) {
	n := len(p)
	for c.held > 0 && len(p) > 0 && !c.bad {
		c.torn[c.held] = p[0]
		c.held++
		p = p[1:]
		if utf8.FullRune(c.torn[:c.held]) {
			_, size := utf8.DecodeRune(c.torn[:c.held])
			c.bad, c.held = size < c.held, 0
		}
	}
	if c.bad || len(p) == 0 {
		return n, nil
	}
	whole := len(p)
	for at := len(p) - 1; at >= 0 && at > len(p)-utf8.UTFMax; at-- {
		if utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				whole = at
			}
			break
		}
	}
	c.nul = c.nul || bytes.IndexByte(p[:whole], 0) >= 0
	c.bad = !utf8.Valid(p[:whole])
	c.held = copy(c.torn[:], p[whole:])
	return n, nil
}

// UTF8 tells whether all that was written is UTF-8.
func (c *TextCheck) UTF8() bool { return !c.bad && c.held == 0 }

// Storable tells whether SQLite's text holds all that was written as it is: it is UTF-8 without NUL.
func (c *TextCheck) Storable() bool { return c.UTF8() && !c.nul }
