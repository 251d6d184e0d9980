package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/codex"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func meta(id, more string) string {
	return strings.Replace(strings.Replace(header, `"id":"one"`, `"id":"`+id+`"`, 1), `"source":"cli"`, more, 1)
}

func tokenCount(input, total int) string {
	return event(fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d}}}`, total, total, input, input))
}

// context returns what the model would see at the head: the overlay's summary and copies, then
// what follows it.
func (h *house) context(s session.Session) string {
	h.Helper()
	effective, err := h.Store.Effective(h.Context(), s)
	if err != nil {
		h.Fatal(err)
	}
	if effective == nil {
		return "none"
	}
	got, behind := "summary "+effective.Summary+" | "+string(effective.Replacement), false
	for _, m := range h.Path(s) {
		if behind && m.InContext {
			got += " | " + string(m.Role) + ": " + m.Text()
		}
		behind = behind || m.RowID == *effective.ThroughID
	}
	return got
}

func TestCompactionIsAnOverlay(t *testing.T) {
	for _, test := range []struct{ name, record, want string }{
		{
			"with the history that replaces it", `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"So far.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"So far."}]}]}}`,
			`summary So far. | [{"kind":"message","role":"user","origin":"program","dialect":"openai.responses","parts":[{"kind":"text","text":"kept","tokens":0,"extra":{"item":{"type":"message"}}}]}] | user: next`,
		},
		{
			"with a summary that only the provider reads", `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"compaction","encrypted_content":"b3Bh"}]}}`,
			`summary  | [{"kind":"message","role":"assistant","origin":"model","dialect":"openai.responses","parts":[{"kind":"data","tokens":0,"extra":{"item":{"type":"compaction","encrypted_content":"b3Bh"},"type":"compaction"}}]}] | user: next`,
		},
		{
			"that says only its summary", `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"So far."}}`,
			`summary So far. | [{"kind":"message","role":"user","origin":"program","parts":[{"kind":"text","text":"first","tokens":0}]},{"kind":"message","role":"user","origin":"program","parts":[{"kind":"text","text":"second","tokens":0}]}] | user: next`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.Write("rollout.jsonl", header, says("user", "first"), says("assistant", "a"), says("user", "second"),
				says("assistant", "b"))
			h.Import(path)
			h.Append(path, test.record+"\n"+event(`{"type":"context_compacted"}`)+"\n"+says("user", "next")+"\n")
			done := h.Import(path)
			if got := h.context(h.Session("one")); got != test.want {
				t.Errorf("context %s", got)
			}
			if done.Records.Skipped["event that repeats an item"] != 1 {
				t.Errorf("%+v", done.Records)
			}
			h.unchanged(path)
		})
	}
}

// A roll-back behind a compaction brings the context before it back.
func TestRollBackBehindACompaction(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write("rollout.jsonl", header, says("user", "first"), says("assistant", "a"), says("user", "second"),
		says("assistant", "b"),
		`{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"So far.","replacement_history":[]}}`,
		says("user", "third"), event(`{"type":"thread_rolled_back","num_turns":2}`), says("user", "other")))
	s := h.Session("one")
	if got := h.context(s); got != "none" {
		t.Errorf("context %s", got)
	}
	if got := h.Talk(s); got != "user: first\nassistant: a\nuser: other" {
		t.Errorf("path\n%s", got)
	}
}

func TestCallsSayHowTheyRan(t *testing.T) {
	h := newHouse(t)
	at := func(line, seconds string) string { return strings.Replace(line, "10:00:01.000", "10:00:"+seconds, 1) }
	call := func(id string) string {
		return at(item(`{"type":"function_call","call_id":"`+id+`","name":"exec_command","arguments":"{\"cmd\":\"cat a.go\"}"}`), "10.000")
	}
	answer := func(id, output string) string {
		return at(item(`{"type":"function_call_output","call_id":"`+id+`","output":`+string(session.JSONOf(output))+`}`),
			"12.500")
	}
	h.Import(h.Write("rollout.jsonl", header, says("user", "go"), call("1"), call("2"), call("3"),
		answer("1", `{"output":"x","metadata":{"exit_code":2,"duration_seconds":0.25}}`),
		answer("2", "Chunk ID: 7\nWall time: 1.5 seconds\nProcess exited with code 0\nOutput:\nx"), answer("3", "plain")))
	var got []string
	for _, m := range h.Path(h.Session("one")) {
		for _, p := range m.Results() {
			failed := "?"
			if p.IsError != nil {
				failed = fmt.Sprint(*p.IsError)
			}
			got = append(got, fmt.Sprintf("%s %d %s", p.CallID, *p.DurationMS, failed))
		}
	}
	if fmt.Sprint(got) != "[1 250 true 2 1500 false 3 2500 ?]" {
		t.Errorf("%v", got)
	}
	var file string
	if err := h.Store.Reader().Get(&file, `SELECT path || ' ' || op FROM touched_files`); err != nil ||
		file != "/proj/a.go read" {
		t.Errorf("touched %q, %v", file, err)
	}
}

