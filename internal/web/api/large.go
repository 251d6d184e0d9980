package api

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"unicode/utf8"
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

// writeChunks writes a text as the inside of a JSON string, encoded as other texts are.
func writeChunks(w io.Writer, text string) error {
	var chunk bytes.Buffer // used again for each
	encoder := json.NewEncoder(&chunk)
	encoder.SetEscapeHTML(false)
	for len(text) > 0 {
		end := min(len(text), textChunk)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		chunk.Reset()
		if err := encoder.Encode(text[:end]); err != nil {
			return err
		}
		inside := chunk.Bytes()[1 : chunk.Len()-2] // between the quotes; a line feed follows
		if _, err := w.Write(inside); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}
