package claudecode_test

import (
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of Claude Code's transcripts, all of which have been quiet for long.
type house struct{ *historytest.House }

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{historytest.New(t, quiet())}
}

func quiet() *history.Program { return claudecode.New(historytest.NoEnv, historytest.Later) }

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "claude-code", parts...)
}
