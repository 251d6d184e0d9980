package claudecode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/historytest"
	"sessiond/internal/session"
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
	if done := h.Import(path); len(h.Sessions()) != 1 || done.Sessions.New != 0 {
		t.Errorf("a copy that is not made yet came in: %+v", done)
	}
	h.Append(path, begins[1][30:]+"\n"+strings.ReplaceAll(user("3", "2", "three"), id, other)+"\n")
	h.Import(path)
	origin, fork := h.Session(id), h.Session(other)
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.MessageCount != 1 || h.Talk(fork) != "user: one\nassistant: two\nuser: three" {
		t.Errorf("%+v\n%s", fork, h.Talk(fork))
	}
}

// What a person just typed is here at once, though nobody has answered it.
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
