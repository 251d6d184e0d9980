package claudecode

import (
	"strings"

	"sessiond/internal/history"
)

// cutRule tells which strings of a transcript may be cut: what was said and what tools gave, once
// for the model and once for display.
func cutRule() history.CutRule {
	return history.CutRule{
		Fields: []string{"text", "thinking", "data", "content", "stdout", "stderr", "toolUseResult", "output", "result", "originalFile", "base64"},
		Whole:  staysWhole, Skip: true,
	}
}

// staysWhole tells of rows that are looked through: a person's command, what an editor told, and
// the summary of a compaction. Nor is a row of another kind than a message's ever so long.
func staysWhole(line []byte) bool {
	o, _ := history.Fields(line)
	w := rowOf(history.TalkOf(o), len(line))
	if w.kind != typeUser && w.kind != typeAssistant || w.flag("isCompactSummary") {
		return true
	}
	text := strings.TrimSpace(w.text())
	return strings.HasPrefix(text, "<command-") || strings.HasPrefix(text, "<ide_")
}
