package claudecode_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

func TestPiecesGiveTheWhole(t *testing.T) {
	historytest.EachConversation(t, "claude-code", func(t *testing.T, file string) {
		historytest.PiecesGiveTheWhole(t, file, claudecode.New(historytest.NoEnv, time.Now), quiet())
	})
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

func TestImpossibleDateIsReportedAndKept(t *testing.T) {
	h := newHouse(t)
	late := strings.Replace(user("2", "1", "two"), "2026-02-08", "9999-02-08", 1)
	path := h.Write(id+".jsonl", user("1", "", "one"), late, strings.Replace(late, `"uuid":"2"`, `"uuid":"3"`, 1))
	done := h.Import(path)
	if len(done.Errors) != 1 || done.Errors[0].Line != 2 || !strings.Contains(done.Errors[0].Error, "dated 9999-02-08") {
		t.Errorf("told %+v", done.Errors)
	}
	s := h.Session(id)
	if all := h.Entries(s.ID); len(all) != 3 || all[1].CreatedAt.Year() != 9999 || s.ActiveAt.After(time.Now()) {
		t.Errorf("%d messages, active %v", len(all), s.ActiveAt)
	}
}

// A session of an SDK is automated until a person goes on in it.
func TestSessionOfAnSDKBecomesAPersons(t *testing.T) {
	h := newHouse(t)
	bySDK := func(line string) string {
		return strings.Replace(line, `"type":"user"`, `"type":"user","entrypoint":"sdk-cli","promptSource":"sdk"`, 1)
	}
	path := h.Write(id+".jsonl", bySDK(user("1", "", "one")))
	h.Import(path)
	if s := h.Session(id); s.Kind != session.KindAutomated {
		t.Errorf("a session of an SDK is a %s", s.Kind)
	}
	h.Write(id+".jsonl", bySDK(user("1", "", "one")), user("2", "1", "by hand"))
	h.Import(path)
	if s := h.Session(id); s.Kind != session.KindChat {
		t.Errorf("a session in which a person goes on is a %s", s.Kind)
	}
	h.Examine()
}
