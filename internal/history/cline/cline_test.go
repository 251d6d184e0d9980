package cline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/cline"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return cline.New(historytest.NoUser, now) }
func roo(now func() time.Time) history.Source    { return cline.NewRoo(historytest.NoUser, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 5, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "cline")
	}}
	claims.Hold(t)
}

func TestClaimsHoldForRoo(t *testing.T) {
	claims := historytest.Claims{New: roo, Contexts: 3, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "cline")
	}}
	claims.Hold(t)
}

func samples(t *testing.T, of history.Source) (*historytest.House, history.Accounting) {
	t.Helper()
	return historytest.ImportSample(t, of, "cline")
}

const (
	own     = "1795752991364_125iv"
	fork    = "1795753065263_y27on"
	orphan  = "1784094124598_rruoq"
	oldTask = "1746950400000"
	moved   = "1769000000000"
	parent  = "6f0c2d7a-0a1e-4c58-9a55-3f1b8a0c1a01"
	child   = "6f0c2d7a-0a1e-4c58-9a55-3f1b8a0c1a02"
	kilo    = "b7d3c5f0-1111-4222-8333-944455556666"
)

func TestSamplesAddUp(t *testing.T) {
	h, done := samples(t, source(historytest.Later))
	if len(done.Errors) > 0 || done.Sessions.New != 6 {
		t.Errorf("%+v", done)
	}
	for id, want := range map[string]historytest.Counts{
		own: {Users: 2, Replies: 4, Calls: 2, Results: 2, Ledger: 4, Input: 4799 - 447, CacheRead: 447, Output: 247},
		own + "__agent_1795752992151_vwq818": {
			Replies: 2, Calls: 1, Results: 1, Ledger: 2, Input: 2306 - 218, CacheRead: 218, Output: 118,
		},
		fork: {Users: 3, Replies: 5, Calls: 2, Results: 2, Ledger: 1, Input: 1340 - 120, CacheRead: 120, Output: 70},
		orphan: {
			Users: 5, Replies: 16, Calls: 11, Results: 11, Ledger: 16, Input: 630254 - 534435, CacheRead: 534435, Output: 4395,
			NanoUSD: 2036022565,
		},
		oldTask: {
			Users: 2, Replies: 4, Calls: 4, Results: 3, Ledger: 5, Input: 45, CacheRead: 37300, CacheWrite: 9750, Output: 260,
			NanoUSD: 51_786_000,
		},
		moved: { // the task, and what came after it was moved to the new store
			Users: 3, Replies: 5, Calls: 3, Results: 2, Ledger: 5, Input: 31 + 100, CacheRead: 29523, CacheWrite: 10200 + 11400,
			Output: 275 + 12, NanoUSD: 51_100_000 + 43_200_000,
		},
	} {
		got := h.CountsOf(id)
		want.NanoUSD, got.NanoUSD = want.NanoUSD/1000, got.NanoUSD/1000 // fractions of the program are rounded, each
		testkit.Equal(t, want, got)
	}
}

func TestRooSamplesAddUp(t *testing.T) {
	h, done := samples(t, roo(historytest.Later))
	if len(done.Errors) > 0 || done.Sessions.New != 3 {
		t.Errorf("%+v", done)
	}
	for id, want := range map[string]historytest.Counts{
		parent: {
			Users: 2, Replies: 4, Calls: 3, Results: 2, Failed: 1, Ledger: 5, Input: 1234, CacheRead: 21296, CacheWrite: 12190,
			Output: 245, NanoUSD: 62_400_000,
		},
		child: {
			Replies: 2, Calls: 2, Results: 1, Ledger: 2, Input: 20, CacheRead: 11790, CacheWrite: 11890, Output: 95,
			NanoUSD: 49_800_000,
		},
		kilo: {Users: 1, Replies: 1, Calls: 1, Ledger: 1, Input: 9800, Output: 30, NanoUSD: 10_200_000},
	} {
		testkit.Equal(t, want, h.CountsOf(id))
	}
	s := h.Session(child)
	var call string
	testkit.Check(t, h.Store.Reader().Get(&call, `SELECT call_id FROM links WHERE session_id = ?`, s.ID))
	if s.ParentID != h.Session(parent).ID || call != "call_roo_1" {
		t.Errorf("%+v by %q", s, call)
	}
	overlay, rest := h.Seen(h.Session(parent))
	if overlay == nil || !strings.Contains(overlay.Summary, "The release was planned") || rest[0].Text() != "Tag it v1." {
		t.Errorf("%+v %s", overlay, historytest.Texts(rest))
	}
}

