package pages_test

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// A limit is said where its program's conversations are, with the command that goes on, until it is reset or a reply
// comes.
func TestPagesSayALimit(t *testing.T) {
	k := newKit(t)
	k.login()
	limited := k.session(store.NewSession{Title: "Boats", Source: session.SourceClaudeCode, SourceID: "a"}, "hello")
	other := k.session(store.NewSession{Title: "Nets", Source: session.SourceCodex, SourceID: "b"}, "hello")
	noted := func(foreign string, resets time.Duration) {
		t.Helper()
		testkit.Must(k.store.Import(t.Context(), store.ImportBatch{ID: limited, Foreign: foreign, Limits: []session.Limit{{
			Source: session.SourceClaudeCode, Name: "5h", Used: 100, Reached: true,
			ResetsAt: session.At(k.at.Add(resets)), NotedAt: session.At(k.at),
		}}}))(t)
	}
	page := func(path string) string {
		t.Helper()
		text := k.open(path)
		if _, after, found := strings.Cut(text, `limit until `); found {
			line, _, _ := strings.Cut(after, "</p>")
			return strings.NewReplacer("<code>", "", "</code>", "").Replace(line)
		}
		return ""
	}
	noted("someone.jsonl", 5*time.Hour)
	if got := page("/"); got != "" {
		t.Errorf("a foreign file sets a limit: %q", got)
	}
	noted("", 5*time.Hour)
	for path, want := range map[string]string{
		"/": "15:00 · sessiond to codex", "/s/" + string(limited): "15:00 · sessiond to codex " + string(limited),
		"/s/" + string(other): "",
	} {
		if got := page(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	testkit.Must(k.store.AddCall(t.Context(), session.Call{
		SessionID: limited, Source: session.SourceClaudeCode, OutputTokens: 3, CreatedAt: session.At(k.at.Add(time.Minute)),
	}))(t)
	if got := page("/"); got != "" {
		t.Errorf("the program replied since, and the page says %q", got)
	}
	k.at = k.at.Add(2 * time.Minute)
	noted("", time.Hour)
	if got := page("/"); !strings.HasPrefix(got, "11:0") {
		t.Errorf("a newer limit: %q", got)
	}
	k.at = k.at.Add(2 * time.Hour)
	if got := page("/"); got != "" {
		t.Errorf("after the reset: %q", got)
	}
}
