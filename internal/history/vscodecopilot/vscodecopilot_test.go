package vscodecopilot_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/vscodecopilot"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return vscodecopilot.New(historytest.NoUser, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 5, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "vscode-copilot")
	}}
	claims.Hold(t)
}

func samples(t *testing.T) (*historytest.House, history.Accounting) {
	t.Helper()
	return historytest.ImportSample(t, source(historytest.Later), "vscode-copilot")
}

const (
	typescript = "331fed7f-cfd6-409c-8502-06a56322b636"
	joke       = "7de89a80-6d93-43e7-be0a-0a9afe980198"
	query      = "c0ffee00-0000-4000-8000-000000000001"
	cancelled  = "c0ffee00-0000-4000-8000-000000000003"
	monad      = "c0ffee00-0000-4000-8000-000000000004"
	transcript = "5fcddc54-3ba1-4fc4-88ac-86bd2ce74c19"
)

func TestSamplesAddUp(t *testing.T) {
	h, done := samples(t)
	if len(done.Errors) > 0 || done.Sessions.New != 7 {
		t.Errorf("%+v", done)
	}
	for id, want := range map[string]historytest.Counts{
		typescript: {Users: 3, Replies: 5, Calls: 2, Results: 2},
		joke:       {Users: 2, Replies: 4, Calls: 2, Results: 2, Ledger: 2, Input: 9723 + 9948, Output: 33 + 40},
		query: {
			Users: 2, Replies: 5, Calls: 4, Results: 4, Failed: 1, Ledger: 3, Input: 15_200 + 17_500 + 5_000,
			CacheRead: 14_000 + 4_000, Output: 733 + 45 + 300,
		},
		query + "/call_r1c": {Replies: 2, Calls: 1, Results: 1},
		cancelled:           {Users: 1},
		monad:               {Users: 1, Replies: 1},
		transcript:          {Users: 1, Replies: 2, Calls: 2, Results: 2},
	} {
		testkit.Equal(t, want, h.CountsOf(id))
	}
	skips := done.Records.Skipped
	if skips[history.SkipSilent] != 1 || skips["copy of a stored chat"] == 0 {
		t.Errorf("skipped %v", skips)
	}
}

