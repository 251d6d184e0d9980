package codex_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/codex"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

func TestPiecesGiveTheWhole(t *testing.T) {
	historytest.EachConversation(t, "codex", func(t *testing.T, file string) {
		historytest.PiecesGiveTheWhole(t, file, codex.New(historytest.NoEnv, time.Now), quiet())
	})
}

func TestRewrittenFilesBranch(t *testing.T) {
	newHouse(t).RewrittenFileBranches(sample(t, "localpush-0.104-12-41-04.jsonl"))
}

func TestContextsAreAccepted(t *testing.T) {
	h := newHouse(t)
	h.Import(filepath.Join(samples.Dir(t), "codex"))
	h.ContextsAreAccepted(10)
}

func TestFileThatBecomesShorterMeanwhile(t *testing.T) {
	words := strings.Repeat("word ", 100)
	historytest.ShorterMeanwhile(t, quiet(), "rollout-2026-01-02T09-00-00-00000000-0000-4000-8000-000000000001.jsonl",
		header, func(i int) string {
			return says([]string{"user", "assistant"}[i%2], fmt.Sprint(i, words))
		})
}

func TestRolloutWithAByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, quiet(), "rollout-2026-01-02T09-00-00-00000000-0000-4000-8000-000000000001.jsonl",
		header, says("user", "one"), says("assistant", "two"), says("user", "three"))
}
