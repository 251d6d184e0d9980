package claudecode_test

import (
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/session"
	"sessiond/internal/testkit/historytest"
)

const id = "9a000000-0000-4000-8000-000000000001"

func quote(s string) string { return string(session.JSONOf(s)) }

func link(parent string) string {
	if parent == "" {
		return "null"
	}
	return quote(parent)
}

// user is a row that a person typed.
func user(uuid, parent, text string) string {
	return `{"parentUuid":` + link(parent) + `,"isSidechain":false,"cwd":"/proj","sessionId":"` + id + `","version":"2.1.120","type":"user","message":{"role":"user","content":` + quote(text) + `},"uuid":"` + uuid + `","timestamp":"2026-02-08T05:00:00.000Z"}`
}

// says is a piece of a response.
func says(uuid, parent, response, block, stop string) string {
	return `{"parentUuid":` + link(parent) + `,"isSidechain":false,"sessionId":"` + id + `","version":"2.1.120","type":"assistant","message":{"id":"` + response + `","type":"message","role":"assistant","model":"claude-opus-4-6","content":[` + block + `],"stop_reason":` + link(stop) + `,"usage":{"input_tokens":1,"output_tokens":7}},"uuid":"` + uuid + `","timestamp":"2026-02-08T05:00:01.000Z"}`
}

func text(s string) string { return `{"type":"text","text":` + quote(s) + `}` }

