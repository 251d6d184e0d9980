package pi_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/history/pi"
	"sessiond/internal/samples"
)

// TestLongLinesGiveTheSameRows: what very long lines say is stored the same, whether they are read
// whole or shortened.
func TestLongLinesGiveTheSameRows(t *testing.T) {
	historytest.InflatedSameWhole(t, func() history.Source { return pi.New(historytest.NoEnv) }, filepath.Join(samples.Dir(t), "pi"), 20,
		"text", "thinking", "data", "content", "output", "arguments", "summary", "details", "name")
}
