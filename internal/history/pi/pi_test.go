package pi_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/samples"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/store/storetest"
)

// house is a store with an importer in front of it.
type house struct {
	*testing.T
	store    *store.Store
	importer history.Importer
	source   *pi.Source
}

func newHouse(t *testing.T) *house {
	t.Helper()
	opened, err := store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")), store.Options{
		Zone: time.UTC,
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
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return &house{
		T: t, store: opened, importer: history.Importer{Store: opened, Pause: -1},
		source: pi.New(noEnv),
	}
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
	found, err := h.store.SessionBySource(h.Context(), session.SourcePi, sourceID)
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

// path gives the entries from the root to the head.
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

// context gives what the model would see at the head: the effective overlay's summary, if
// there is one, as "summary", then the roles of what follows it.
func (h *house) context(s session.Session) []string {
	h.Helper()
	effective, err := h.store.Effective(h.Context(), s)
	if err != nil {
		h.Fatal(err)
	}
	var roles []string
	hidden := int64(0)
	if effective != nil {
		roles, hidden = append(roles, "summary"), *effective.ThroughID
	}
	behind := hidden == 0
	for _, m := range h.path(s) {
		if behind && m.InContext && !m.Finish.Failed() {
			roles = append(roles, string(m.Role))
		}
		behind = behind || m.RowID == hidden
	}
	return roles
}

func (h *house) write(name string, lines ...string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	h.rewrite(path, lines...)
	return path
}

func (h *house) rewrite(path string, lines ...string) {
	h.Helper()
	var text []byte
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
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

func sample(t *testing.T, parts ...string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(append([]string{samples.Dir(t), "pi"}, parts...)...))
	if err != nil || len(matches) != 1 {
		t.Fatalf("sample %v: %v %v", parts, matches, err)
	}
	return matches[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// noEnv is the environment of a host on which pi was never used.
func noEnv(string) string { return "" }