func call(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{}}` }

func result(uuid, parent, call, text string) string {
	return `{"parentUuid":` + link(parent) + `,"isSidechain":false,"sessionId":"` + id + `","version":"2.1.120","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + call + `","content":` + quote(text) + `}]},"uuid":"` + uuid + `","timestamp":"2026-02-08T05:00:02.000Z"}`
}

func TestWrongInput(t *testing.T) {
	deep := strings.Repeat("[", 3000) + strings.Repeat("]", 3000)
	for _, test := range []struct {
		name  string
		lines []string
		raw   int
		skips map[string]int
		error string
		at    int // line of the first problem
		talk  string
		count int // of the session's messages, if the test says it
	}{
		{name: "empty", error: "the file is empty"},
		{name: "wrong first lines", lines: []string{`{"hello":"world"}`}, error: "no transcript of Claude Code"},
		{name: "no JSON", lines: []string{"hello", "world"}, error: "no transcript of Claude Code"},
		{name: "another format", lines: []string{`{"type":"system","session_id":"x"}`}, error: "stream-json"},
		{
			name: "invalid JSON in the middle", lines: []string{user("1", "", "a"), `{"torn":`, user("2", "1", "b")}, raw: 1,
			at: 2, talk: "user: a\nuser: b",
		},
		{
			name: "invalid JSON at the beginning", lines: []string{`{"torn":`, user("1", "", "a"), user("2", "1", "b")}, raw: 1,
			at: 1, talk: "user: a\nuser: b",
		},
		{name: "bytes that are no text", lines: []string{
			strings.Replace(user("1", "", "X"), "X", "bad \xff\xfe", 1),
			user("2", "1", "b"),
		}, talk: "user: bad \ufffd\nuser: b"},
		{
			name: "NUL and half a pair", lines: []string{strings.Replace(user("1", "", "X"), "X", `\u0000 \ud800`, 1)},
			talk: "user: \ufffd \ufffd",
		},
		{name: "nested deep", lines: []string{user("1", "", "a"), `{"type":"user","uuid":"x","parentUuid":"1","message":{"role":"user","content":` + deep + `}}`, user("2", "1", "b")}, raw: 1, at: 2, talk: "user: a\nuser: b"},
		{name: "its own parent", lines: []string{user("1", "", "a"), user("2", "2", "b")}, talk: "user: b", count: 2},
		{name: "an orphan", lines: []string{user("1", "", "a"), user("2", "gone", "b")}, talk: "user: b", count: 2},
		{
			name: "a cycle", lines: []string{user("1", "2", "a"), user("2", "1", "b"), user("3", "2", "c")},
			talk: "user: a\nuser: b\nuser: c",
		},
		{
			name: "the same row again", lines: []string{user("1", "", "a"), user("2", "1", "b"), user("1", "", "a")},
			skips: map[string]int{history.SkipDuplicate: 1}, talk: "user: a\nuser: b",
		},
		{name: "another row of the same name", lines: []string{
			user("1", "", "a"), user("1", "", "other"),
			user("2", "1", "b"),
		}, raw: 1, talk: "user: a\nuser: b", count: 3},
		{name: "types that are not known", lines: []string{
			user("1", "", "a"), `{"type":"dream","x":1}`,
			`{"type":"dream","uuid":"9","parentUuid":"1"}`, user("2", "9", "b"),
		}, raw: 2, talk: "user: a\nuser: b"},
		{name: "subtypes that are not known", lines: []string{
			user("1", "", "a"), `{"type":"system","subtype":"dream","uuid":"7","parentUuid":"1"}`,
			`{"type":"attachment","attachment":{"type":"dream"},"uuid":"8","parentUuid":"7"}`, user("2", "8", "b"),
		}, raw: 2, talk: "user: a\nuser: b"},
		{name: "fields of other types", lines: []string{
			user("1", "", "a"), `{"type":"user","uuid":"7","parentUuid":1,"message":[]}`, `{"type":"assistant","uuid":"8","parentUuid":"1","message":{"role":"assistant","content":7}}`,
			`{"type":7}`, `{"type":"queue-operation","operation":[]}`, user("2", "1", "b"),
		}, raw: 3, at: 2, talk: "user: a\nuser: b"},
		{
			name: "results without calls, calls without results",
			lines: []string{
				user("1", "", "a"), result("2", "1", "nobody", "x"), says("3", "2", "m1", call("c"), "tool_use"),
				user("4", "3", "b"),
			}, talk: "user: a\ntool: x\nassistant: (Bash)\nuser: b",
		},
		{
			name: "states alone", lines: []string{`{"type":"summary","summary":"x","leafUuid":"y"}`},
			skips: map[string]int{"state of a file in which nobody speaks": 1}, talk: "none",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write(id+".jsonl", test.lines...)
			good := h.Write("9b000000-0000-4000-8000-000000000001.jsonl", user("1", "", "fine"))
			done := h.Import(path, good)
			if h.Talk(h.Session("9b000000-0000-4000-8000-000000000001")) != "user: fine" {
				t.Error("the rest did not go on")
			}
			if !h.Reports(done, path, historytest.Wrong{Error: test.error, Raw: test.raw, At: test.at, Skips: test.skips}) {
				return
			}
			if done.Records.Read != len(test.lines)+1 {
				t.Errorf("%+v", done)
			}
			if test.talk == "none" {
				if done.Sessions.New != 1 {
					t.Errorf("%+v", done)
				}
				return
			}
			s := h.Session(id)
			if got := h.Talk(s); got != test.talk {
				t.Errorf("path %q", got)
			}
			if test.count > 0 && int(s.MessageCount) != test.count {
				t.Errorf("%d messages", s.MessageCount)
			}
			h.Unchanged(path)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(user("1", "", "a") + "\n" + says("2", "1", "m", text("b"), "") + "\n" +
		says("3", "2", "m", call("c"), "tool_use") + "\n" + result("4", "3", "c", "x") + "\n"))
	f.Add([]byte(`{"type":"system","subtype":"compact_boundary","uuid":"1","sessionId":"s","logicalParentUuid":"0"}` + "\n" + `{"type":"user","isCompactSummary":true,"uuid":"2","parentUuid":"1","message":{"role":"user","content":"s"}}` + "\n"))
	f.Add([]byte(`{"type":"queue-operation","operation":"enqueue","content":"x"}` + "\n" + `{"type":"queue-operation","operation":"remove"}` + "\n" + user("1", "", "a") + "\n{"))
	f.Add([]byte(`{"type":"progress","uuid":"1","sessionId":"s","data":{"type":"agent_progress","agentId":"a","message":{"type":"assistant","uuid":"2","message":{"id":"m","role":"assistant","content":[]}}}}` + "\n"))
	f.Add([]byte(`{"type":"user","isSidechain":true,"uuid":"1","sessionId":"s","message":{"role":"user","content":"\ud800"}}` + "\n" + `{"type":"attachment","uuid":"3","parentUuid":"1","attachment":{"type":"queued_command","prompt":"x"}}` + "\n"))
	historytest.FuzzRead(f, quiet(), claudecode.New(historytest.NoEnv, time.Now))
}

func BenchmarkRead(b *testing.B) {
	historytest.BenchmarkRead(b, quiet(), sample(b, "entire-2.1.5-compaction-summaries.jsonl"))
}
