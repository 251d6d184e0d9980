package kimicode_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/kimicode"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return kimicode.New(historytest.NoEnv, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 6, Lines: true, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "kimi-code")
	}}
	claims.Hold(t)
}

func samples(t *testing.T) (*historytest.House, history.Accounting) {
	t.Helper()
	return historytest.ImportSample(t, source(historytest.Later), "kimi-code")
}

const (
	own   = "session_335fe87a-11e7-4bca-a839-fe993b6f9e55"
	fork  = "session_1f2f66ee-08e2-4636-a30e-bec99eebf593"
	older = "session_1bcbe023-4f7e-4971-9dc9-43b8756045b0"
	cli   = "0b1f9d34-7c2e-4a57-8f5b-2f8e1d0c9a77"
)

func TestSamplesAddUp(t *testing.T) {
	h, done := samples(t)
	if len(done.Errors) > 0 || done.Records.Raw > 0 {
		t.Errorf("%+v", done)
	}
	for id, want := range map[string]historytest.Counts{
		own: {
			Users: 3, Replies: 6, Calls: 3, Results: 3, Aside: 3, Ledger: 8, Input: 9600, CacheRead: 950, Output: 550,
		},
		own + "/agent-0": {Replies: 2, Calls: 1, Results: 1, Ledger: 2, Input: 1896, CacheRead: 206, Output: 106},
		own + "/agent-1": {Replies: 2, Calls: 1, Results: 1, Ledger: 2, Input: 2696, CacheRead: 256, Output: 156},
		fork:             {Users: 3, Replies: 6, Calls: 3, Results: 3},
		older: {
			Users: 8, Replies: 22, Calls: 19, Results: 19, Failed: 1, Ledger: 23, Input: 30174, CacheRead: 661504, Output: 5515,
		},
		older + "/agent-0": {Replies: 3, Calls: 2, Results: 2, Ledger: 3, Input: 12905, CacheRead: 28416, Output: 330},
		cli:                {Users: 3, Replies: 3, Calls: 1, Results: 1, Ledger: 3, Input: 1650, CacheRead: 9120, Output: 88},
	} {
		testkit.Equal(t, want, h.CountsOf(id))
	}
}

