package history

import (
	"bytes"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// MaxLine is the size in bytes above which a line is not stored: the store takes no larger text.
const MaxLine = 64 << 20

// MaxDepth is how deep a line may be nested to be taken apart; a deeper one is kept as text.
const MaxDepth = 256

// Unmarked returns a line without the byte order mark that some editors write before a file's
// first: it is part of the file, not of what it says.
func Unmarked(line []byte) []byte { return bytes.TrimPrefix(line, []byte("\ufeff")) }

// ParseLine reads a line that is one JSON object, Unmarked. Bytes that are no UTF-8 are replaced
// for reading; exact says that there were none.
func ParseLine(line []byte) (o jsonx.Object, exact, ok bool) {
	line = Unmarked(line)
	exact = utf8.Valid(line)
	if !exact {
		line = bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
	}
	o, ok = jsonx.ReadObject(line)
	return o, exact, ok
}

// Verbatim keeps a line as text, out of the context, with why it could not be taken apart.
func Verbatim(line []byte, why string) session.Message {
	m := session.Message{
		Kind: session.KindUnknown, Origin: session.Program, Display: true,
		Parts: []session.Part{{Kind: session.PartData, Text: Plain(line)}},
	}
	extra := jsonx.Object{{Key: "note", Value: []byte(session.JSONOf(why))}}
	if m.Parts[0].Text != string(line) {
		extra = append(extra, jsonx.Member{
			Key:   "bytes",
			Value: []byte(session.JSONOf(base64.StdEncoding.EncodeToString(line))),
		})
	}
	m.Extra = extra.Column()
	return m
}

// Titled returns a session's title, the one that it was given, else one made of its first message, and
// where it comes from.
func Titled(given, first string) (title, source string) {
	switch {
	case given != "":
		return given, "source"
	case first != "":
		return first, "first_message"
	}
	return "", ""
}

// titleRunes is how much of a first message stands for a title.
const titleRunes = 80

// FirstLine returns the first line of a text that says something, short enough for a title.
func FirstLine(text string) string {
	text = strings.TrimSpace(text)
	line, _, _ := strings.Cut(text[:min(len(text), 8*titleRunes)], "\n")
	runes := []rune(strings.TrimSpace(strings.ToValidUTF8(line, "")))
	if len(runes) > titleRunes {
		return string(runes[:titleRunes-1]) + "…"
	}
	return string(runes)
}

// ParseTime reads an RFC 3339 time that the database can hold.
func ParseTime(text string) (session.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	return session.At(at), err == nil && at.UTC().Year() >= 1970 && at.UTC().Year() <= 9999
}
