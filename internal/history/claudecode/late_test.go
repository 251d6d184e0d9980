package claudecode_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

const other = "9a000000-0000-4000-8000-000000000002"

// A copy is a fork, though it is first seen before the first reply is in it, by which its origin is known.
func TestCopyWaitsForItsFirstReply(t *testing.T) {
	h := newHouse(t)
	h.Source = claudecode.New(historytest.NoEnv, time.Now)
	begins := []string{user("1", "", "one"), says("2", "1", "msg_1", text("two"), "end_turn")}
	h.Import(h.Write(id+".jsonl", begins...))
	path := h.Write(other+".jsonl", begins[0])
	h.Append(path, begins[1][:30])
	if done := h.Import(path); len(h.Sessions()) != 1 || done.Sessions.New != 0 || done.Records.Waiting != 2 {
		t.Errorf("a copy that is not made yet came in, or nothing tells that it waits: %+v", done)
	}
	h.Append(path, begins[1][30:]+"\n"+strings.ReplaceAll(user("3", "2", "three"), id, other)+"\n")
	h.Import(path)
	origin, fork := h.Session(id), h.Session(other)
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.MessageCount != 1 ||
		h.Talk(fork) != "user: one\nassistant: two\nuser: three" {
		t.Errorf("%+v\n%s", fork, h.Talk(fork))
	}
}

// A prompt is imported at once, before the model replies.
func TestPromptIsHereBeforeItsReply(t *testing.T) {
	h := newHouse(t)
	h.Source = claudecode.New(historytest.NoEnv, func() time.Time { return time.Date(2026, 2, 8, 5, 0, 30, 0, time.UTC) })
	path, typed := h.Write(id+".jsonl", user("1", "", "one")), time.Date(2026, 2, 8, 5, 0, 0, 200e6, time.UTC)
	if err := os.Chtimes(path, typed, typed); err != nil {
		t.Fatal(err)
	}
	if h.Import(path); h.Talk(h.Session(id)) != "user: one" {
		t.Error("it waits")
	}
}

// A sub-agent that came before its trunk is linked when that comes, with the call that started it, and one that
// another sub-agent started hangs on the trunk until that one comes.
func TestSubAgentIsLinkedWhenItsStarterComes(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	agent := func(name, meta string) string {
		path := filepath.Join(dir, id, "subagents", "agent-"+name+".jsonl")
		h.Rewrite(path, user(name, "", "look"))
		h.Rewrite(strings.TrimSuffix(path, ".jsonl")+".meta.json", meta)
		return path
	}
	inner := agent("inner", `{"agentType":"Explore","parentAgentId":"outer"}`)
	h.Import(inner)
	if s := h.Session(id + "#agent-inner"); s.ParentID != "" {
		t.Errorf("%+v", s)
	}
	h.Rewrite(filepath.Join(dir, id+".jsonl"), user("1", "", "one"), says("2", "1", "msg_1", call("toolu_1"), "tool_use"))
	h.Import(dir)
	trunk := h.Session(id)
	if s := h.Session(id + "#agent-inner"); s.ParentID != trunk.ID || s.ParentKind != session.ParentChild {
		t.Errorf("%+v", s)
	}
	agent("outer", `{"agentType":"Explore","toolUseId":"toolu_1"}`)
	h.Import(dir)
	h.Import(dir)
	outer := h.Session(id + "#agent-outer")
	if s := h.Session(id + "#agent-inner"); s.ParentID != outer.ID || outer.ParentID != trunk.ID {
		t.Errorf("%+v\n%+v", s, outer)
	}
	rows := h.Rows()
	if h.Import(dir); h.Rows() != rows {
		t.Error("linking them twice changed something")
	}
}

// Agents that name one another as their starters hang on the trunk, or on one another once; what they say later comes
// in.
func TestAgentsThatStartedOneAnother(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, id, "subagents", "agent-"+name+".jsonl") }
	for name, starter := range map[string]string{"a": "b", "b": "a", "self": "self"} {
		h.Rewrite(path(name), user(name+"1", "", "look"))
		h.Rewrite(strings.TrimSuffix(path(name), ".jsonl")+".meta.json", `{"parentAgentId":"`+starter+`"}`)
	}
	h.Rewrite(filepath.Join(dir, id+".jsonl"), user("1", "", "one"))
	for range 2 {
		if done := h.Import(dir); len(done.Errors) > 0 {
			t.Errorf("%+v", done.Errors)
		}
	}
	for _, name := range []string{"a", "b", "self"} {
		h.Append(path(name), user(name+"2", name+"1", "further")+"\n")
	}
	if done := h.Import(dir); len(done.Errors) > 0 {
		t.Errorf("%+v", done.Errors)
	}
	for _, name := range []string{"a", "b", "self"} {
		if s := h.Session(id + "#agent-" + name); s.MessageCount != 2 || s.ParentID == s.ID || s.ParentID == "" {
			t.Errorf("%+v", s)
		}
	}
	h.Examine()
}

