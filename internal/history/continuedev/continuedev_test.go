package continuedev_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/continuedev"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return continuedev.New(historytest.NoEnv, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 3, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "continue")
	}}
	claims.Hold(t)
}

const (
	cli       = "499579bf-5298-45d8-a31d-0fda98bf9297"
	fork      = "ac4f9b2f-a1ac-4e98-b968-477d74f78177"
	extension = "3b1c7d52-9f0e-4f6a-8a37-5c2d1e0f9b11"
)

// The states of a session before and after its compaction come one after the other.
func TestSamplesAddUp(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	for _, part := range []string{
		"before-compaction/499579bf-5298*", "before-compaction/*-after-compact.json", "sessions", "../extension-constructed",
	} {
		if done := h.Import(historytest.Sample(t, "continue", "own-run-1.5.47", part)); len(done.Errors) > 0 {
			t.Errorf("%+v", done)
		}
	}
	for id, want := range map[string]historytest.Counts{
		cli: {
			Users: 3, Replies: 4, Calls: 2, Results: 2, Failed: 1, Ledger: 5, Input: 8043 - 541, CacheRead: 541,
			Output: 429,
		},
		fork: {
			Users: 4, Replies: 5, Calls: 2, Results: 2, Failed: 1, Ledger: 1, Input: 1680 - 140, CacheRead: 140, Output: 90,
		},
		extension: {Users: 2, Replies: 4, Calls: 2, Results: 2, Failed: 1},
	} {
		testkit.Equal(t, want, h.CountsOf(id))
	}
	overlay, rest := h.Seen(h.Session(cli))
	if overlay == nil || overlay.Summary != "REPLY 37: noted." ||
		historytest.Texts(rest) != "After compaction: SAY`violet` violet" {
		t.Errorf("%+v: %s", overlay, historytest.Texts(rest))
	}
	if path := h.Path(h.Session(cli)); len(path) != 10 {
		t.Errorf("%d messages on the path: %s", len(path), historytest.Texts(path))
	}
	overlay, rest = h.Seen(h.Session(extension))
	if overlay == nil || !strings.HasPrefix(overlay.Summary, "The user asked") ||
		rest[0].Text() != "And the other files?" {
		t.Errorf("%+v: %s", overlay, historytest.Texts(rest))
	}
	if s := h.Session(fork); s.ParentKind != session.ParentFork || s.ParentID != h.Session(cli).ID || s.MessageCount != 2 {
		t.Errorf("%+v", s)
	}
}

// Of a session that was compacted before its first import the summary is left, and a row for what is gone.
func TestCompactedSessionAlone(t *testing.T) {
	h, _ := historytest.ImportSample(t, source(historytest.Later), "continue", "own-run-1.5.47", "sessions")
	testkit.Equal(t, historytest.Counts{
		Users: 1, Replies: 2, Ledger: 2, Input: 8043 - 139, CacheRead: 139, Output: 429,
	}, h.CountsOf(cli))
	if got := h.Talk(h.Session(cli)); !strings.HasPrefix(got, "assistant: REPLY 37: noted.\nuser: After compaction") {
		t.Errorf("%q", got)
	}
	h.Examine()
}

