package session_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sessiond/internal/session"
)

// However bytes are cut into writes, the check says what a look at all of them does.
func TestTextCheckSaysWhatTheWholeIs(t *testing.T) {
	bits := rapid.SampledFrom([]string{"a", "word ", "é", "字", "🎉", "\x00", "\x80", "\xc3", "\xe5\xad", "\xf0\x9f", "\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\ufffd"})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(bits, 0, 8).Draw(t, "bits"), ""))
		var check session.TextCheck
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if wrote, err := check.Write(rest[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		if want := utf8.Valid(text); check.UTF8() != want || check.Storable() != (want && bytes.IndexByte(text, 0) < 0) {
			t.Fatalf("%q: %v %v", text, check.UTF8(), check.Storable())
		}
	})
}
