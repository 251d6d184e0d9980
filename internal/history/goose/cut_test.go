package goose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/history/historytest"
	"sessiond/internal/testkit/effort"
)

func fresh() history.Source { return New(historytest.NoEnv) }

// written writes a conversation as a file of lines, or as an export in one line: so many messages, of
// which the last is long.
func written(export bool, n, long int) string {
	about := `"id":"20260203_1","name":"one","working_dir":"/w","created_at":"2026-02-03T09:00:00Z","accumulated_input_tokens":5`
	var messages []string
	for i := range n {
		content := fmt.Sprintf(`{"type":"text","text":"what was said, %d"}`, i)
		if i == n-1 {
			content = `{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"` +
				strings.Repeat(`a line, \"quoted\", and its end\n`, long/32) + `"}],"isError":false}}}`
		}
		messages = append(messages, fmt.Sprintf(`{"id":"m%d","role":"user","created":%d,"content":[%s]}`, i, 1770109200+i, content))
	}
	if export {
		return "{" + about + `,"conversation":[` + strings.Join(messages, ",") + "]}"
	}
	return "{" + about + "}\n" + strings.Join(messages, "\n") + "\n"
}

// TestLongMessagesOfFilesGiveTheSameRows: whether they are read whole or shortened.
func TestLongMessagesOfFilesGiveTheSameRows(t *testing.T) {
	for _, export := range []bool{false, true} {
		t.Run(fmt.Sprintf("an export: %t", export), func(t *testing.T) {
			historytest.SameWhole(t, fresh, 1, map[string]string{"one.jsonl": written(export, 3, 2<<20)}, map[string]string{"one.jsonl": written(export, 5, 3<<20)})
		})
	}
}

// An export is one line of any size: its messages are read one after the other, and of a long one
// what is very long is not held.
func TestGooseFileOf50MBIsNotHeld(t *testing.T) {
	effort.NotShort(t, "long files take the way of short ones")
	for _, export := range []bool{false, true} {
		t.Run(fmt.Sprintf("an export: %t", export), func(t *testing.T) { notHeld(t, written(export, 1000, 50<<20)) })
	}
}

func notHeld(t *testing.T, text string) {
	path := filepath.Join(t.TempDir(), "one.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	historytest.ReadsWithoutHolding(t, fresh(), path, 1000)
}

// A message of an export that is no JSON is kept raw, and the others come in.
func TestGooseExportWithABrokenMessage(t *testing.T) {
	h := historytest.New(t, fresh())
	path := h.Write("one.jsonl", strings.Replace(written(true, 3, 40), `"created":1770109201`, `"created":17701o9201`, 1))
	done := h.Import(path)
	if done.Records.Imported != 3 || done.Records.Raw != 1 || len(done.Errors) != 1 || done.Errors[0].Line != 2 {
		t.Errorf("%+v", done)
	}
	h.Examine()
}
