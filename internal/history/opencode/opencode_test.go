package opencode_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sessiond/internal/history/opencode"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of opencode's databases and files, at a time of its own.
type house struct {
	*historytest.House
	now time.Time
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.House = historytest.New(t, opencode.New(historytest.NoEnv, func() time.Time { return h.now }))
	return h
}

// load makes a database of SQL, at path or in a new place.
func (h *house) load(path string, scripts ...string) string {
	h.Helper()
	if path == "" {
		path = filepath.Join(h.TempDir(), "opencode.db")
	}
	return h.Load(path, scripts...)
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "opencode", parts...)
}

// copyOf takes a writable copy of samples.
func (h *house) copyOf(parts ...string) string {
	h.Helper()
	folder := h.TempDir()
	testkit.Check(h, os.CopyFS(folder, os.DirFS(sample(h, parts...))))
	return folder
}
