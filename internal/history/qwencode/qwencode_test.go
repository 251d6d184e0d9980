package qwencode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/qwencode"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func quiet() *history.Program { return qwencode.New(historytest.NoEnv, historytest.Later) }

// figures are what a file holds, as the samples' README counts them.
type figures struct {
	users, replies, results, aside, calls int
	linked                                int // ledger rows of replies
	linkedInput, linkedOutput             int64
	ledger                                int
	input, output, thoughts               int64
}

func figuresOf(h *historytest.House) (got figures) {
	h.Helper()
	for _, s := range h.Sessions() {
		keys := map[int64]bool{}
		for _, m := range h.Entries(s.ID) {
			switch {
			case m.Kind != session.KindMessage:
				got.aside++
			case m.Role == session.User:
				got.users++
			case m.Role == session.Assistant:
				got.replies++
				keys[m.RowID] = true
			case m.Role == session.Tool:
				got.results++
			}
			got.calls += len(m.Calls())
		}
		for _, c := range h.Calls(s.ID) {
			got.ledger++
			got.input, got.output, got.thoughts = got.input+c.InputTokens+c.CacheReadTokens, got.output+c.OutputTokens,
				got.thoughts+c.ReasoningTokens
			if c.MessageID != nil && keys[*c.MessageID] {
				got.linked++
				got.linkedInput, got.linkedOutput = got.linkedInput+c.InputTokens+c.CacheReadTokens, got.linkedOutput+c.OutputTokens
			}
		}
	}
	return got
}

func TestSamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines int
		want  figures // aside lacks the rows of api_response, which are ledger rows alone
	}{
		{"27d495d1*", 13, figures{1, 3, 2, 7 - 4, 2, 3, 6150, 1331, 4, 8200, 2098, 2047}},
		{"85aa748a*", 8, figures{1, 2, 1, 4 - 2, 1, 2, 4100, 1296, 2, 4100, 1296, 1138}},
		{"a719f84a*", 9, figures{1, 1, 0, 7 - 3, 0, 1, 2050, 129, 3, 6150, 884, 883}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := historytest.New(t, quiet())
			file := historytest.Sample(t, "qwen-code", "projects", "-work", "chats", test.name)
			done := h.Import(file)
			if len(done.Errors) > 0 || done.Records.Read != test.lines || done.Records.Imported != test.lines {
				t.Errorf("%+v", done)
			}
			testkit.Equal(t, test.want, figuresOf(h), cmp.AllowUnexported(figures{}))
			h.Examine()
			h.ContextsAreAccepted(1)
			historytest.PiecesGiveTheWhole(t, file, qwencode.New(historytest.NoEnv, time.Now), quiet())
		})
	}
}

// A file that another program made in this form has neither telemetry nor parts.
func TestUsageOfRepliesCountsWithoutTelemetry(t *testing.T) {
	h := historytest.New(t, quiet())
	done := h.Import(historytest.Sample(t, "qwen-code", "claude-like-0.1.0.jsonl"))
	if got := figuresOf(h); done.Records.Imported != 3 || got.input != 5 || got.output != 7 || got.ledger != 1 {
		t.Errorf("%+v %+v", done, got)
	}
}

func TestProjectsAreFoundAndComeOnce(t *testing.T) {
	h := historytest.New(t, quiet())
	folder := historytest.Sample(t, "qwen-code", "projects")
	if done := h.Import(folder); done.Sessions.New != 3 || len(done.Errors) > 0 {
		t.Fatalf("%+v", done)
	}
	rows := h.Rows()
	if again := h.Import(folder); again.Sessions.Unchanged != 3 || h.Rows() != rows {
		t.Errorf("%+v", again)
	}
}

const (
	asked    = `{"uuid":"u1","parentUuid":null,"sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:01.000Z","type":"user","provenance":"real_user","cwd":"/w","version":"0.21.6","message":{"role":"user","parts":[{"text":"one"}]}}`
	answered = `{"uuid":"a1","parentUuid":"u1","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:02.000Z","type":"assistant","model":"m","message":{"role":"model","parts":[{"text":"first"}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"cachedContentTokenCount":4}}`
	again    = `{"uuid":"u2","parentUuid":"a1","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:03.000Z","type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"two"}]}}`
	rewound  = `{"uuid":"u3","parentUuid":"a1","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:04.000Z","type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"two, other words"}]}}`
	titled   = `{"uuid":"s1","parentUuid":"u3","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:05.000Z","type":"system","subtype":"custom_title","systemPayload":{"customTitle":"Counting"}}`
	shrunk   = `{"uuid":"s2","parentUuid":"s1","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","timestamp":"2026-08-05T10:00:06.000Z","type":"system","subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":90,"newTokenCount":20},"compressedHistory":[{"role":"user","parts":[{"text":"They counted."}]},{"role":"model","parts":[{"text":"Got it."}]},{"role":"user","parts":[{"text":"two, other words"}]}]}}`
)