func TestSessionsSayWhatTheyAre(t *testing.T) {
	h, _ := samples(t)
	for id, want := range map[string]string{
		own:                "Second turn: remember heliotrope | /home/dev1/demo | m",
		fork:               "Fork: Second turn: remember heliotrope | /home/dev1/demo | ",
		older:              "hi | /Users/dev1/project | kimi-k2.7-code",
		cli:                "Notes of the harbour | /home/dev1/demo | ",
		older + "/agent-0": "",
	} {
		s := h.Session(id)
		if got := s.Title + " | " + s.Directory + " | " + s.Model; want != "" && got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for child, call := range map[string]string{
		own + "/agent-0": "call_bc4b20f8b7274e218507ce50", own + "/agent-1": "call_ef57de6479734d0a733a282b",
		older + "/agent-0": "Agent_3",
	} {
		s := h.Session(child)
		var got string
		testkit.Check(t, h.Store.Reader().Get(&got, `SELECT call_id FROM links WHERE session_id = ?`, s.ID))
		if got != call || s.ParentKind != session.ParentChild || s.Kind != "subagent" {
			t.Errorf("%s is started by %q: %+v", child, got, s)
		}
	}
	if s := h.Session(fork); s.ParentID != h.Session(own).ID || s.ParentKind != session.ParentFork {
		t.Errorf("%+v", s)
	}
	talk := h.Talk(h.Session(own))
	if strings.Contains(talk, "heliotrope") || !strings.Contains(talk, "user: Other branch: RUN`ls -1` please") {
		t.Errorf("the undone turn is on the path: %s", talk)
	}
}

func TestSummaryIsACompaction(t *testing.T) {
	h, _ := samples(t)
	overlay, rest := h.Seen(h.Session(own))
	if overlay == nil || overlay.Summary != "REPLY 24: noted." || overlay.TokensBefore != 20636 ||
		!strings.HasPrefix(rest[0].Text(), "After compaction:") {
		t.Errorf("%+v %s", overlay, historytest.Texts(rest))
	}
	overlay, _ = h.Seen(h.Session(cli))
	if overlay == nil || overlay.Summary != "The user asked for notes.txt: a zebra, 6432." {
		t.Errorf("%+v", overlay)
	}
}

// What Kimi Code moved from kimi-cli is a copy, as long as the old session is there.
func TestMovedSessionIsACopy(t *testing.T) {
	_, done := samples(t)
	if done.Records.Skipped["moved from kimi-cli, whose session is stored"] != 3 {
		t.Errorf("%+v", done.Records)
	}
	alone, _ := historytest.ImportSample(t, source(historytest.Later), "kimi-code", "kimi-cli-constructed",
		"dot-kimi-code")
	if got := alone.Talk(alone.Session("ses_" + cli)); got != "user: Which animal?\nassistant: A zebra." {
		t.Errorf("%q", got)
	}
}

// A session of kimi-cli that has no log is read from its contexts.
func TestContextsWithoutALog(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := t.TempDir()
	from := historytest.Sample(t, "kimi-code", "kimi-cli-constructed", "dot-kimi", "sessions", "*", cli)
	for _, name := range []string{"context.jsonl", "context_1.jsonl"} {
		path := filepath.Join(folder, "sessions", "7565de83708e0b73adb8c7cd847f69f0", cli, name)
		h.Rewrite(path)
		h.Append(path, historytest.Read(t, filepath.Join(from, name)))
	}
	h.Import(folder)
	want := "user: Run cat notes.txt please\nassistant: I look.(Shell)\n" +
		"tool: <system>Command executed successfully.</system>\nThe zebra stands at the harbour, number 6432.\n\n" +
		"assistant: A zebra, number 6432.\nuser: Which animal?\nassistant: A zebra."
	if got := h.Talk(h.Session(cli)); got != want {
		t.Errorf("%q", got)
	}
	h.Examine()
}

const (
	head   = `{"type":"metadata","protocol_version":"1.5","created_at":1795752985482}`
	asked  = `{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"one"}],"id":"m1","origin":{"kind":"user"}},"time":1795752985547}`
	begun  = `{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1","step":1},"time":1795752985576}`
	used   = `{"type":"usage.record","model":"m","usage":{"inputOther":9,"output":5,"inputCacheRead":1,"inputCacheCreation":0},"usageScope":"turn","time":1795752985625}`
	said   = `{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p1","stepUuid":"s1","part":{"type":"text","text":"first"}},"time":1795752985628}`
	ended  = `{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s1","finishReason":"end_turn","usage":{"inputOther":9,"output":5}},"time":1795752985800}`
	again  = `{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"two"}],"id":"m2","origin":{"kind":"user"}},"time":1795752985900}`
	undone = `{"type":"context.undo","count":1,"time":1795752986000}`
)

const name = "sessions/wd_x/session_1/agents/main/wire.jsonl"

func write(h *historytest.House, lines ...string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	h.Rewrite(path, lines...)
	return path
}

func TestUndoLeavesABranch(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := write(h, head, asked, begun, used, said, ended, again, undone)
	h.Import(path)
	if got := h.Talk(h.Session("session_1")); got != "user: one\nassistant: first" {
		t.Errorf("%q", got)
	}
	h.Append(path, strings.Replace(again, "two", "three", 1)+"\n")
	h.Import(path)
	if n := h.CountsOf("session_1"); n.Ledger != 1 || n.Output != 5 || n.Aside != 1 {
		t.Errorf("%+v", n)
	}
	h.Examine()
}

func TestStepThatIsWrittenWaits(t *testing.T) {
	h := historytest.New(t, source(time.Now))
	path := write(h, head, asked, begun, used, said)
	if done := h.Import(path); done.Records.Waiting != 3 {
		t.Errorf("%+v", done)
	}
	h.Append(path, ended+"\n")
	h.Import(path)
	if got := h.Talk(h.Session("session_1")); got != "user: one\nassistant: first" {
		t.Errorf("%q", got)
	}
}

// Each record is a call of its own, however many a step has.
func TestEachCallOfAStepCounts(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	lines := []string{head, asked, begun}
	for range 12 {
		lines = append(lines, used)
	}
	h.Import(write(h, append(lines, said, ended)...))
	if n := h.CountsOf("session_1"); n.Ledger != 12 || n.Output != 60 {
		t.Errorf("%+v", n)
	}
}

func TestWrongLogs(t *testing.T) {
	for what, test := range map[string]struct {
		lines    []string
		says     string
		sessions int
	}{
		"no log":           {[]string{`{"hello":"world"}`}, "no log of Kimi Code", 0},
		"text":             {[]string{"hello", "world"}, "no log of Kimi Code", 0},
		"a broken line":    {[]string{head, asked, `{"torn":`, begun, said, ended}, "kept raw", 1},
		"an unknown type":  {[]string{head, asked, `{"type":"dream.begun","of":"sheep"}`, begun, said, ended}, "", 1},
		"a newer version":  {[]string{strings.Replace(head, "1.5", "9.0", 1), asked, begun, said, ended}, "", 1},
		"no first line":    {[]string{asked, begun, said, ended}, "", 1},
		"a lost base":      {[]string{head, asked, `{"type":"agent.switched","base":{"line":99}}`, begun, said, ended}, "", 1},
		"odd values":       {[]string{head, asked, `{"type":"context.append_loop_event","event":7}`, `{"type":"usage.record","usage":"x"}`, said}, "", 1},
		"a name twice":     {[]string{head, asked, asked, strings.Replace(asked, "one", "other", 1), said}, "", 1},
		"an early result":  {[]string{head, asked, `{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"x","result":{"output":"y"}}}`}, "", 1},
		"a deep line":      {[]string{head, asked, `{"type":"x.y","z":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`}, "kept raw", 1},
		"invalid UTF-8":    {[]string{head, strings.Replace(asked, "one", "\xff\xfe", 1)}, "", 1},
		"a lone step":      {[]string{head, begun, ended}, "", 0},
		"undo of nothing":  {[]string{head, undone, asked}, "", 1},
		"an empty summary": {[]string{head, `{"type":"context.apply_compaction"}`, asked, begun, said, ended}, "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			done := h.Import(write(h, test.lines...))
			h.Gave(done, test.sessions, test.says)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join([]string{head, asked, begun, used, said, ended, again, undone}, "\n")))
	f.Add([]byte(`{"timestamp":1,"message":{"type":"TurnBegin","payload":{"user_input":"x"}}}`))
	historytest.FuzzRead(f, source(historytest.Later), source(time.Now))
}