func TestSessionsSayWhatTheyAre(t *testing.T) {
	h, _ := historytest.ImportSample(t, source(historytest.Later), "continue")
	for id, want := range map[string]string{
		cli:       "Scripted title of notes | /home/dev1/demo | gpt-4o | 2026-11-27T04:19:52Z",
		fork:      "Fork turn: SAY`indigo` | /home/dev1/demo | gpt-4o | 2026-11-27T04:20:58Z",
		extension: "Notes of the harbour | /home/dev1/demo |  | 2026-04-12T13:20:00Z",
	} {
		s := h.Session(id)
		if got := s.Title + " | " + s.Directory + " | " + s.Model + " | " + s.CreatedAt.Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	first := h.Path(h.Session(extension))[0]
	if len(first.Parts) != 2 || first.Parts[1].Kind != session.PartData ||
		!strings.Contains(first.Parts[1].Text, "zebra") || first.Text() != "What does notes.txt say?" {
		t.Errorf("the attached file: %+v", first)
	}
	for _, m := range h.Entries(h.Session(extension).ID) {
		if strings.Contains(string(session.JSONOf(m)), "whole request") {
			t.Errorf("a log of prompts is stored: %+v", m)
		}
	}
}

const (
	asked   = `{"message":{"role":"user","content":"one"},"contextItems":[]}`
	reply   = `{"message":{"role":"assistant","content":"first","usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2},"model":"m"}}}`
	more    = `{"message":{"role":"user","content":"two"}}`
	calling = `{"message":{"role":"assistant","content":"","toolCalls":[{"id":"c1","type":"function","function":{"name":"Bash","arguments":"{}"}}]},"toolCallStates":[{"toolCallId":"c1","status":"STATUS","output":[{"content":"done it"}]}]}`
)

const name = "5d4ce000-0000-4000-8000-000000000001"

// file returns the text of a session.
func file(usage string, entries ...string) string {
	if usage == "" {
		usage = "{}"
	}
	return `{"sessionId":"` + name + `","title":"New Session","workspaceDirectory":"file:///w%20x","history":[` +
		strings.Join(entries, ",") + `],"usage":` + usage + `}`
}

func write(h *historytest.House, folder, text string) string {
	h.Helper()
	path := filepath.Join(folder, "sessions", name+".json")
	h.Rewrite(path)
	h.Append(path, text)
	return path
}

// A call that waits for the person waits here, too. An edited message begins a branch, and the file of an editor that
// is being written is read again.
func TestSessionThatGoesOn(t *testing.T) {
	h, folder := historytest.New(t, source(time.Now)), t.TempDir()
	path := write(h, folder, file("", asked, strings.Replace(calling, "STATUS", "generated", 1)))
	h.Import(folder)
	if got := h.Talk(h.Session(name)); got != "user: one" {
		t.Errorf("%q", got)
	}
	write(h, folder, file("", asked, strings.Replace(calling, "STATUS", "canceled", 1), reply))
	h.Source = source(historytest.Later)
	h.Import(folder)
	if got := h.Talk(h.Session(name)); got != "user: one\nassistant: (Bash)\ntool: done it\nassistant: first" {
		t.Errorf("%q", got)
	}
	write(h, folder, file("", strings.Replace(asked, "one", "other", 1), reply))
	h.Import(folder)
	if got := h.Talk(h.Session(name)); got != "user: other\nassistant: first" {
		t.Errorf("%q", got)
	}
	h.Source = source(time.Now)
	testkit.Check(t, os.WriteFile(path, []byte(file("", asked)[:40]), 0o600))
	if done := h.Import(folder); len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	h.Examine()
}

// What a session used beyond its messages is one row, which grows with it.
func TestRestIsOneRow(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	for _, output := range []int64{11, 16} { // all calls, where the message says 5
		write(h, folder, file(fmt.Sprintf(`{"promptTokens":%d,"completionTokens":%d}`, 2*output, output), asked, reply))
		h.Import(folder)
		if n := h.CountsOf(name); n.Ledger != 2 || n.Output != output || n.Input+n.CacheRead != 2*output {
			t.Errorf("%+v", n)
		}
	}
	write(h, folder, file(`{"promptTokens":9,"completionTokens":5}`, asked, reply)) // an older state
	h.Import(folder)
	if n := h.CountsOf(name); n.Ledger != 2 || n.Output != 16 {
		t.Errorf("%+v", n)
	}
}

func TestWrongFiles(t *testing.T) {
	for what, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"empty":              {"", "empty", 0},
		"cut off":            {file("", asked, reply)[:150], "it ends in the middle", 0},
		"no JSON":            {"hello", "no session of Continue", 0},
		"another object":     {`{"hello":"world"}`, "no list `history`", 0},
		"another list":       {`[{"hello":"world"}]`, "no list `history`", 0},
		"no message":         {file(""), "", 0},
		"history is no list": {`{"sessionId":"x","history":{}}`, "is no list", 0},
		"a member twice":     {`{"sessionId":"x","sessionId":"y","history":[]}`, "duplicate", 0},
		"a message twice":    {file("", asked, asked, asked), "", 1},
		"an id twice":        {file("", strings.Replace(asked, `"role"`, `"id":"1","role"`, 1), strings.Replace(more, `"role"`, `"id":"1","role"`, 1)), "", 1},
		"an unknown role":    {file("", asked, `{"message":{"role":"ghost","content":"boo"}}`), "kept raw", 1},
		"no message in it":   {file("", asked, `7`, `{"message":[]}`), "kept raw", 1},
		"too deep":           {file("", asked, `{"message":{"role":"user","content":`+strings.Repeat("[", 400)+strings.Repeat("]", 400)+`}}`), "kept raw", 1},
		"odd values":         {file(`{"promptTokens":"many"}`, asked, `{"message":{"role":"assistant","content":{"a":1},"toolCalls":[1,{"id":7}],"usage":[]},"toolCallStates":{"x":1},"contextItems":7,"reasoning":[]}`), "", 1},
		"a result alone":     {file("", asked, `{"message":{"role":"tool","content":"x","toolCallId":"gone"}}`), "", 1},
		"a thought alone":    {file("", asked, `{"message":{"role":"thinking","content":"hm"}}`), "", 1},
		"invalid UTF-8":      {file("", strings.Replace(asked, "one", "\xff\xfe", 1)), "", 1},
		"fewer in the sum":   {file(`{"promptTokens":1,"completionTokens":1}`, asked, reply), "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			done := h.Import(write(h, t.TempDir(), test.text))
			h.Gave(done, test.sessions, test.says)
		})
	}
}

// Beside the sessions lie configurations with keys.
func TestConfigurationsAreNotListed(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	for _, name := range []string{"config.json", "sharedConfig.json", "sessions/sessions.json", "auth-0b1f9d34.json"} {
		h.Rewrite(filepath.Join(folder, name), `{"apiKey":"sk-secret"}`)
	}
	write(h, folder, file("", asked))
	found, problems, err := h.Source.Find(t.Context(), []string{folder})
	if err != nil || len(problems) > 0 || len(found) != 1 || filepath.Base(found[0].Path) != name+".json" {
		t.Errorf("%+v %+v %v", found, problems, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(file(`{"promptTokens":20}`, asked, strings.Replace(calling, "STATUS", "done", 1), reply, more)))
	f.Add([]byte(file("", `{"message":{"role":"assistant","content":"s"},"conversationSummary":"s"}`, more)))
	historytest.FuzzFile(f, name+".json", source(historytest.Later), source(time.Now))
}
