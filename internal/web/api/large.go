package api

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	largeText = 64 << 10 // bytes from which a text is large
	textChunk = 64 << 10 // bytes of a large text that are encoded at once
)

// largeTexts are the texts of a value whose JSON is written in pieces. In the value, a mark is in the place of each.
type largeTexts struct {
	mark  string
	texts []string
}

// take replaces a text by the mark if it is large. Texts are taken in the order in which the value has them in JSON.
func (l *largeTexts) take(text *string) {
	if len(*text) < largeText {
		return
	}
	if l.mark == "" {
		l.mark = rand.Text() // which no other text contains
	}
	l.texts = append(l.texts, *text)
	*text = l.mark
}

// write writes the encoded value with the texts in the places of their marks.
func (l *largeTexts) write(w io.Writer, encoded []byte) error {
	if len(l.texts) == 0 {
		_, err := w.Write(encoded)
		return err
	}
	out := bufio.NewWriter(w)
	for _, text := range l.texts {
		before, after, _ := bytes.Cut(encoded, []byte(l.mark))
		if _, err := out.Write(before); err != nil {
			return err
		}
		if err := writeChunks(out, text); err != nil {
			return err
		}
		encoded = after
	}
	if _, err := out.Write(encoded); err != nil {
		return err
	}
	return out.Flush()
}

// writeChunks writes a text as the inside of a JSON string.
func writeChunks(w io.Writer, text string) (err error) {
	var chunk []byte // used again for each
	for len(text) > 0 {
		end := min(len(text), textChunk)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		if chunk, err = jsontext.AppendQuote(chunk[:0], text[:end]); err != nil {
			return err
		}
		if _, err := w.Write(chunk[1 : len(chunk)-1]); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}
