package standin

import (
	"io"
	"strings"
	"unicode/utf8"
)

// JSONText writes valid UTF-8 as the inside of a JSON string, with the escapes of
// session.MarshalPlain. It uses its memory again: what it writes is many times what it holds.
type JSONText struct {
	to   io.Writer
	torn []byte // a character whose rest is yet to come
	text []byte
	out  []byte
}

// NewJSONText makes one in front of a writer.
func NewJSONText(to io.Writer) *JSONText { return &JSONText{to: to} }

// Write implements io.Writer.
func (j *JSONText) Write(p []byte) (int, error) {
	j.text = append(append(j.text[:0], j.torn...), p...)
	text := j.text
	whole := len(text)
	for whole > 0 && len(text)-whole < utf8.UTFMax {
		if whole--; utf8.RuneStart(text[whole]) {
			if utf8.FullRune(text[whole:]) {
				whole = len(text)
			}
			break
		}
	}
	j.torn = append(j.torn[:0], text[whole:]...)
	j.out = appendEscaped(j.out[:0], text[:whole])
	if _, err := j.to.Write(j.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func appendEscaped(out, text []byte) []byte {
	const hex, short = "0123456789abcdef", "\"\\\b\f\n\r\t"
	plain := 0
	for at := 0; at < len(text); {
		c := text[at]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[at:])
			if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1 {
				out = append(append(out, text[plain:at]...), '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
				plain = at + size
			}
			at += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			at++
			continue
		}
		out = append(out, text[plain:at]...)
		if i := strings.IndexByte(short, c); i >= 0 {
			out = append(out, '\\', "\"\\bfnrt"[i])
		} else {
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		at++
		plain = at
	}
	return append(out, text[plain:]...)
}
