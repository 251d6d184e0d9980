package memory_test

import (
	"path/filepath"
	"slices"
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

// A program keeps a part of what its compaction hides: Codex the user's messages, Claude Code the newest files. These
// are not told again.
func TestAfterACompactionNothingStandsTwice(t *testing.T) {
	s := testkit.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"), store.Options{}))(t)
	defer s.Close() //nolint:errcheck // of a test
	m := memory.Memory{Store: s, Count: tokens.Reference().Text, Now: time.Now, Scope: memory.NewScope(nil, nil)}
	row := func(key string, role session.Role, origin session.Origin, parts ...session.Part) store.ImportMessage {
		return store.ImportMessage{Message: session.Message{
			Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true, ExternalID: key, Parts: parts,
		}}
	}
	call := func(key, tool, file string) store.ImportMessage {
		return row(key, session.Assistant, session.Model, session.Part{
			Kind: session.PartToolCall, ToolName: tool, CallID: key, Arguments: `{"file_path":"/p/` + file + `"}`,
		})
	}
	messages := []store.ImportMessage{
		row("1", session.User, session.Person, session.TextPart("Never add a dependency without asking me. Plan it.")),
		row("2", session.Assistant, session.Model,
			session.TextPart("I decided to keep the heights in millimetres, because the tide table rounds.")),
		call("3", "Write", "first.go"), call("4", "Edit", "second.go"), call("5", "Read", "notes.md"),
		call("6", "Read", "tide.csv"), call("7", "Write", "third.go"), call("8", "Write", "fourth.go"),
		row("9", session.Assistant, session.Model, session.TextPart("Done.")),
	}
	for i := range messages[1:] {
		messages[i+1].ParentKey = messages[i].ExternalID
	}
	compacts := []session.Source{session.SourceCodex, session.SourceCopilotCLI}
	for source, want := range map[session.Source]struct{ told, kept []string }{
		session.SourceClaudeCode: { // asks before it writes its summary
			[]string{"Never add a dependency", "millimetres", "first.go"}, []string{"second.go", "third.go", "fourth.go"},
		},
		session.SourceCopilotCLI: { // its compaction is stored
			[]string{"millimetres", "first.go"}, []string{"Never add a dependency"},
		},
		session.SourceCodex: {
			[]string{"millimetres", "first.go", "second.go", "third.go", "fourth.go"}, []string{"Never add a dependency"},
		},
	} {
		head := "9"
		b := store.ImportBatch{
			Session: store.NewSession{Source: source, SourceID: "one", Directory: "/p"}, Messages: messages, Head: &head,
		}
		if slices.Contains(compacts, source) {
			c := store.ImportCompaction{Key: "9", ThroughKey: "9"}
			c.Strategy, c.Trigger, c.Status = session.StrategySummarize, session.TriggerImport, session.StatusDone
			c.Summary, c.CreatedAt = "A harbour is planned.", session.At(time.Now())
			if source == session.SourceCodex {
				c.Replacement = session.JSON(`[{"kind":"message","role":"user","origin":"program","parts":[{"kind":"text",` +
					`"text":"Never add a dependency without asking me. Plan it."}]}]`)
			}
			b.Compactions = []store.ImportCompaction{c}
		}
		sess := testkit.Must(s.Import(t.Context(), b))(t).Session
		text := testkit.Must(m.AfterCompaction(t.Context(), &sess))(t)
		again := testkit.Must(m.AfterResume(t.Context(), &sess))(t)
		if program := slices.Contains(compacts, source); program != (again == text) { // of another process, the same
			t.Errorf("a continued session of %s is told\n%s", source, again)
		}
		for _, w := range want.told {
			if !strings.Contains(text, w) {
				t.Errorf("%s is not told %q:\n%s", source, w, text)
			}
		}
		for _, w := range want.kept {
			if strings.Contains(text, w) {
				t.Errorf("%s is told %q, which it keeps itself:\n%s", source, w, text)
			}
		}
	}
}
