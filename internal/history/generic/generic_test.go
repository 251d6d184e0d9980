package generic_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/generic"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return generic.New(now) }

const (
	asked    = `{"role": "user", "content": "one", "timestamp": "2026-02-11T10:00:15Z"}`
	answered = `{"role": "assistant", "content": "first", "timestamp": "2026-02-11T10:00:22Z", "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}`
	openAI   = `{"custom_id": "c1", "messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a.go\"}"}}]}, {"role": "tool", "tool_call_id": "t1", "content": "package a"}]}`
	claude   = `{"id": "c2", "system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": "three"}]}, {"role": "assistant", "content": [{"type": "tool_use", "id": "u1", "name": "bash", "input": {"command": "ls"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "a.go"}]}]}`
	tables   = `CREATE TABLE sessions (id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP, total_tokens INTEGER, message_count INTEGER, metadata JSON);
		CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_calls JSON, tokens INTEGER, timestamp TIMESTAMP);
		INSERT INTO sessions VALUES ('20260211_001', '2026-02-11 10:00:00', '2026-02-11 10:00:22', 20, 2, '{}');
		INSERT INTO messages (session_id, role, content, tool_calls, tokens, timestamp) VALUES
			('20260211_001', 'user', 'four', '[]', 10, '2026-02-11 10:00:15'), ('20260211_001', 'assistant', 'fourth', '[]', 10, '2026-02-11 10:00:22');`
)

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 4, Lines: true, Make: func(t *testing.T, folder string) {
		h := historytest.New(t, source(historytest.Later))
		h.Rewrite(filepath.Join(folder, "20260211_001.jsonl"), asked, answered)
		h.Rewrite(filepath.Join(folder, "openai.jsonl"), openAI)
		h.Rewrite(filepath.Join(folder, "claude.jsonl"), claude)
		h.Rewrite(filepath.Join(folder, "list.json"), "["+strings.Replace(asked, "one", "five", 1)+"]")
		h.Load(filepath.Join(folder, "sessions.db"), tables)
	}}
	claims.Hold(t)
}

func TestEachFormIsRead(t *testing.T) {
	for name, test := range map[string]struct{ text, talk string }{
		"lines.jsonl":  {asked + "\n" + answered + "\n", "user: one\nassistant: first"},
		"openai.jsonl": {openAI + "\n", "user: two\nassistant: (read_file)\ntool: package a"},
		"claude.jsonl": {claude + "\n", "user: three\nassistant: (bash)\ntool: a.go"},
		"list.json":    {"[\n" + asked + ",\n" + answered + "\n]", "user: one\nassistant: first"},
		"talk.json":    {`{"messages": [` + asked + `]}`, "user: one"},
	} {
		h := historytest.New(t, source(historytest.Later))
		path := h.Write(name)
		h.Append(path, test.text)
		if done := h.Import(path); len(done.Errors) > 0 || len(h.Sessions()) != 1 {
			t.Fatalf("%s: %+v", name, done)
		}
		if got := h.Talk(h.Sessions()[0]); got != test.talk {
			t.Errorf("%s: %q", name, got)
		}
		h.Examine()
	}
}

func TestDatabaseIsRead(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Load(filepath.Join(t.TempDir(), "sessions.db"), tables)
	if done := h.Import(path); len(done.Errors) > 0 {
		t.Errorf("%+v", done)
	}
	s := h.Session("20260211_001")
	begun := s.CreatedAt.Format(time.DateTime)
	if got := h.Talk(s); got != "user: four\nassistant: fourth" || begun != "2026-02-11 10:00:00" {
		t.Errorf("%q %s", got, begun)
	}
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("20260211_001")) // an estimate is no usage
	h.Change(path, `INSERT INTO messages (session_id, role, content) VALUES ('20260211_001', 'user', 'more')`)
	h.Import(path)
	if got := h.Talk(h.Session("20260211_001")); !strings.HasSuffix(got, "user: more") {
		t.Errorf("%q", got)
	}
}

func TestUsageAndTimesAreThoseOfTheFile(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Import(h.Write("a.jsonl", asked, answered))
	s := h.Sessions()[0]
	want := historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 5, CacheRead: 4, Output: 3}
	testkit.Equal(t, want, h.CountsOf(s.SourceID))
}

func TestMappingSaysWhatIsNamedOtherwise(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	path := h.Write("a.jsonl", `{"who":"me","said":"one","when":1770804015,"thread":"t1"}`,
		`{"who":"bot","said":"first","thread":"t1"}`)
	if done := h.Import(path); len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, generic.MappingName) {
		t.Errorf("%+v", done)
	}
	h.Rewrite(filepath.Join(filepath.Dir(path), generic.MappingName),
		`{"role":"who","content":"said","timestamp":"when","session":"thread"}`)
	h.Append(path, `{"who":"me","said":"more","thread":"t1"}`+"\n")
	h.Import(path)
	if got := h.Talk(h.Session("t1")); got != "user: one\nassistant: first\nuser: more" {
		t.Errorf("%q", got)
	}
}

func TestWrongFiles(t *testing.T) {
	for what, test := range map[string]struct {
		text, says string
		sessions   int
	}{
		"no message":     {`{"hello":"world"}` + "\n", "no conversation", 0},
		"text":           {"hello\n", "no conversation", 0},
		"a broken line":  {asked + "\n{\"torn\":\n" + answered + "\n", "kept raw", 1},
		"an odd message": {asked + "\n" + `{"role":"robot","content":7}` + "\n", "kept raw", 1},
		"a cut list":     {"[" + asked + ",", "cut off", 0},
		"twice":          {asked + "\n" + asked + "\n", "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := h.Write("x.jsonl")
			h.Append(path, test.text)
			done := h.Import(path)
			h.Gave(done, test.sessions, test.says)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(asked + "\n" + answered))
	f.Add([]byte(openAI))
	historytest.FuzzRead(f, source(historytest.Later))
}
