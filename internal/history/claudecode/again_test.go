package claudecode_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

func TestPiecesGiveTheWhole(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples.Dir(t), "claude-code", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(file, "key-sweep") {
			continue // no conversation: its rows name one another in any order
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			historytest.PiecesGiveTheWhole(t, file, claudecode.New(historytest.NoEnv, time.Now), quiet())
		})
	}
}

func TestRewrittenFilesBranch(t *testing.T) {
	newHouse(t).RewrittenFileBranches(sample(t, "entire-2.1.36-compaction-queue.jsonl"))
}

func TestContextsAreAccepted(t *testing.T) {
	h := newHouse(t)
	h.Import(filepath.Join(samples.Dir(t), "claude-code"))
	h.ContextsAreAccepted(10)
}

func TestFileThatBecomesShorterMeanwhile(t *testing.T) {
	words := strings.Repeat("word ", 100)
	historytest.ShorterMeanwhile(t, quiet(), id+".jsonl", "", func(i int) string {
		uuid, parent := fmt.Sprint("u", i), ""
		if i > 0 {
			parent = fmt.Sprint("u", i-1)
		}
		return user(uuid, parent, fmt.Sprint(i, words))
	})
}

func TestTranscriptWithAByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, quiet(), id+".jsonl", user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three"))
}
