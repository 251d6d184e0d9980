package openclaw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"sessiond/internal/history"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

// house is a store with an importer of OpenClaw's transcripts and databases.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, openclaw.New(historytest.NoEnv))}
}

// run imports paths with a source that remembers nothing.
func (h *house) run(paths ...string) history.Accounting {
	h.Helper()
	h.Source = openclaw.New(historytest.NoEnv)
	return h.Import(paths...)
}

// all returns every session, by its id in the source.
func (h *house) all() map[string]session.Session {
	h.Helper()
	list, _, err := h.Store.Sessions(h.Context(), store.Filter{}, store.Page{Limit: 1000})
	testkit.Check(h, err)
	all := map[string]session.Session{}
	for _, s := range list {
		all[s.SourceID] = s
	}
	return all
}

func (h *house) entry(sourceID, key string) session.Message {
	h.Helper()
	for _, m := range h.Entries(h.Session(sourceID).ID) {
		if m.ExternalID == key {
			return m
		}
	}
	h.Fatalf("%s has no entry %s", sourceID, key)
	return session.Message{}
}

// context returns what a model would see at the head: the summary of the overlay in force, then
// the entries that follow what it hides.
func (h *house) context(s session.Session) []string {
	h.Helper()
	var keys []string
	effective, rest := h.Seen(s)
	if effective != nil && effective.Summary != "" {
		keys = append(keys, "summary")
	}
	for _, m := range rest {
		keys = append(keys, m.ExternalID)
	}
	return keys
}

// state returns a copy of a state folder of the samples, its database made from its dump.
func (h *house) state(name string) string {
	h.Helper()
	dir := filepath.Join(h.TempDir(), ".openclaw")
	testkit.Check(h, os.CopyFS(dir, os.DirFS(filepath.Join(samples.Dir(h), "openclaw", name))))
	testkit.Check(h, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".sql") {
			h.database(strings.TrimSuffix(path, ".sql")+".sqlite", historytest.Read(h, path))
			return os.Remove(path)
		}
		return err
	}))
	return dir
}

// database makes a database as its owner leaves it at rest.
func (h *house) database(path, script string) {
	h.Helper()
	h.Change(path, "PRAGMA journal_mode = WAL", script)
}

// write makes a file of lines in a state folder.
func (h *house) write(path string, lines ...string) string {
	h.Helper()
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(h, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}