func TestSessionsSayWhatTheyAre(t *testing.T) {
	h, _ := samples(t, source(historytest.Later))
	for id, want := range map[string]string{
		own:     "THINK SPAWN a helper please | /home/dev1/demo | master | gpt-4o",
		fork:    "THINK SPAWN a helper please (fork) | /home/dev1/demo | master | gpt-4o",
		oldTask: "What does notes.txt say? Fix the number. | /home/dev1/demo |  | claude-3-7-sonnet-20250219",
		moved:   "List the files and say what they hold. | /home/dev1/demo |  | anthropic/claude-sonnet-5",
	} {
		s := h.Session(id)
		if got := s.Title + " | " + s.Directory + " | " + s.GitBranch + " | " + s.Model; got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if s := h.Session(fork); s.ParentKind != session.ParentFork || s.ParentID != h.Session(own).ID || s.MessageCount != 2 {
		t.Errorf("%+v", s)
	}
	agent := h.Session(own + "__agent_1795752992151_vwq818")
	var call string
	testkit.Check(t, h.Store.Reader().Get(&call, `SELECT call_id FROM links WHERE session_id = ?`, agent.ID))
	if call != "call_492278219ca5073c473e7e23" || agent.ParentID != h.Session(own).ID {
		t.Errorf("%+v by %q", agent, call)
	}
	overlay, rest := h.Seen(h.Session(own))
	if overlay == nil || !strings.HasPrefix(overlay.Summary, "Scripted title of notes") || len(rest) != 5 {
		t.Errorf("%+v, %d messages", overlay, len(rest))
	}
	talk := h.Talk(h.Session(oldTask))
	for _, part := range []string{
		"user: What does notes.txt say? Fix the number.", "I look at it.(read_file)", "A zebra.(attempt_completion)",
		"user: Thank you. Which animal was it?",
	} {
		if !strings.Contains(talk, part) || strings.Contains(talk, "environment_details") {
			t.Errorf("%s", talk)
		}
	}
}

// Cline hides messages in the middle; they stay on the path.
func TestHiddenRangeIsOutOfTheContext(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := t.TempDir()
	historytest.CopySample(t, folder, "cline", "classic-constructed", "saoudrizwan.claude-dev")
	h.Import(folder)
	given := strings.Join(h.Given(h.Session(moved).ID), "\n")
	if strings.Contains(given, "notes.txt\n") || strings.Contains(given, "toolu_01Clsc0002") ||
		!strings.Contains(given, "Go on please") {
		t.Errorf("%s", given)
	}
}

const (
	head  = `{"version":1,"sessionId":"s1","messages":[`
	asked = `{"id":"m1","role":"user","content":[{"type":"text","text":"<user_input mode=\"act\">one</user_input>"}],"ts":1795752991683}`
	reply = `{"id":"m2","role":"assistant","content":[{"type":"text","text":"first"}],"ts":1795752992112,"metrics":{"inputTokens":9,"outputTokens":5,"cacheReadTokens":2,"cacheWriteTokens":3}}`
)

func write(h *historytest.House, text string) string {
	h.Helper()
	folder := filepath.Join(h.TempDir(), "sessions", "s1")
	h.Rewrite(filepath.Join(folder, "s1.messages.json"))
	h.Append(filepath.Join(folder, "s1.messages.json"), text)
	return folder
}

func TestWrongFiles(t *testing.T) {
	for what, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"empty":           {"", "empty", 0},
		"cut off":         {head + asked + ",", "cut off", 0},
		"no JSON":         {"hello", "no JSON", 0},
		"no message":      {head + "]}", "", 0},
		"a name twice":    {head + asked + "," + asked + "," + strings.Replace(asked, "one", "other", 1) + "]}", "", 1},
		"odd values":      {head + asked + `,7,{"id":5,"role":"assistant","content":7},{"role":"assistant","content":[1,{"type":"text"}],"metrics":[]}]}`, "", 1},
		"an unknown kind": {head + asked + `,{"id":"m2","role":"assistant","content":[{"type":"dream"}]}]}`, "", 1},
		"too deep":        {head + asked + `,` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "]}", "no JSON", 0},
		"another list":    {`[1,2]`, "", 0},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			done := h.Import(write(h, test.text))
			h.Gave(done, test.sessions, test.says)
		})
	}
}

// A file that is being written is read again, and no problem.
func TestFileThatIsCutIsReadAgain(t *testing.T) {
	h := historytest.New(t, source(time.Now))
	folder := write(h, head+asked)
	if done := h.Import(folder); len(done.Errors) > 0 || len(h.Sessions()) > 0 {
		t.Errorf("%+v", done)
	}
	testkit.Check(t, os.WriteFile(filepath.Join(folder, "s1.messages.json"), []byte(head+asked+","+reply+"]}"), 0o600))
	h.Import(folder)
	if got := h.Talk(h.Session("s1")); got != "user: one\nassistant: first" {
		t.Errorf("%q", got)
	}
	if n := h.CountsOf("s1"); n.Input != 4 || n.CacheRead != 2 || n.CacheWrite != 3 {
		t.Errorf("the input includes the caches: %+v", n)
	}
}
