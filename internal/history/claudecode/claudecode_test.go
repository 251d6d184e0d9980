package claudecode_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/samples"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/store/storetest"
	"sessiond/internal/touched"
)

// house is a store with an importer in front of it.
type house struct {
	*testing.T
	store    *store.Store
	importer history.Importer
	source   *claudecode.Source
}

// later is a clock by which every file has been quiet for long.
func later() time.Time { return time.Now().Add(24 * time.Hour) }

func noEnv(string) string { return "" }

func newHouse(t *testing.T) *house {
	t.Helper()
	opened, err := store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
		Zone: time.UTC, Touched: touched.Files,
		Measure: func(m *session.Message) {
			for i := range m.Parts {
				m.Parts[i].Tokens = int64(len(m.Parts[i].Content())+3) / 4
				m.Tokens += m.Parts[i].Tokens
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer opened.Close() //nolint:errcheck // of a test that is over
		if !strings.HasPrefix(t.Name(), "TestSamples") && !strings.HasPrefix(t.Name(), "TestFork") {
			return // a look over everything costs more than most tests
		}
		checks, err := opened.Doctor(context.Background(), true)
		if err != nil {
			t.Error(err)
		}
		for _, c := range checks {
			if !c.OK {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
		}
	})
	return &house{T: t, store: opened, importer: history.Importer{Store: opened, Pause: -1}, source: claudecode.New(noEnv, later)}
}

// run imports paths and checks what holds for every import.
func (h *house) run(paths ...string) history.Accounting {
	h.Helper()
	done, err := h.importer.Run(h.Context(), h.source, paths)
	if err != nil {
		h.Fatal(err)
	}
	if !done.Records.Balanced() {
		h.Errorf("the records do not add up: %+v", done.Records)
	}
	return done
}

func (h *house) session(sourceID string) session.Session {
	h.Helper()
	found, err := h.store.SessionBySource(h.Context(), session.SourceClaudeCode, sourceID)
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// entries gives all messages of a session in order.
func (h *house) entries(id session.ID) []session.Message {
	h.Helper()
	var all []session.Message
	page := store.MessagePage{Limit: 1000, All: true}
	for {
		got, more, err := h.store.Messages(h.Context(), id, page)
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, got...)
		if !more {
			return all
		}
		page.After = all[len(all)-1].Seq
	}
}

func (h *house) path(s session.Session) []session.Message {
	h.Helper()
	if s.HeadID == nil {
		return nil
	}
	path, err := h.store.Path(h.Context(), *s.HeadID, 0)
	if err != nil {
		h.Fatal(err)
	}
	return path
}

// talk gives what stands on the path to the head and in the context: role and text.
func (h *house) talk(s session.Session) string {
	h.Helper()
	var lines []string
	for _, m := range h.path(s) {
		if m.InContext && m.Kind == session.KindMessage && m.Role != session.System && m.Display {
			text := m.Text()
			for _, c := range m.Calls() {
				text += "(" + c.ToolName + ")"
			}
			lines = append(lines, string(m.Role)+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

func (h *house) calls(id session.ID) []session.Call {
	h.Helper()
	var all []session.Call
	for page := (store.Page{Limit: 500}); ; {
		got, next, err := h.store.Calls(h.Context(), id, page)
		if err != nil {
			h.Fatal(err)
		}
		if all = append(all, got...); next == "" {
			return all
		}
		page.Cursor = next
	}
}

// rows counts everything that an import may write.
func (h *house) rows() int {
	h.Helper()
	var n int
	if err := h.store.Reader().Get(&n, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM events)
		+ (SELECT COUNT(*) FROM compactions) + (SELECT SUM(revision) FROM sessions)`); err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *house) write(name string, lines ...string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	h.rewrite(path, lines...)
	return path
}

func (h *house) rewrite(path string, lines ...string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *house) append(path, text string) {
	h.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		h.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		h.Fatal(err)
	}
	if err := file.Close(); err != nil {
		h.Fatal(err)
	}
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(append([]string{samples.Dir(t), "claude-code"}, parts...)...))
	if err != nil || len(matches) != 1 {
		t.Fatalf("sample %v: %v %v", parts, matches, err)
	}
	return matches[0]
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
