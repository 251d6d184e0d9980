package codex_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/history/codex"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

func meta(id, more string) string {
	return strings.Replace(strings.Replace(header, `"id":"one"`, `"id":"`+id+`"`, 1), `"source":"cli"`, more, 1)
}

func tokenCount(input, total int) string {
	return event(fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d}}}`, total, total, input, input))
}

// context gives what the model would see at the head: the overlay's summary and copies, then
// what follows it.
func (h *house) context(s session.Session) string {
	h.Helper()
	effective, err := h.store.Effective(h.Context(), s)
	if err != nil {
		h.Fatal(err)
	}
	if effective == nil {
		return "none"
	}
	got, behind := "summary "+effective.Summary+" | "+string(effective.Replacement), false
	for _, m := range h.path(s) {
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
			path := h.write("rollout.jsonl", header, says("user", "first"), says("assistant", "a"), says("user", "second"), says("assistant", "b"))
			h.run(path)
			h.append(path, test.record+"\n"+event(`{"type":"context_compacted"}`)+"\n"+says("user", "next")+"\n")
			done := h.run(path)
			if got := h.context(h.session("one")); got != test.want {
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
	h.run(h.write("rollout.jsonl", header, says("user", "first"), says("assistant", "a"), says("user", "second"), says("assistant", "b"),
		`{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"So far.","replacement_history":[]}}`,
		says("user", "third"), event(`{"type":"thread_rolled_back","num_turns":2}`), says("user", "other")))
	s := h.session("one")
	if got := h.context(s); got != "none" {
		t.Errorf("context %s", got)
	}
	if got := h.talk(s); got != "user: first\nassistant: a\nuser: other" {
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
		return at(item(`{"type":"function_call_output","call_id":"`+id+`","output":`+string(session.JSONOf(output))+`}`), "12.500")
	}
	h.run(h.write("rollout.jsonl", header, says("user", "go"), call("1"), call("2"), call("3"),
		answer("1", `{"output":"x","metadata":{"exit_code":2,"duration_seconds":0.25}}`),
		answer("2", "Chunk ID: 7\nWall time: 1.5 seconds\nProcess exited with code 0\nOutput:\nx"), answer("3", "plain")))
	var got []string
	for _, m := range h.path(h.session("one")) {
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
	if err := h.store.Reader().Get(&file, `SELECT path || ' ' || op FROM touched_files`); err != nil || file != "/proj/a.go read" {
		t.Errorf("touched %q, %v", file, err)
	}
}

// A file without items is the conversation that its events tell.
func TestFromEvents(t *testing.T) {
	h := newHouse(t)
	path := h.write("rollout.jsonl", header, event(`{"type":"user_message","message":"hello"}`), event(`{"type":"agent_reasoning","text":"hm"}`), event(`{"type":"agent_message","message":"hi"}`), tokenCount(5, 5))
	h.run(path)
	s := h.session("one")
	if got := h.talk(s); got != "user: hello\nassistant: \nassistant: hi" || s.Title != "hello" || s.InputTokens != 5 {
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
		{"of a spawn", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID + `","depth":1,"agent_nickname":"Scout"}}}`, nil},
		{"named by its parent", `"source":"cli","thread_source":"subagent","parent_thread_id":"` + parentID + `","agent_nickname":"Scout"`, nil},
		{"with a copied beginning", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID + `","depth":1,"agent_nickname":"Scout"}}},"forked_from_id":"` + parentID + `"`, []string{
			meta(parentID, `"source":"cli"`), says("user", "start"), says("assistant", "started"), tokenCount(100, 100),
			event(`{"type":"task_started","turn_id":"019b0001-0000-7000-8000-000000000001"}`),
		}},
		{"with a numbered beginning", `"source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parentID + `","depth":1,"agent_nickname":"Scout"}}},"subagent_history_start_ordinal":3`, []string{
			strings.Replace(says("user", "start"), `{"timestamp"`, `{"ordinal":1,"timestamp"`, 1), strings.Replace(tokenCount(100, 100), `{"timestamp"`, `{"ordinal":2,"timestamp"`, 1),
			strings.Replace(event(`{"type":"task_started","turn_id":"t"}`), `{"timestamp"`, `{"ordinal":3,"timestamp"`, 1),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.run(h.write("rollout-2026-03-01T10-00-00-"+parentID+".jsonl", meta(parentID, `"source":"cli"`), says("user", "start"), says("assistant", "started"), tokenCount(100, 100)))
			lines := append([]string{meta(childID, test.header)}, test.lines...)
			total := 7
			if test.lines != nil {
				total = 107
			}
			lines = append(lines, says("user", "look around"), says("assistant", "seen"), tokenCount(7, total))
			path := h.write("rollout-2026-03-02T10-00-00-"+childID+".jsonl", lines...)
			done := h.run(path)
			parent, child := h.session(parentID), h.session(childID)
			if child.ParentID != parent.ID || child.ParentKind != session.ParentChild || child.Kind != "subagent" || child.InputTokens != 7 || !strings.HasPrefix(child.Title, "Scout") {
				t.Errorf("%+v\n%+v", child, done)
			}
			if got := h.talk(child); got != "user: look around\nassistant: seen" {
				t.Errorf("path\n%s", got)
			}
			for _, m := range h.entries(child.ID) {
				if m.Origin == session.Person {
					t.Errorf("nobody typed %q", m.Text())
				}
			}
			h.unchanged(path)
		})
	}
}

