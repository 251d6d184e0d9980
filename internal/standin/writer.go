package standin

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"

	"sessiond/internal/session"
)

// Writer writes JSON with what a book's words stand for in their places. Flush it.
type Writer struct {
	book *Book
	to   io.Writer
	held []byte // may be the beginning of a word
}

// Writer makes a writer in front of another one.
func (b *Book) Writer(to io.Writer) *Writer { return &Writer{book: b, to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if len(w.held) > 0 {
		p = append(w.held, p...)
	}
	rest, err := w.put(p)
	if err != nil {
		return 0, err
	}
	w.held = append([]byte(nil), rest...)
	return n, nil
}

// Flush writes what was held back.
func (w *Writer) Flush() error {
	held := w.held
	w.held = nil
	_, err := w.to.Write(held)
	return err
}

// put writes all but a rest in which a word may begin.
func (w *Writer) put(p []byte) (rest []byte, err error) {
	for {
		at, size := w.nextWord(p)
		if at < 0 {
			end := max(0, len(p)-len(w.book.inner)+1) // no word is whole in the rest
			_, err := w.to.Write(p[:end])
			return p[end:], err
		}
		if len(p) < at+size {
			_, err := w.to.Write(p[:at])
			return p[at:], err
		}
		if _, err := w.to.Write(p[:at]); err != nil {
			return nil, err
		}
		if err := w.content(p[at : at+size]); err != nil {
			return nil, err
		}
		p = p[at+size:]
	}
}

func (w *Writer) nextWord(p []byte) (at, size int) {
	at, size = bytes.Index(p, []byte(w.book.marker)), wordSize
	if in := bytes.Index(p, []byte(w.book.inner)); in >= 0 && (at < 0 || in < at) {
		return in, innerSize
	}
	return at, size
}

// content writes what a word stands for.
func (w *Writer) content(word []byte) error {
	if len(word) == wordSize {
		c, err := w.known(string(word))
		if err != nil {
			return err
		}
		from, err := c.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(NewJSONText(w.to), from)
		return err
	}
	plain, err := base64.StdEncoding.DecodeString(string(word))
	if err != nil {
		return errUnknown(string(word))
	}
	c, err := w.known(string(plain))
	if err != nil {
		return err
	}
	from, err := c.open()
	if err != nil {
		return err
	}
	enc := base64.NewEncoder(base64.StdEncoding, w.to)
	_, err = io.Copy(enc, from)
	return errors.Join(err, enc.Close())
}

func (w *Writer) known(word string) (content, error) {
	c, ok := w.book.find(word)
	if !ok {
		return c, errUnknown(word)
	}
	return c, nil
}

func errUnknown(word string) error {
	return session.Errorf(session.Internal, "the word %s stands for nothing", strconv.Quote(word))
}
