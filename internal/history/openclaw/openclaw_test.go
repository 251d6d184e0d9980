package openclaw_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"sessiond/internal/history"
	"sessiond/internal/history/openclaw"
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
	source   *openclaw.Source
}

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
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return &house{T: t, store: opened, importer: history.Importer{Store: opened, Pause: -1}, source: openclaw.New(noEnv)}
}

// noEnv is the environment of a host on which OpenClaw was never used.
func noEnv(string) string { return "" }

// run imports paths, with a source that remembers nothing, and checks what holds for every
// import.
func (h *house) run(paths ...string) history.Accounting {
	h.Helper()
	h.source = openclaw.New(noEnv)
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
	found, err := h.store.SessionBySource(h.Context(), session.SourceOpenClaw, sourceID)
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// all gives every session, by its id in the source.
func (h *house) all() map[string]session.Session {
	h.Helper()
	list, _, err := h.store.Sessions(h.Context(), store.Filter{}, store.Page{Limit: 1000})
	if err != nil {
		h.Fatal(err)
	}
	all := map[string]session.Session{}
	for _, s := range list {
		all[s.SourceID] = s
	}
	return all
}

// entries gives all messages of a session in order.
func (h *house) entries(id session.ID) []session.Message {
	h.Helper()
	all, more, err := h.store.Messages(h.Context(), id, store.MessagePage{Limit: 1000, All: true})
	if err != nil || more {
		h.Fatal(err, more)
	}
	return all
}

func (h *house) entry(sourceID, key string) session.Message {
	h.Helper()
	for _, m := range h.entries(h.session(sourceID).ID) {
		if m.ExternalID == key {
			return m
		}
	}
	h.Fatalf("%s has no entry %s", sourceID, key)
	return session.Message{}
}

func (h *house) calls(id session.ID) []session.Call {
	h.Helper()
	all, _, err := h.store.Calls(h.Context(), id, store.Page{Limit: 1000})
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// path gives the keys of the entries from the root to the head, those that are kept raw for
// their place alone left out.
func (h *house) path(s session.Session) []string {
	h.Helper()
	var keys []string
	for _, m := range h.messages(s) {
		keys = append(keys, m.ExternalID)
	}
	return keys
}

func (h *house) messages(s session.Session) []session.Message {
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

// context gives what a model would see at the head: the summary of the overlay in force, then
// the entries that follow what it hides.
func (h *house) context(s session.Session) []string {
	h.Helper()
	effective, err := h.store.Effective(h.Context(), s)
	if err != nil {
		h.Fatal(err)
	}
	var keys []string
	hidden := int64(0)
	if effective != nil {
		if effective.Summary != "" {
			keys = append(keys, "summary")
		}
		hidden = *effective.ThroughID
	}
	behind := hidden == 0
	for _, m := range h.messages(s) {
		if behind && m.InContext && !m.Finish.Failed() {
			keys = append(keys, m.ExternalID)
		}
		behind = behind || m.RowID == hidden
	}
	return keys
}

// state gives a copy of a state folder of the samples, its database made from its dump.
func (h *house) state(name string) string {
	h.Helper()
	dir := filepath.Join(h.TempDir(), ".openclaw")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(samples.Dir(h), "openclaw", name))); err != nil {
		h.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".sql") {
			h.database(strings.TrimSuffix(path, ".sql")+".sqlite", h.read(path))
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return dir
}

// database makes a database as its owner leaves it at rest.
func (h *house) database(path, script string) {
	h.Helper()
	h.tell(path, "PRAGMA journal_mode = WAL", script)
}

// tell runs statements on a database.
func (h *house) tell(path string, statements ...string) {
	h.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		h.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			h.Fatalf("%.200s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		h.Fatal(err)
	}
}

// write makes a file of lines in a state folder.
func (h *house) write(path string, lines ...string) string {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		h.Fatal(err)
	}
	return path
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

func (h *house) read(path string) string {
	h.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}