// A fork of a fork finds its beginning in both; whoever comes first.
func TestForkOfAFork(t *testing.T) {
	h := newHouse(t)
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
		return h.write("rollout-"+id+".jsonl", lines...)
	}
	h.run(write("a", "", first))
	h.run(write("b", "a", first, second))
	last := write("c", "b", first, second, third)
	h.run(last)
	a, b, c := h.session("a"), h.session("b"), h.session("c")
	if b.ParentID != a.ID || c.ParentID != b.ID || a.InputTokens != 10 || b.InputTokens != 20 || c.InputTokens != 40 || b.MessageCount != 2 || c.MessageCount != 2 {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
	if got := h.talk(c); got != "user: one\nassistant: 1\nuser: two\nassistant: 2\nuser: three\nassistant: 3" {
		t.Errorf("path\n%s", got)
	}
	h.unchanged(last)
	h.append(last, says("user", "onward")+"\n")
	if h.run(last); !strings.HasSuffix(h.talk(h.session("c")), "3\nuser: onward") {
		t.Errorf("path\n%s", h.talk(h.session("c")))
	}
	// A fork that copied only a part, and said nothing yet.
	h.run(write("d", "a", []string{first[0]}))
	if d := h.session("d"); d.MessageCount != 0 || h.talk(d) != "user: one" {
		t.Errorf("%+v\n%s", d, h.talk(d))
	}
}

func TestReplyThatIsBeingWrittenWaits(t *testing.T) {
	h := newHouse(t)
	h.source = codex.New(noEnv, time.Now)
	path := h.write("rollout.jsonl", header, says("user", "a"), event(`{"type":"user_message","message":"a"}`), item(`{"type":"reasoning","summary":[]}`))
	if h.run(path); h.talk(h.session("one")) != "user: a" {
		t.Errorf("path\n%s", h.talk(h.session("one")))
	}
	rows := h.rows()
	if h.run(path); h.rows() != rows {
		t.Error("waiting wrote something")
	}
	h.append(path, says("assistant", "b")+"\n"+tokenCount(5, 5)+"\n")
	h.run(path)
	if s := h.session("one"); h.talk(s) != "user: a\nassistant: b" || len(h.path(s)[1].Parts) != 2 {
		t.Errorf("path\n%s", h.talk(s))
	}
	h.append(path, says("user", "c")+"\n"+event(`{"type":"user_message","message":"c"}`)+"\n"+says("assistant", "end")+"\n")
	future := time.Now().Add(240 * time.Hour)
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	if h.run(path); h.talk(h.session("one")) != "user: a\nassistant: b\nuser: c\nassistant: end" {
		t.Errorf("a file from the future is not waited for:\n%s", h.talk(h.session("one")))
	}
}

// stops is a store that fails after some batches, as if the program were killed.
type stops struct {
	*store.Store
	left int
}

func (s *stops) Import(ctx context.Context, b store.ImportBatch) (store.ImportResult, error) {
	if s.left--; s.left < 0 {
		return store.ImportResult{}, errors.New("killed")
	}
	return s.Store.Import(ctx, b)
}

func TestKilledImportGoesOn(t *testing.T) {
	lines := []string{header}
	for i := range 800 {
		lines = append(lines, says("user", fmt.Sprint("say ", i%7)), says("assistant", fmt.Sprint("said ", i%5)), tokenCount(3, 3*(i+1)))
	}
	whole := newHouse(t)
	path := whole.write("rollout.jsonl", lines...)
	all := whole.run(path)
	for killed := range 2 {
		h := newHouse(t)
		h.importer.Store = &stops{h.store, killed}
		if _, err := h.importer.Run(t.Context(), h.source, []string{path}); err == nil {
			t.Fatal("it was not killed")
		}
		h.importer = history.Importer{Store: h.store, Pause: -1}
		done := h.run(path)
		if diff := cmp.Diff(whole.told(), h.told()); diff != "" {
			t.Errorf("killed after %d batches: -whole +again\n%.2000s", killed, diff)
		}
		if done.Records.Read != all.Records.Read {
			t.Errorf("%+v", done)
		}
	}
}

// A paginated fork copies nothing: it says where in which rollout its beginning ends. A chain of
// them, and a circle, end.
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
	h.rewrite(file(parentID), numbered(0, meta(parentID, `"source":"cli","history_mode":"paginated"`)),
		numbered(1, says("user", "one")), numbered(2, says("assistant", "1")), numbered(3, tokenCount(10, 10)), numbered(4, says("user", "left")))
	h.rewrite(file(childID), numbered(4, meta(childID, base(parentID, 4))), numbered(5, says("user", "two")), numbered(6, says("assistant", "2")), numbered(7, tokenCount(20, 30)))
	h.rewrite(file(third), numbered(8, meta(third, base(childID, 8))), numbered(9, says("user", "three")), numbered(10, tokenCount(40, 70)))
	done := h.run(dir)
	a, b, c := h.session(parentID), h.session(childID), h.session(third)
	if b.ParentID != a.ID || c.ParentID != b.ID || a.InputTokens != 10 || b.InputTokens != 20 || c.InputTokens != 40 || len(done.Errors) != 0 {
		t.Errorf("%+v\n%+v\n%+v", done, b, c)
	}
	if got := h.talk(c); got != "user: one\nassistant: 1\nuser: two\nassistant: 2\nuser: three" {
		t.Errorf("path\n%s", got)
	}
	rows := h.rows()
	if again := h.run(dir); again.Records.Read != 0 || h.rows() != rows {
		t.Errorf("%+v", again)
	}
	// Two files that name one another.
	h.rewrite(file(parentID), numbered(0, meta("x", base(childID, 9))), numbered(1, says("user", "round")))
	h.rewrite(file(childID), numbered(0, meta("y", base(parentID, 9))), numbered(1, says("user", "and round")))
	if done := h.run(dir); len(done.Errors) == 0 || h.talk(h.session("y")) == "" {
		t.Errorf("%+v", done)
	}
}
