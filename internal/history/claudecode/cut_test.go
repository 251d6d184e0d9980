package claudecode_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/samples"
)

// TestLongLinesGiveTheSameRows: what very long lines say is stored the same, whether they are read
// whole or shortened.
func TestLongLinesGiveTheSameRows(t *testing.T) {
	historytest.InflatedSameWhole(t, func() history.Source { return quiet() }, filepath.Join(samples.Dir(t), "claude-code"), 10,
		"text", "thinking", "data", "content", "output", "stdout", "stderr", "toolUseResult", "result", "originalFile", "base64", "prompt", "summary")
}
