package goose_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/history/goose"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of Goose's databases and files.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, goose.New(historytest.NoEnv))}
}

// load makes a database of SQL, at path or in a new place.
func (h *house) load(path string, scripts ...string) string {
	h.Helper()
	if path == "" {
		path = filepath.Join(h.TempDir(), "sessions.db")
	}
	return h.Load(path, scripts...)
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "goose", parts...)
}