func TestChatsSayWhatTheyAre(t *testing.T) {
	h, _ := samples(t)
	for id, want := range map[string]string{
		typescript: "Assistance with TypeScript project tasks | /Users/dev1/projects/testing-git | claude-sonnet-4",
		joke:       "Adding a joke to jokes.csv file | /Users/dev1/projects/testing-git | gpt-4o",
		query:      "Slow query in orders | /home/dev1/work/shop | gpt-5.6",
		cancelled:  "Cancelled at once. | vscode-remote://ssh-remote+build1/srv/app | ",
		monad:      "What is a monad? |  | gpt-5-mini",
		transcript: "Add a comment to the file | /Users/dev1/projects/testing-git | ",
	} {
		s := h.Session(id)
		if got := fmt.Sprintf("%s | %s | %s", s.Title, s.Directory, s.Model); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	child := h.Session(query + "/call_r1c")
	if child.ParentID != h.Session(query).ID || child.Kind != "subagent" {
		t.Errorf("%+v", child)
	}
	talk := h.Talk(h.Session(query))
	want := "user: Find the slow query and fix it.\nassistant: I look at db.go first.(read_file)"
	if !strings.HasPrefix(talk, want) || strings.Count(talk, "Added the index. Tests pass.") != 1 ||
		strings.Contains(talk, "Partial") || strings.Contains(talk, "draft text") {
		t.Errorf("%s", talk)
	}
	overlay := testkit.Must(h.Store.Effective(t.Context(), h.Session(query)))(t)
	if overlay == nil || !strings.Contains(overlay.Summary, "The user wants the slow query fixed") {
		t.Errorf("%+v", overlay)
	}
}

// A log that was written anew as one line says what its lines said.
func TestRewrittenLogIsTheSame(t *testing.T) {
	talk := func(path string) map[string]string {
		h := historytest.New(t, source(historytest.Later))
		h.Import(path)
		return h.Told()
	}
	lines := talk(historytest.Sample(t, "vscode-copilot", "constructed", "Code", "User", "workspaceStorage", "1111*",
		"chatSessions", "*.jsonl"))
	whole := talk(historytest.Sample(t, "vscode-copilot", "constructed", "rewritten", "*.jsonl"))
	testkit.Equal(t, lines, whole)
}

const (
	begun   = `{"kind":0,"v":{"version":3,"creationDate":1790000000000,"sessionId":"s1","requests":[]}}`
	asked   = `{"kind":2,"k":["requests"],"v":[{"requestId":"r1","timestamp":1790000100000,"message":{"text":"one"},"response":[],"modelState":{"value":0}}]}`
	growing = `{"kind":2,"k":["requests",0,"response"],"v":[{"value":"fir"}],"i":0}`
	grown   = `{"kind":2,"k":["requests",0,"response"],"v":[{"value":"first"}],"i":0}`
	ended   = `{"kind":1,"k":["requests",0,"modelState"],"v":{"value":1}}`
	again   = `{"kind":2,"k":["requests"],"v":[{"requestId":"r2","timestamp":1790000200000,"message":{"text":"two"},"response":[{"value":"second"}],"modelState":{"value":1}}]}`
	undone  = `{"kind":2,"k":["requests"],"i":1}`
)

// An answer that is being written waits, and a request that is taken back leaves the path.
func TestChatThatGoesOn(t *testing.T) {
	h := historytest.New(t, source(time.Now))
	path := filepath.Join(t.TempDir(), "chatSessions", "s1.jsonl")
	talk := func() string { return h.Talk(h.Session("s1")) }
	h.Rewrite(path, begun, asked, growing)
	if h.Import(path); talk() != "user: one" {
		t.Errorf("%q", talk())
	}
	h.Rewrite(path, begun, asked, growing, grown, ended)
	if h.Import(path); talk() != "user: one\nassistant: first" {
		t.Errorf("%q", talk())
	}
	h.Rewrite(path, begun, asked, growing, grown, ended, again)
	if h.Import(path); talk() != "user: one\nassistant: first\nuser: two\nassistant: second" {
		t.Errorf("%q", talk())
	}
	h.Rewrite(path, begun, asked, growing, grown, ended, again, undone)
	if h.Import(path); talk() != "user: one\nassistant: first" {
		t.Errorf("%q", talk())
	}
	h.Examine()
}

// The calls that were traced count instead of what the chat says of its last one.
func TestTracesAreTheBestUsage(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	user := t.TempDir()
	chat := filepath.Join(user, "workspaceStorage", "1", "chatSessions", "s1.json")
	h.Rewrite(chat, `{"version":3,"sessionId":"s1","requests":[{"requestId":"r1","timestamp":1779650000000,"message":{"text":"one"},"response":[{"value":"a"}],"promptTokens":7,"completionTokens":1,"result":{"metadata":{"sessionId":"48eb5d32-e8f9-4528-b791-92cec0da9dce"}}}]}`)
	historytest.CopySample(t, user, "vscode-copilot", "real", "Code", "User")
	h.Import(chat)
	want := historytest.Counts{
		Users: 1, Replies: 1, Ledger: 2, Input: 17414 - 2816 + 18101 - 17920, CacheRead: 2816 + 17920, Output: 655 + 74,
	}
	testkit.Equal(t, want, h.CountsOf("s1"))
}

func TestWrongChats(t *testing.T) {
	for name, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"no chat":            {`{"hello":"world"}`, "no chat of VS Code", 0},
		"no list":            {`{"sessionId":"s1","requests":{}}`, "no chat of VS Code", 0},
		"text":               {"hello", "no chat of VS Code", 0},
		"a torn line":        {begun + "\n" + asked + "\n" + `{"kind":1,"k":["requests",0,"resu`, "", 1},
		"a broken line":      {begun + "\n" + asked + "\n" + `{"kind":1,"k":["requ` + "\n" + again, "no operation", 1},
		"an unknown kind":    {begun + "\n" + asked + "\n" + `{"kind":9,"k":["x"]}` + "\n", "no operation", 1},
		"a place not there":  {begun + "\n" + asked + "\n" + `{"kind":1,"k":["requests",7,"x"],"v":1}` + "\n", "no operation", 1},
		"odd values":         {`{"sessionId":"s1","creationDate":"x","requests":[3,{"requestId":7,"message":[],"response":"x"},{"requestId":"r","timestamp":{},"message":{"text":"one"},"response":[1,{"kind":7},{"kind":"toolInvocationSerialized"}],"result":[]}]}`, "", 1},
		"a deep tree":        {`{"sessionId":"s1","requests":[{"requestId":"r","message":{"text":"one"},"result":{"metadata":{"x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}}}]}`, "no chat of VS Code", 0},
		"the oldest version": {`{"version":1,"sessionId":"s1","requests":[{"message":"one","response":[{"value":"two"}],"isCanceled":true}]}`, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := h.Write("s1.jsonl")
			h.Append(path, test.text)
			done := h.Import(path)
			h.Gave(done, test.sessions, test.says)
		})
	}
}

func TestHiddenRequestsAreOutOfTheContext(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Import(h.Write("s1.json", `{"sessionId":"s1","requests":[{"requestId":"r1","message":{"text":"one"},"shouldBeRemovedOnSend":{"requestId":"r1"}},{"requestId":"r2","message":{"text":"terminal done"},"isSystemInitiated":true},{"requestId":"r3","message":{"text":"two"}}]}`))
	path := h.Path(h.Session("s1"))
	if len(path) != 3 || path[0].InContext || path[1].Origin != session.Program || !path[2].InContext {
		t.Errorf("%+v", path)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join([]string{begun, asked, growing, grown, ended, again, undone}, "\n")))
	f.Add([]byte(`{"sessionId":"s1","requests":[{"requestId":"r","message":{"text":"one"}}]}`))
	historytest.FuzzRead(f, source(historytest.Later), source(time.Now))
}
