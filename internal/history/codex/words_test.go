package codex

import (
	"strings"
	"testing"
)

func TestOfTheWordsThatAreKeptTheOldestIsCut(t *testing.T) {
	var w window
	for _, text := range []string{strings.Repeat("a", 50_000), strings.Repeat("b", 50_000), strings.Repeat("c", 50_000)} {
		w.say(text)
	}
	got := string(w.replacement())
	if strings.Contains(got, "aa") || strings.Count(got, "b") < 30_000 || !strings.Contains(got, "tokens truncated") ||
		strings.Count(got, "c") < 50_000 {
		t.Errorf("%d bytes are kept: %.200s", len(got), got)
	}
}