const name = "0d9c8b7a-6f5e-4d3c-9b2a-190807060504.jsonl"

func TestRewoundTurnIsABranchAndCompressionAnOverlay(t *testing.T) {
	h := historytest.New(t, quiet())
	done := h.Import(h.Write(name, asked, answered, again, rewound, titled, shrunk))
	s := h.Sessions()[0]
	if got := h.Talk(s); got != "user: one\nassistant: first\nuser: two, other words" || s.Title != "Counting" ||
		len(done.Errors) > 0 {
		t.Errorf("%q %q %+v", got, s.Title, done)
	}
	overlay, rest := h.Seen(s)
	if overlay == nil || overlay.Summary != "They counted." || overlay.FirstKept == nil || overlay.TokensBefore != 90 {
		t.Errorf("%+v %d", overlay, len(rest))
	}
	h.Examine()
}

func TestByteOrderMark(t *testing.T) {
	historytest.MarkedFile(t, quiet(), name, asked, answered, again)
}

// A fork repeats the rows of its origin under their names, and says where they come from.
func TestForkSharesTheRowsOfItsOrigin(t *testing.T) {
	const from = `"forkedFrom":{"sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504","messageUuid":"x"},"sessionId":"1d9c8b7a-6f5e-4d3c-9b2a-190807060504"`
	of := func(row string) string {
		return strings.Replace(row, `"sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504"`, from, 1)
	}
	h := historytest.New(t, quiet())
	folder := filepath.Dir(h.Write(name, asked, answered, again))
	fork := filepath.Join(folder, "1"+name[1:])
	h.Rewrite(fork, of(asked), of(answered), of(rewound))
	if err := os.Chtimes(fork, time.Now(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	done := h.Import(folder)
	s := h.Session("1" + name[1:len(name)-len(".jsonl")])
	if s.ParentKind != session.ParentFork || s.MessageCount != 1 || len(done.Errors) > 0 {
		t.Errorf("%+v %+v", s, done)
	}
	if got := h.Talk(s); got != "user: one\nassistant: first\nuser: two, other words" {
		t.Errorf("%q", got)
	}
	h.Examine()
}

func TestFileThatIsShorterMeanwhile(t *testing.T) {
	historytest.ShorterMeanwhile(t, quiet(), name, "", func(i int) string {
		return strings.Replace(asked, "u1", fmt.Sprintf("u%d", i), 1)
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join([]string{asked, answered, again, rewound, titled, shrunk}, "\n")))
	f.Add([]byte(asked + answered + "\n{}\n" + again))
	historytest.FuzzRead(f, quiet(), qwencode.New(historytest.NoEnv, time.Now))
}

// A sub-agent has a file of its own beside the chats. The chat's telemetry counts its requests, with their model.
func TestSubAgentIsAChildOfItsSession(t *testing.T) {
	h := historytest.New(t, quiet())
	const telemetry = `{"uuid":"t1","parentUuid":"a1","sessionId":"0d9c8b7a-6f5e-4d3c-9b2a-190807060504",` +
		`"timestamp":"2026-08-05T10:00:03.000Z","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":` +
		`{"event.name":"qwen-code.api_response","model":"m","input_token_count":20,"output_token_count":7,` +
		`"subagent_name":"general-purpose"}}}`
	chat := h.Write(filepath.Join("projects", "-w", "chats", name), asked, answered, telemetry)
	of := func(uuid, parent, kind, message, more string) string {
		return fmt.Sprintf(`{"uuid":%q,"parentUuid":%s,"sessionId":%q,"timestamp":"2026-08-05T10:00:02.500Z","type":%q,`+
			`"cwd":"/w","agentId":"general-purpose-c1","isSidechain":true,"message":%s%s}`, uuid, parent,
			strings.TrimSuffix(name, ".jsonl"), kind, message, more)
	}
	agents := filepath.Join(filepath.Dir(chat), "..", "subagents", strings.TrimSuffix(name, ".jsonl"))
	testkit.Check(t, os.MkdirAll(agents, 0o700))
	h.Rewrite(filepath.Join(agents, "agent-general-purpose-c1.jsonl"),
		of("g1", "null", "user", `{"role":"user","parts":[{"text":"How high is the water?"}]}`, ""),
		of("g2", `"g1"`, "assistant", `{"role":"model","parts":[{"text":"Two metres."}]}`,
			`,"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":7}`))
	h.Import(filepath.Join(filepath.Dir(chat), "..", "..", ".."))
	var children int
	var input int64
	for _, s := range h.Sessions() {
		if s.ParentID != "" && s.Kind == session.KindSubagent &&
			h.Talk(s) == "user: How high is the water?\nassistant: Two metres." {
			children++
		}
		for _, c := range h.Calls(s.ID) {
			input += c.InputTokens + c.CacheReadTokens
		}
	}
	if children != 1 || input != 30 {
		t.Errorf("%d children, %d tokens in", children, input)
	}
	h.Examine()
}
