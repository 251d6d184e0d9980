package openclaw_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/samples"
)

// TestLongLinesGiveTheSameRows: what very long lines say is stored the same, whether they are read
// whole or shortened.
func TestLongLinesGiveTheSameRows(t *testing.T) {
	for _, folder := range []string{"constructed", "deja-vu"} {
		historytest.InflatedSameWhole(t, func() history.Source { return openclaw.New(historytest.NoEnv) }, filepath.Join(samples.Dir(t), "openclaw", folder), 1,
			"text", "thinking", "data", "content", "output", "arguments", "summary", "details", "name")
	}
}
