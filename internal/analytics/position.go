package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// position gives a place in a text as a person counts it.
func position(text string, at int) string {
	before := text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// maxTries bounds the prefixes that a search for a syntax error compiles.
const maxTries = 64

// findError tells where in the statement SQLite's complaint is, or "". SQLite names a word and
// no place. A word that is unknown is unknown wherever it stands, so its first place is right; a
// syntax error is at the first such word up to which the text alone gives the same complaint.
func findError(ctx context.Context, conn *sql.Conn, s *statement, complaint string) string {
	name, syntax := complainedWord(complaint)
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
		if got := compile(ctx, conn, s.text[:t.end]); got != nil && sqliteMessage(got) == complaint {
			return position(s.text, t.start)
		}
	}
	return ""
}

// compile has SQLite parse a text without running it.
func compile(ctx context.Context, conn *sql.Conn, text string) error {
	st, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return st.Close()
}

// complainedWord reads the word that an error message of SQLite is about.
func complainedWord(complaint string) (name string, syntax bool) {
	if m := regexp.MustCompile(`^near "(.*)": syntax error$`).FindStringSubmatch(complaint); m != nil {
		return m[1], true
	}
	if m := regexp.MustCompile(`^(?:no such (?:column|table|function|module)|ambiguous column name|unrecognized token): "?([^"]+)"?`).FindStringSubmatch(complaint); m != nil {
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
