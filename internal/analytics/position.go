package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// position returns a place in a text as line and column.
func position(text string, at int) string {
	before := text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// maxTries is the limit of the prefixes that a search for a syntax error compiles.
const maxTries = 64

// findError returns the position of SQLite's error in the statement, or "". SQLite names a word without
// its position. For an unknown word its first position is right. A syntax error is at the first such
// word up to which the text alone causes the same error.
func findError(ctx context.Context, conn *sql.Conn, s *statement, message string) string {
	name, syntax := wordOfError(message)
	if name == "" {
		return ""
	}
	tries := 0
	for _, t := range s.tokens {
		if !strings.EqualFold(unquote(s.text[t.start:t.end]), name) && s.text[t.start:t.end] != name {
			continue
		}
		if !syntax {
			return position(s.text, t.start)
		}
		if tries++; tries > maxTries {
			return ""
		}
		if got := compile(ctx, conn, s.text[:t.end]); got != nil && sqliteMessage(got) == message {
			return position(s.text, t.start)
		}
	}
	return ""
}

// compile compiles a text without running it.
func compile(ctx context.Context, conn *sql.Conn, text string) error {
	st, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return st.Close()
}

// wordOfError returns the word that an error message of SQLite names.
func wordOfError(message string) (name string, syntax bool) {
	if m := regexp.MustCompile(`^near "(.*)": syntax error$`).FindStringSubmatch(message); m != nil {
		return m[1], true
	}
	if m := regexp.MustCompile(`^(?:no such (?:column|table|function|module)|ambiguous column name|unrecognized token): "?([^"]+)"?`).FindStringSubmatch(message); m != nil {
		name := m[1]
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i+1:]
		}
		return strings.Fields(name)[0], false
	}
	return "", false
}

func unquote(s string) string {
	if len(s) >= 2 && strings.ContainsRune("\"`[", rune(s[0])) {
		return s[1 : len(s)-1]
	}
	return s
}