// A file without items is the conversation that its events tell.
func TestFromEvents(t *testing.T) {
	h := newHouse(t)
	path := h.Write("rollout.jsonl", header, event(`{"type":"user_message","message":"hello"}`),
		event(`{"type":"agent_reasoning","text":"hm"}`), event(`{"type":"agent_message","message":"hi"}`), tokenCount(5, 5))
	h.Import(path)
	s := h.Session("one")
	if got := h.Talk(s); got != "user: hello\nassistant: \nassistant: hi" || s.Title != "" || s.InputTokens != 5 {
		t.Errorf("path\n%s\n%+v", got, s)
	}
	h.unchanged(path)
}

const (
	parentID = "019a0000-0000-7000-8000-0000000000a1"
	childID  = "019b0000-0000-7000-8000-0000000000c1"
)

// A sub-agent is a child. What it inherited is kept for what its model saw, and costs nothing.
func TestSubagentIsAChild(t *testing.T) {
	for _, test := range []struct {
		name, header string
		lines        []string
	}{
		{"of a spawn", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID +
			`","depth":1,"agent_nickname":"Scout"}}}`, nil},
		{"named by its parent", `"source":"cli","thread_source":"subagent","parent_thread_id":"` + parentID + `","agent_nickname":"Scout"`, nil},
		{"with a copied beginning", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID +
			`","depth":1,"agent_nickname":"Scout"}}},"forked_from_id":"` + parentID + `"`, []string{
			meta(parentID, `"source":"cli"`), says("user", "start"), says("assistant", "started"), tokenCount(100, 100),
			event(`{"type":"task_started","turn_id":"019b0001-0000-7000-8000-000000000001"}`),
		}},
		{"with a numbered beginning", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID + `","depth":1,"agent_nickname":"Scout"}}},"subagent_history_start_ordinal":3`, []string{
			strings.Replace(says("user", "start"), `{"timestamp"`, `{"ordinal":1,"timestamp"`, 1),
			strings.Replace(tokenCount(100, 100), `{"timestamp"`, `{"ordinal":2,"timestamp"`, 1),
			strings.Replace(event(`{"type":"task_started","turn_id":"t"}`), `{"timestamp"`, `{"ordinal":3,"timestamp"`, 1),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("rollout-2026-03-01T10-00-00-"+parentID+".jsonl", meta(parentID, `"source":"cli"`),
				says("user", "start"), says("assistant", "started"), tokenCount(100, 100)))
			lines := append([]string{meta(childID, test.header)}, test.lines...)
			total := 7
			if test.lines != nil {
				total = 107
			}
			lines = append(lines, says("user", "look around"), says("assistant", "seen"), tokenCount(7, total))
			path := h.Write("rollout-2026-03-02T10-00-00-"+childID+".jsonl", lines...)
			done := h.Import(path)
			parent, child := h.Session(parentID), h.Session(childID)
			if child.ParentID != parent.ID || child.ParentKind != session.ParentChild || child.Kind != "subagent" ||
				child.InputTokens != 7 || !strings.HasPrefix(child.Title, "Scout") {
				t.Errorf("%+v\n%+v", child, done)
			}
			if got := h.Talk(child); got != "user: look around\nassistant: seen" {
				t.Errorf("path\n%s", got)
			}
			for _, m := range h.Entries(child.ID) {
				if m.Origin == session.Person {
					t.Errorf("nobody typed %q", m.Text())
				}
			}
			h.unchanged(path)
		})
	}
}

