package opencode_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/opencode"
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
	source   *opencode.Source
	now      time.Time
}

func newHouse(t *testing.T) *house {
	t.Helper()
	opened, err := store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "here.db")), store.Options{
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
	h := &house{T: t, store: opened, importer: history.Importer{Store: opened, Pause: -1}, now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.source = opencode.New(noEnv, func() time.Time { return h.now })
	return h
}

// noEnv is the environment of a host on which opencode was never used.
func noEnv(string) string { return "" }

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
	found, err := h.store.SessionBySource(h.Context(), session.SourceOpencode, sourceID)
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// entries gives all messages of a session in order.
func (h *house) entries(id session.ID) []session.Message {
	h.Helper()
	got, more, err := h.store.Messages(h.Context(), id, store.MessagePage{Limit: 1000, All: true})
	if err != nil || more {
		h.Fatal(err, more)
	}
	return got
}

func (h *house) calls(id session.ID) []session.Call {
	h.Helper()
	got, _, err := h.store.Calls(h.Context(), id, store.Page{Limit: 500})
	if err != nil {
		h.Fatal(err)
	}
	return got
}

// path gives the external ids from the root to the head.
func (h *house) path(s session.Session) []string {
	h.Helper()
	if s.HeadID == nil {
		return nil
	}
	path, err := h.store.Path(h.Context(), *s.HeadID, 0)
	if err != nil {
		h.Fatal(err)
	}
	var keys []string
	for i := range path {
		keys = append(keys, path[i].ExternalID)
	}
	return keys
}

// load makes a database of SQL, at path or in a new place.
func (h *house) load(path string, scripts ...string) string {
	h.Helper()
	if path == "" {
		path = filepath.Join(h.TempDir(), "opencode.db")
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		h.Fatal(err)
	}
	h.change(path, scripts...)
	return path
}

// change runs SQL as opencode might.
func (h *house) change(path string, scripts ...string) {
	h.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		h.Fatal(err)
	}
	for _, script := range scripts {
		if _, err := db.ExecContext(h.Context(), script); err != nil {
			h.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		h.Fatal(err)
	}
}

func sample(t *testing.T, parts ...string) string {
	t.Helper()
	return filepath.Join(append([]string{samples.Dir(t), "opencode"}, parts...)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// copyOf takes a writable copy of samples.
func (h *house) copyOf(parts ...string) string {
	h.Helper()
	folder := h.TempDir()
	if err := os.CopyFS(folder, os.DirFS(sample(h.T, parts...))); err != nil {
		h.Fatal(err)
	}
	return folder
}
