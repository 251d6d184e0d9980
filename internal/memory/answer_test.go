package memory_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/memory"
	"sessiond/internal/search"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/tokens"
)

// A prompt that names a time is answered with what was said then, although the words of the time are not searched.
func TestPromptPrefersTheTimeThatItNames(t *testing.T) {
	s := testkit.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"), store.Options{}))(t)
	defer s.Close() //nolint:errcheck // of a test
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	for _, said := range []struct {
		at   time.Time
		text string
	}{
		{now.AddDate(0, 0, -15), "the gateway cache limit is two gigabytes"},
		{now.AddDate(0, 0, -2), "the gateway cache limit is nine gigabytes"},
	} {
		id := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Model: "m", Directory: "/p"}))(t).ID
		m := session.Message{
			Kind: session.KindMessage, Role: session.Assistant, Origin: session.Model, InContext: true, Display: true,
			CreatedAt: session.At(said.at), Parts: []session.Part{session.TextPart(said.text)},
		}
		testkit.Must(s.Append(t.Context(), store.Append{Session: id, Messages: []session.Message{m}}))(t)
	}
	ix := testkit.Must(search.Open(t.Context(), filepath.Join(t.TempDir(), "search.db"), s))(t)
	defer ix.Close() //nolint:errcheck // of a test
	testkit.Must(ix.CatchUp(t.Context()))(t)
	m := memory.Memory{Store: s, Index: ix, Count: tokens.Reference().Text, Now: func() time.Time {
		return now
	}, Scope: memory.NewScope(nil, nil)}
	for prompt, first := range map[string]string{
		"which limit has the gateway cache, as set il y a deux semaines?": "two gigabytes",
		"which limit has the gateway cache, as set on Monday?":            "nine gigabytes",
	} {
		got := testkit.Must(m.ForPrompt(t.Context(), prompt))(t)
		two, nine := strings.Index(got, "two gigabytes"), strings.Index(got, "nine gigabytes")
		if at := strings.Index(got, first); at < 0 || at > max(two, nine) || two < 0 || nine < 0 || at != min(two, nine) {
			t.Errorf("%s: %s", prompt, got)
		}
	}
}