// A fork of a fork finds its beginning in both, in any order of import.
func TestForkOfAFork(t *testing.T) {
	h := newHouse(t)
	defer h.Examine()
	first := []string{says("user", "one"), says("assistant", "1"), tokenCount(10, 10)}
	second := []string{says("user", "two"), says("assistant", "2"), tokenCount(20, 30)}
	third := []string{says("user", "three"), says("assistant", "3"), tokenCount(40, 70)}
	write := func(id, origin string, parts ...[]string) string {
		lines := []string{meta(id, `"source":"cli"`)}
		if origin != "" {
			lines = []string{meta(id, `"source":"cli","forked_from_id":"`+origin+`"`), meta(origin, `"source":"cli"`)}
		}
		for _, part := range parts {
			lines = append(lines, part...)
		}
		return h.Write("rollout-"+id+".jsonl", lines...)
	}
	h.Import(write("a", "", first))
	h.Import(write("b", "a", first, second))
	last := write("c", "b", first, second, third)
	h.Import(last)
	a, b, c := h.Session("a"), h.Session("b"), h.Session("c")
	if b.ParentID != a.ID || c.ParentID != b.ID || a.InputTokens != 10 || b.InputTokens != 20 || c.InputTokens != 40 ||
		b.MessageCount != 2 || c.MessageCount != 2 {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
	if got := h.Talk(c); got != "user: one\nassistant: 1\nuser: two\nassistant: 2\nuser: three\nassistant: 3" {
		t.Errorf("path\n%s", got)
	}
	h.unchanged(last)
	h.Append(last, says("user", "onward")+"\n")
	if h.Import(last); !strings.HasSuffix(h.Talk(h.Session("c")), "3\nuser: onward") {
		t.Errorf("path\n%s", h.Talk(h.Session("c")))
	}
	// A fork that copied only a part, and said nothing yet.
	h.Import(write("d", "a", []string{first[0]}))
	if d := h.Session("d"); d.MessageCount != 0 || h.Talk(d) != "user: one" {
		t.Errorf("%+v\n%s", d, h.Talk(d))
	}
}

func TestReplyThatIsBeingWrittenWaits(t *testing.T) {
	h := newHouse(t)
	h.Source = codex.New(historytest.NoEnv, time.Now)
	path := h.Write("rollout.jsonl", header, says("user", "a"), event(`{"type":"user_message","message":"a"}`),
		item(`{"type":"reasoning","summary":[]}`))
	if h.Import(path); h.Talk(h.Session("one")) != "user: a" {
		t.Errorf("path\n%s", h.Talk(h.Session("one")))
	}
	rows := h.Rows()
	if h.Import(path); h.Rows() != rows {
		t.Error("waiting wrote something")
	}
	h.Append(path, says("assistant", "b")+"\n"+tokenCount(5, 5)+"\n")
	h.Import(path)
	if s := h.Session("one"); h.Talk(s) != "user: a\nassistant: b" || len(h.Path(s)[1].Parts) != 2 {
		t.Errorf("path\n%s", h.Talk(s))
	}
	h.Append(path, says("user", "c")+"\n"+event(`{"type":"user_message","message":"c"}`)+"\n"+says("assistant",
		"end")+"\n")
	future := time.Now().Add(240 * time.Hour)
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	if h.Import(path); h.Talk(h.Session("one")) != "user: a\nassistant: b\nuser: c\nassistant: end" {
		t.Errorf("a file from the future is not waited for:\n%s", h.Talk(h.Session("one")))
	}
}

func TestKilledImportGoesOn(t *testing.T) {
	lines := []string{header}
	for i := range 800 {
		lines = append(lines, says("user", fmt.Sprint("say ", i%7)), says("assistant", fmt.Sprint("said ", i%5)),
			tokenCount(3, 3*(i+1)))
	}
	historytest.KilledImportGoesOn(t, quiet(), newHouse(t).Write("rollout.jsonl", lines...), 0, 1)
}

// A paginated fork copies nothing: it says where in which rollout its beginning ends. A chain of
// them, and a circle, end. Two records of the origin are on one line.
func TestForkByReference(t *testing.T) {
	const third = "019d0000-0000-7000-8000-0000000000d1"
	numbered := func(n int, line string) string {
		return strings.Replace(line, `{"timestamp"`, fmt.Sprintf(`{"ordinal":%d,"timestamp"`, n), 1)
	}
	base := func(id string, n int) string {
		return fmt.Sprintf(`"source":"cli","history_mode":"paginated","forked_from_id":"%s","history_base":{"thread_id":"%s","end_ordinal_exclusive":%d}`, id, id, n)
	}
	dir := t.TempDir()
	file := func(id string) string { return filepath.Join(dir, "rollout-2026-09-01T00-00-00-"+id+".jsonl") }
	h := newHouse(t)
	defer h.Examine()
	h.Rewrite(file(parentID), numbered(0, meta(parentID, `"source":"cli","history_mode":"paginated"`)),
		numbered(1, says("user", "one"))+numbered(2, says("assistant", "1")), numbered(3, tokenCount(10, 10)),
		numbered(4, says("user", "left")))
	h.Rewrite(file(childID), numbered(4, meta(childID, base(parentID, 4))), numbered(5, says("user", "two")),
		numbered(6, says("assistant", "2")), numbered(7, tokenCount(20, 30)))
	h.Rewrite(file(third), numbered(8, meta(third, base(childID, 8))), numbered(9, says("user", "three")),
		numbered(10, tokenCount(40, 70)))
	done := h.Import(dir)
	a, b, c := h.Session(parentID), h.Session(childID), h.Session(third)
	if b.ParentID != a.ID || c.ParentID != b.ID || a.InputTokens != 10 || b.InputTokens != 20 || c.InputTokens != 40 ||
		len(done.Errors) != 0 {
		t.Errorf("%+v\n%+v\n%+v", done, b, c)
	}
	if got := h.Talk(c); got != "user: one\nassistant: 1\nuser: two\nassistant: 2\nuser: three" {
		t.Errorf("path\n%s", got)
	}
	rows := h.Rows()
	if again := h.Import(dir); again.Records.Read != 0 || h.Rows() != rows {
		t.Errorf("%+v", again)
	}
	// Two files that name one another.
	h.Rewrite(file(parentID), numbered(0, meta("x", base(childID, 9))), numbered(1, says("user", "round")))
	h.Rewrite(file(childID), numbered(0, meta("y", base(parentID, 9))), numbered(1, says("user", "and round")))
	if done := h.Import(dir); len(done.Errors) == 0 || h.Talk(h.Session("y")) == "" {
		t.Errorf("%+v", done)
	}
}

// A sub-agent that begins with a part of what its parent has does not count that again, though neither its turns nor
// its times tell where the copies end: they follow one another in the parent, too.
func TestCopiesOfASubagentAreInherited(t *testing.T) {
	parent := []string{
		meta(parentID, `"source":"cli"`), says("developer", "rules"), says("user", "start"),
		item(`{"type":"reasoning","summary":[]}`),
		item(`{"type":"function_call","call_id":"c","name":"exec_command","arguments":"{}"}`), item(`{"type":"function_call_output","call_id":"c","output":"x"}`),
		tokenCount(100, 100), says("assistant", "started"), tokenCount(50, 150), says("user", "more"),
		says("assistant", "done"),
	}
	head := meta(childID,
		`"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+parentID+`","depth":1}}},"forked_from_id":"`+parentID+`"`)
	id := func(line string) string { // as it is written again
		return strings.Replace(line, `"role"`, `"id":"msg_1","internal_chat_message_metadata_passthrough":{"turn_id":"t"},"role"`, 1)
	}
	for _, test := range []struct {
		name   string
		copied []string
		total  int // of the tokens that the parent counted
	}{
		{"all of it", parent, 150},
		{"messages and answers alone", []string{
			id(parent[1]), id(parent[2]), parent[6], id(parent[7]), parent[8],
			id(parent[9]),
		}, 150},
		{"from its middle", []string{parent[2], parent[7], parent[8]}, 150},
		{"nothing", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("rollout-2026-03-01T10-00-00-"+parentID+".jsonl", parent...))
			lines := append([]string{head}, test.copied...)
			lines = append(lines, event(`{"type":"task_started","turn_id":"t-1"}`), says("user", "look around"),
				says("assistant", "seen"), tokenCount(7, test.total+7))
			path := h.Write("rollout-2026-03-02T10-00-00-"+childID+".jsonl", lines...)
			h.Import(path)
			child := h.Session(childID)
			if child.InputTokens != 7 || len(h.Calls(child.ID)) != 1 || child.Title != "look around" {
				t.Errorf("%d tokens, %d calls, title %q", child.InputTokens, len(h.Calls(child.ID)), child.Title)
			}
			if got := h.Talk(child); got != "user: look around\nassistant: seen" {
				t.Errorf("path\n%s", got)
			}
			h.unchanged(path)
			h.Examine()
		})
	}
}

// The text of a compaction stands as a reply before its record. It is no reply to the person: newer versions mark it,
// of older ones the record repeats it.
func TestTextOfACompactionIsNoReply(t *testing.T) {
	const record = `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted",` +
		`"payload":{"message":"Found out so far:\nSo far."}}`
	marked := strings.Replace(says("assistant", "So far."), `"payload":`, `"metadata":{"compaction_output":true},"payload":`, 1)
	for name, lines := range map[string][]string{
		"marked":                          {marked},
		"marked, with its record":         {marked, record},
		"repeated by the record":          {says("assistant", "So far."), record},
		"repeated, behind the accounting": {says("assistant", "So far."), event(`{"type":"token_count","info":null}`), record},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("rollout.jsonl", append([]string{
				header, says("user", "first"), says("assistant", "So far."), says("user", "second"),
			}, lines...)...))
			s := h.Session("one")
			var said []string
			for _, m := range h.Path(s) {
				if m.Role == session.Assistant {
					said = append(said, string(m.Talk)+" "+m.Text())
				}
			}
			testkit.Equal(t, []string{"said So far.", "work So far."}, said)
			h.Examine()
		})
	}
}