// How many messages a summary stands for is known, though Claude Code does not say it: those in the context, once.
func TestSummaryTellsHowMuchItStandsFor(t *testing.T) {
	h := newHouse(t)
	boundary := func(uuid, parent string) string {
		return `{"parentUuid":null,"logicalParentUuid":"` + parent + `","isSidechain":false,"sessionId":"` + id + `","type":"system","subtype":"compact_boundary","content":"Conversation compacted","uuid":"` + uuid + `","timestamp":"2026-02-08T05:00:0` + uuid[1:] + `.000Z"}`
	}
	summary := func(uuid, parent string) string {
		return strings.Replace(strings.Replace(user(uuid, parent, "what was said"), `"type":"user"`,
			`"isCompactSummary":true,"type":"user"`, 1), "05:00:00", "05:00:0"+parent[1:], 1)
	}
	h.Import(h.Write(id+".jsonl",
		user("1", "", "one"), says("2", "1", "m1", text("two"), "end_turn"), user("3", "2", "three"), boundary("c4", "3"),
		summary("s4", "c4"),
		user("5", "s4", "five"), says("6", "5", "m2", text("six"), "end_turn"), boundary("c7", "6"), summary("s7", "c7"),
		user("8", "s7", "eight")))
	all, err := h.Store.Compactions(t.Context(), h.Session(id).ID)
	if err != nil || len(all) != 2 || all[0].MessageCount != 3 || all[1].MessageCount != 2 {
		t.Errorf("%+v %v", all, err)
	}
}

// A transcript that is written anew with another title, or another beginning, brings its new title.
func TestRewrittenTranscriptBringsItsTitle(t *testing.T) {
	for _, test := range []struct {
		name, want    string
		before, after []string
	}{
		{
			"another title", "Second",
			[]string{user("1", "", "a"), `{"type":"custom-title","customTitle":"First"}`},
			[]string{user("1", "", "a"), `{"type":"custom-title","customTitle":"Second"}`},
		},
		{"another title before what was said", "Second", []string{
			`{"type":"ai-title","aiTitle":"First"}`,
			user("1", "", "a"),
		}, []string{`{"type":"ai-title","aiTitle":"Second"}`, user("1", "", "a")}},
		{
			"another beginning", "x",
			[]string{user("1", "", "a"), user("2", "1", "b")},
			[]string{user("3", "", "x"), user("4", "3", "b")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write(id+".jsonl", test.before...)
			h.Import(path)
			h.Rewrite(path, test.after...)
			h.Import(path)
			if got := h.Session(id).Title; got != test.want {
				t.Errorf("title %q", got)
			}
			h.Unchanged(path)
		})
	}
}

// A problem names its line: counted with blank lines and with what shares a line, in a reading that goes on, and
// of the row within a reply that is meant.
func TestProblemsNameTheirLines(t *testing.T) {
	bad := strings.Replace(says("x", "1", "m1", text("b"), ""), `"content":[{"type":"text","text":"b"}]`, `"content":7`, 1)
	for _, test := range []struct {
		name  string
		lines []string // the second half of them is read later
		want  []int
	}{
		{
			"alone",
			[]string{user("1", "", "a"), bad, user("2", "1", "b"), "{torn", user("3", "2", "c"), user("4", "3", "d")},
			[]int{2, 4},
		},
		{"within a reply", []string{
			user("1", "", "a"), says("2", "1", "m1", text("b"), ""), bad,
			says("3", "x", "m1", text("c"), "end_turn"), user("4", "3", "d"), user("5", "4", "e"), user("6", "5", "f"),
			user("7", "6", "g"),
		}, []int{3}},
		{"behind blank lines", []string{"", user("1", "", "a"), " ", bad, "", "{torn", user("2", "1", "b"), ""}, []int{4, 6}},
		{"on a line with others", []string{
			user("1", "", "a") + user("2", "1", "b"), user("3", "2", "c") + bad,
			user("4", "3", "d") + `{"torn`, user("5", "4", "e"),
		}, []int{2, 3}},
	} {
		for _, pieces := range []int{1, 2} {
			t.Run(test.name, func(t *testing.T) {
				h := newHouse(t)
				path := h.Write(id + ".jsonl")
				var got []int
				for i := range pieces {
					h.Rewrite(path, test.lines[:len(test.lines)*(i+1)/pieces]...)
					for _, e := range h.Import(path).Errors {
						got = append(got, e.Line)
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("lines %v, want %v", got, test.want)
				}
			})
		}
	}
}
