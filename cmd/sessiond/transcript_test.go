package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/dialecttest"
	"sessiond/internal/testkit/samples"
)

// home is a user's home in which commands are run.
type home struct {
	t   *testing.T
	dir string
}

// command is a command in this home.
func (h home) command(args ...string) *exec.Cmd {
	cmd := exec.Command("sessiond", args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_DATA_HOME="+h.dir, "XDG_CONFIG_HOME="+h.dir, "XDG_RUNTIME_DIR=")
	return cmd
}

// run runs a command that must succeed and gives what it prints.
func (h home) run(args ...string) []byte {
	h.t.Helper()
	cmd := h.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("sessiond %q: %v: %s", args, err, &errs)
	}
	return out
}

// answer is what `context --json` prints, as far as a test looks at it.
type answer struct {
	Request jsontext.Value `json:"request"`
	Tokens  struct {
		Total   int64 `json:"total"`
		Window  int64 `json:"window"`
		Reserve int64 `json:"reserve"`
	} `json:"tokens"`
	Compaction *struct {
		ID string `json:"id"`
	} `json:"compaction"`
}

func (h home) context(id session.ID, window int64) answer {
	h.t.Helper()
	var a answer
	out := h.run("context", string(id), "--window", strconv.FormatInt(window, 10), "--dialect", "openai.chat", "--json")
	testkit.Check(h.t, json.Unmarshal(out, &a))
	return a
}

// messages returns the messages that show prints, as JSON.
func (h home) messages(id session.ID) jsontext.Value {
	h.t.Helper()
	var shown struct{ Messages jsontext.Value }
	testkit.Check(h.t, json.Unmarshal(h.run("show", string(id), "--json"), &shown))
	return shown.Messages
}

// TestRealTranscriptIsCompactedAndUndone imports a real transcript of pi that fills its window
// by more than eight tenths, compacts it, and undoes that. The context of the compaction is
// one that OpenAI would take and is below the limit; the one after the undo is the one before,
// byte for byte; redo gives the compacted one back.
func TestRealTranscriptIsCompactedAndUndone(t *testing.T) {
	t.Parallel()
	h := home{t, t.TempDir()}
	h.run("import", "pi", filepath.Join(samples.Dir(t), "pi", "large-session.jsonl"))
	var sessions struct{ Data []session.Session }
	if err := json.Unmarshal(h.run("ls", "--json"), &sessions); err != nil || len(sessions.Data) != 1 {
		t.Fatalf("%d sessions, %v", len(sessions.Data), err)
	}
	id := sessions.Data[0].ID

	const roomy = 2_000_000 // tokens: nothing compacts by itself
	before, messages := h.context(id, roomy), h.messages(id)
	if before.Compaction != nil {
		t.Fatalf("compacted before anybody asked: %+v", before.Compaction)
	}
	if err := dialecttest.ValidateOpenAIChat(before.Request); err != nil {
		t.Errorf("the whole context: %v", err)
	}

	window := before.Tokens.Total * 10 / 8 // of which the context is eight tenths
	h.run("compact", string(id), "--window", strconv.FormatInt(window, 10))
	compacted := h.context(id, window)
	if compacted.Compaction == nil || compacted.Compaction.ID != "cmp_2" { // cmp_1 is the digest that the import staged
		t.Fatalf("the compaction is %+v", compacted.Compaction)
	}
	if err := dialecttest.ValidateOpenAIChat(compacted.Request); err != nil {
		t.Errorf("the compacted context: %v", err)
	}
	if limit := window - compacted.Tokens.Reserve; compacted.Tokens.Total > limit ||
		compacted.Tokens.Total*2 > before.Tokens.Total {
		t.Errorf("%d tokens of %d are left, the limit is %d", compacted.Tokens.Total, before.Tokens.Total, limit)
	}

	h.run("compact", string(id), "--undo")
	after := h.context(id, roomy)
	if !bytes.Equal(after.Request, before.Request) {
		t.Error("after the undo the context is another one")
	}
	if !bytes.Equal(h.messages(id), messages) {
		t.Error("after the undo the conversation is another one")
	}
	h.run("compact", string(id), "--redo")
	if again := h.context(id, window); !bytes.Equal(again.Request, compacted.Request) {
		t.Error("redo gives another context than the compaction did")
	}
	h.run("doctor")
}
