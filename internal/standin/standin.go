// Package standin lets contents that are too long to be held go through code that puts JSON
// together in memory. The code sees a short word in the place of each, which no stored text
// holds since it is another one in each run; the writer behind it puts the contents where the
// words stand.
package standin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sessiond/internal/session"
)

// Book knows what the words of one output stand for. A nil one knows none: to it every text is
// what it says.
type Book struct {
	marker   string // begins each word
	inner    string // begins each word that was taken for bytes and written in base64
	contents []content
}

// content is what a word stands for: bytes at … at+size of from, all of them for a size of -1.
type content struct {
	from     session.Content
	at, size int64
}

// A word is the marker and a number. Both are as long as base64 likes: three bytes are four.
const (
	markerSize = 24
	numberSize = 12
	wordSize   = markerSize + numberSize
	innerSize  = wordSize / 3 * 4
)

// New makes an empty book.
func New() *Book {
	random := make([]byte, markerSize/2)
	_, _ = rand.Read(random) // never fails
	marker := hex.EncodeToString(random)
	return &Book{marker: marker, inner: base64.StdEncoding.EncodeToString([]byte(marker))}
}

// Word gives what stands for a content of a size in bytes, -1 where nobody knows it. It may be
// written as a text of JSON or, of bytes, as base64.
func (b *Book) Word(from session.Content, size int64) string {
	return b.word(content{from, 0, size})
}

func (b *Book) word(c content) string {
	b.contents = append(b.contents, c)
	return b.marker + fmt.Sprintf("%0*x", numberSize, len(b.contents)-1)
}

// find gives what a word stands for; false for any other text.
func (b *Book) find(text string) (content, bool) {
	if b == nil || len(text) != wordSize || !strings.HasPrefix(text, b.marker) {
		return content{}, false
	}
	n, err := strconv.ParseUint(text[markerSize:], 16, 63)
	if err != nil || n >= uint64(len(b.contents)) {
		return content{}, false
	}
	return b.contents[n], true
}

// Size gives the bytes of a text, or of what it stands for; -1 where nobody knows them.
func (b *Book) Size(text string) int {
	if c, ok := b.find(text); ok {
		return int(c.size)
	}
	return len(text)
}

// Slice gives bytes from … to of a text, or what stands for those; they must be in it.
func (b *Book) Slice(text string, from, to int) string {
	c, ok := b.find(text)
	switch {
	case !ok:
		return text[from:to]
	case from == to:
		return ""
	}
	return b.word(content{c.from, c.at + int64(from), int64(to - from)})
}

// At gives the byte at a place of a text, which must be in it, or of what it stands for.
func (b *Book) At(text string, i int) (byte, error) {
	c, ok := b.find(text)
	if !ok {
		return text[i], nil
	}
	from, err := content{c.from, c.at + int64(i), 1}.open()
	if err != nil {
		return 0, err
	}
	var one [1]byte
	_, err = io.ReadFull(from, one[:])
	return one[0], err
}

func (c content) open() (io.Reader, error) {
	from, err := c.from.Open()
	if err != nil {
		return nil, err
	}
	if c.at > 0 {
		if _, err := io.CopyN(io.Discard, from, c.at); err != nil {
			return nil, err
		}
	}
	if c.size >= 0 {
		from = io.LimitReader(from, c.size)
	}
	return from, nil
}
