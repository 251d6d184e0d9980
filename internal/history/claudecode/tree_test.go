package claudecode_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"
)

// Calls that run side by side hang their results beside one another; the path holds them all.
func TestParallelCallsStandOnOnePath(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"results behind all calls", []string{
			says("a1", "u", "m", call("1"), ""), says("a2", "a1", "m", call("2"), "tool_use"),
			result("r1", "a1", "1", "one"), result("r2", "a2", "2", "two"), says("b", "r2", "n", text("done"), "end_turn"),
		}, "user: go\nassistant: (Bash)(Bash)\ntool: one\ntool: two\nassistant: done"},
		{"the next reply hangs on the first result", []string{
			says("a1", "u", "m", call("1"), ""), says("a2", "a1", "m", call("2"), "tool_use"),
			result("r1", "a1", "1", "one"), result("r2", "a2", "2", "two"), says("b", "r1", "n", text("done"), "end_turn"),
		}, "user: go\nassistant: (Bash)(Bash)\ntool: one\ntool: two\nassistant: done"},
		{"a result before the next call", []string{
			says("a1", "u", "m", call("1"), ""), result("r1", "a1", "1", "one"),
			says("a2", "a1", "m", call("2"), "tool_use"), result("r2", "a2", "2", "two"),
			says("b", "r2", "n", text("done"), "end_turn"),
		}, "user: go\nassistant: (Bash)\ntool: one\nassistant: (Bash)\ntool: two\nassistant: done"},
		{"hooks and states between", []string{
			says("a1", "u", "m", call("1"), ""), `{"type":"progress","uuid":"p","parentUuid":"a1","data":{"type":"hook_progress"}}`,
			says("a2", "p", "m", call("2"), "tool_use"), `{"type":"file-history-snapshot","messageId":"a1","snapshot":{}}`,
			result("r1", "a1", "1", "one"), `{"type":"mode","mode":"plan"}`, result("r2", "a2", "2", "two"),
			says("b", "r2", "n", text("done"), "end_turn"),
		}, "user: go\nassistant: (Bash)(Bash)\ntool: one\ntool: two\nassistant: done"},
		{"what was typed anew is a branch", []string{
			says("a", "u", "m", text("first"), "end_turn"), user("v", "a", "no"), says("b", "v", "n", text("left"), "end_turn"),
			`{"type":"system","subtype":"turn_duration","durationMs":1,"uuid":"d","parentUuid":"b"}`, user("w", "a", "yes"), says("c", "w", "o", text("taken"), "end_turn"),
		}, "user: go\nassistant: first\nuser: yes\nassistant: taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write(id+".jsonl", append([]string{user("u", "", "go")}, test.lines...)...))
			s := h.Session(id)
			if got := h.Talk(s); got != test.want {
				t.Errorf("path\n%s", got)
			}
			if s.OutputTokens != int64(7*strings.Count(test.want+"\n", "assistant: d")+7) &&
				!strings.Contains(test.name, "anew") {
				t.Errorf("%d output tokens: a response counts once", s.OutputTokens)
			}
		})
	}
}

// Older versions repeat the rows of the session that is resumed, under their own names.
func TestResumedCopyIsAFork(t *testing.T) {
	h := newHouse(t)
	begin := []string{
		user("1", "", "a"), says("2", "1", "m1", text("b"), "end_turn"), user("3", "2", "c"),
		says("4", "3", "m2", text("d"), "end_turn"),
	}
	h.Import(h.Write(id+".jsonl", begin...))
	const other = "9c000000-0000-4000-8000-000000000001"
	var again []string
	for _, line := range append(append([]string{}, begin[:2]...), user("5", "2", "otherwise"),
		says("6", "5", "m3", text("e"), "end_turn")) {
		again = append(again, strings.ReplaceAll(line, id, other))
	}
	path := h.Write(other+".jsonl", again...)
	done := h.Import(path)
	origin, fork := h.Session(id), h.Session(other)
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.MessageCount != 2 ||
		fork.OutputTokens != 7 || origin.OutputTokens != 14 {
		t.Errorf("%+v", fork)
	}
	if done.Records.Skipped["inherited from the session it was forked off"] != 2 {
		t.Errorf("%+v", done)
	}
	if got := h.Talk(fork); got != "user: a\nassistant: b\nuser: otherwise\nassistant: e" {
		t.Errorf("path\n%s", got)
	}
	h.Unchanged(path)
	h.Append(path, strings.ReplaceAll(user("7", "6", "onward"), id, other)+"\n")
	if h.Import(path); !strings.HasSuffix(h.Talk(h.Session(other)), "e\nuser: onward") {
		t.Errorf("path\n%s", h.Talk(h.Session(other)))
	}
}

// Newer forks have names of their own and say which row each repeats.
func TestForkWithPointersIsAFork(t *testing.T) {
	h := newHouse(t)
	defer h.Examine()
	h.Import(h.Write(id+".jsonl", user("1", "", "a"), says("2", "1", "m1", text("b"), "end_turn"), user("3", "2", "c")))
	const other = "9c000000-0000-4000-8000-000000000001"
	from := func(line, uuid string) string {
		return strings.ReplaceAll(strings.TrimSuffix(line, "}"), id, other) + `,"forkedFrom":{"sessionId":"` + id +
			`","messageUuid":"` + uuid + `"}}`
	}
	path := h.Write(other+".jsonl", from(user("x1", "", "a"), "1"),
		from(says("x2", "x1", "m1", text("b"), "end_turn"), "2"),
		strings.ReplaceAll(user("x3", "x2", "otherwise"), id, other))
	h.Import(path)
	origin, fork := h.Session(id), h.Session(other)
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.MessageCount != 1 ||
		fork.OutputTokens != 0 {
		t.Errorf("%+v", fork)
	}
	if got := h.Talk(fork); got != "user: a\nassistant: b\nuser: otherwise" {
		t.Errorf("path\n%s", got)
	}
	h.Unchanged(path)
}

// A reply whose end is not here waits: its rows come together, and its usage is the last one.
func TestReplyThatIsBeingWrittenWaits(t *testing.T) {
	h := newHouse(t)
	h.Source = claudecode.New(historytest.NoEnv, time.Now)
	path := h.Write(id+".jsonl", user("1", "", "a"), says("2", "1", "m", text("half"), ""))
	if h.Import(path); h.Talk(h.Session(id)) != "user: a" {
		t.Errorf("path\n%s", h.Talk(h.Session(id)))
	}
	rows := h.Rows()
	if h.Import(path); h.Rows() != rows {
		t.Error("waiting wrote something")
	}
	h.Append(path, strings.Replace(says("3", "2", "m", call("c"), "tool_use"), `"output_tokens":7`, `"output_tokens":70`,
		1)+"\n"+result("4", "3", "c", "x")+"\n")
	if h.Import(path); h.Talk(h.Session(id)) != "user: a\nassistant: half(Bash)\ntool: x" {
		t.Errorf("path\n%s", h.Talk(h.Session(id)))
	}
	h.Source = claudecode.New(historytest.NoEnv, historytest.Later)
	h.Import(path)
	if calls := h.Calls(h.Session(id).ID); len(calls) != 1 || calls[0].OutputTokens != 70 {
		t.Errorf("%+v", calls)
	}
}

func TestQuietFileIsReadToItsEnd(t *testing.T) {
	h := newHouse(t)
	h.Source = claudecode.New(historytest.NoEnv, time.Now)
	path := h.Write(id+".jsonl", user("1", "", "a"), says("2", "1", "m", text("half"), ""))
	h.Import(path)
	if err := os.Chtimes(path, time.Now(), time.Now().Add(-11*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if h.Import(path); h.Talk(h.Session(id)) != "user: a\nassistant: half" || len(h.Calls(h.Session(id).ID)) != 1 {
		t.Errorf("path\n%s", h.Talk(h.Session(id)))
	}
	h.Unchanged(path)
}

// Rows of one response repeat its usage while it grows; its rows need not be neighbours.
func TestUsageIsTheGreatestOfAllRows(t *testing.T) {
	h := newHouse(t)
	early := says("2", "1", "m", call("c"), "tool_use")
	late := strings.Replace(says("5", "4", "m", text("done"), "end_turn"), `"output_tokens":7`, `"output_tokens":70`, 1)
	h.Import(h.Write(id+".jsonl", user("1", "", "a"), early, result("3", "2", "c", "x"),
		says("4", "3", "other", text("b"), "end_turn"), late))
	s := h.Session(id)
	if calls := h.Calls(s.ID); len(calls) != 2 || s.OutputTokens != 77 || calls[0].OutputTokens != 70 {
		t.Errorf("%d tokens, %+v", s.OutputTokens, calls)
	}
}

// Most files end without a line feed. A whole row at the end counts once the file is quiet.
func TestLastRowWithoutLineFeed(t *testing.T) {
	h := newHouse(t)
	h.Source = claudecode.New(historytest.NoEnv, time.Now)
	path := h.Write(id+".jsonl", user("1", "", "a"), says("2", "1", "m", text("b"), "end_turn"))
	h.Append(path, user("3", "2", "c"))
	if done := h.Import(path); done.Records.Waiting != 1 || h.Talk(h.Session(id)) != "user: a\nassistant: b" {
		t.Errorf("%+v\n%s", done, h.Talk(h.Session(id)))
	}
	h.Source = quiet()
	if done := h.Import(path); done.Records.Imported != 1 || done.Records.Waiting != 0 ||
		h.Talk(h.Session(id)) != "user: a\nassistant: b\nuser: c" {
		t.Errorf("%+v\n%s", done, h.Talk(h.Session(id)))
	}
	h.Append(path, "\n"+user("4", "3", "d")+"\n")
	if done := h.Import(path); done.Records.Read != 1 || !strings.HasSuffix(h.Talk(h.Session(id)), "user: c\nuser: d") {
		t.Errorf("%+v\n%s", done, h.Talk(h.Session(id)))
	}
	h.Unchanged(path)
}

// A response that was read to its end, since the file was quiet, may go on all the same: its longer version takes
// the head. Its usage rises to what its last row reports.
func TestReplyThatGoesOnAfterAQuietEnd(t *testing.T) {
	h := newHouse(t)
	path := h.Write(id+".jsonl", user("1", "", "a"), says("2", "1", "m", text("b"), ""))
	h.Import(path)
	h.Append(path, strings.Replace(says("3", "2", "m", text("c"), ""), `"output_tokens":7`, `"output_tokens":412`,
		1)+"\n"+user("4", "3", "d")+"\n")
	h.Import(path)
	s := h.Session(id)
	if got := h.Talk(s); got != "user: a\nassistant: b\nc\nuser: d" {
		t.Errorf("path\n%s", got)
	}
	if calls := h.Calls(s.ID); len(calls) != 1 || calls[0].OutputTokens != 412 || s.OutputTokens != 412 {
		t.Errorf("%d tokens, %+v", s.OutputTokens, calls)
	}
	h.Unchanged(path)
}

func TestCompactionIsAnOverlay(t *testing.T) {
	for _, test := range []struct{ name, meta, want string }{
		{"nothing stays", `{"trigger":"auto","preTokens":9}`, "summary user: next"},
		{"a segment stays", `{"trigger":"auto","preTokens":9,"preservedSegment":{"headUuid":"3","anchorUuid":"s","tailUuid":"4"}}`, "summary user: c assistant: d user: next"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write(id+".jsonl",
				user("1", "", "a"), says("2", "1", "m1", text("b"), "end_turn"), user("3", "2", "c"),
				says("4", "3", "m2", text("d"), "end_turn"),
				`{"type":"system","subtype":"compact_boundary","content":"Conversation compacted","parentUuid":null,"logicalParentUuid":"4","compactMetadata":`+test.meta+`,"uuid":"b","timestamp":"2026-02-08T06:00:00.000Z"}`,
				`{"type":"user","isCompactSummary":true,"parentUuid":"b","message":{"role":"user","content":"So far."},"uuid":"s","timestamp":"2026-02-08T06:00:00.100Z"}`,
				user("5", "s", "next")))
			s := h.Session(id)
			effective, err := h.Store.Effective(t.Context(), s)
			if err != nil || effective == nil || effective.Summary != "So far." || effective.TokensBefore != 9 {
				t.Fatalf("%+v %v", effective, err)
			}
			got, behind := "summary", false
			for _, m := range h.Path(s) {
				if behind && m.InContext {
					got += " " + fmt.Sprintf("%s: %s", m.Role, m.Text())
				}
				behind = behind || m.RowID == *effective.ThroughID
			}
			if got != test.want {
				t.Errorf("context %q", got)
			}
			if _, err := h.Store.UndoCompaction(t.Context(), s.ID, effective.RowID); err == nil {
				if all := h.Talk(h.Session(id)); all != "user: a\nassistant: b\nuser: c\nassistant: d\nuser: next" {
					t.Errorf("undone\n%s", all)
				}
			}
		})
	}
}

func TestSubagentsAreChildren(t *testing.T) {
	h := newHouse(t)
	home := t.TempDir()
	trunk := filepath.Join(home, "projects", "-proj", id+".jsonl")
	h.Rewrite(trunk, user("1", "", "a"), says("2", "1", "m", call("t"), "tool_use"))
	agent := func(name, parent string) string {
		return strings.Replace(strings.Replace(user(name, parent, "do "+name), `"isSidechain":false`,
			`"isSidechain":true,"agentId":"x"`, 1), `"type":"user"`, `"type":"user"`, 1)
	}
	h.Rewrite(filepath.Join(home, "projects", "-proj", id, "subagents", "agent-a1.jsonl"), agent("c1", ""))
	h.Rewrite(filepath.Join(home, "projects", "-proj", id, "subagents", "agent-a2.jsonl"), agent("c2", ""))
	h.Rewrite(filepath.Join(home, "projects", "-proj", id, "subagents", "agent-a2.meta.json"),
		`{"agentType":"Explore","parentAgentId":"a1"}`)
	h.Rewrite(filepath.Join(home, "projects", "-proj", id, "subagents", "agent-a1.meta.json"),
		`{"agentType":"Explore","toolUseId":"t"}`)
	h.Rewrite(filepath.Join(home, "projects", "-proj", "agent-old.jsonl"), agent("c3", ""))
	h.Rewrite(filepath.Join(home, "projects", "-proj", id, "subagents", "workflows", "run1", "journal.jsonl"),
		`{"type":"started","key":"v2:k1","agentId":"a1"}`, `{"type":"result","key":"v2:k1","agentId":"a1","result":{}}`)
	h.Rewrite(filepath.Join(home, ".credentials.json"), "{}")
	h.Rewrite(filepath.Join(home, "history.jsonl"), "{}")
	h.Source = claudecode.New(func(key string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": home}[key]
	}, historytest.Later)
	done := h.Import()
	main := h.Session(id)
	for source, parent := range map[string]session.ID{
		id + "#agent-a1": main.ID,
		id + "#agent-a2": h.Session(id + "#agent-a1").ID, id + "#agent-old": main.ID,
	} {
		s := h.Session(source)
		if s.ParentID != parent || s.ParentKind != session.ParentChild || s.Kind != "subagent" {
			t.Errorf("%s: %+v", source, s)
		}
		for _, m := range h.Entries(s.ID) {
			if m.Origin == session.Person {
				t.Errorf("%s: nobody typed %q", source, m.Text())
			}
		}
	}
	if len(done.Errors) != 0 || h.Session(id+"#agent-a2").Title != "Explore: do c2" {
		t.Errorf("%+v", done)
	}
	if link, err := h.Store.Link(t.Context(), h.Session(id+"#agent-a1")); err != nil || link == nil || link.Call != "t" ||
		link.Message == nil || link.Message.Session != main.ID {
		t.Errorf("what started it: %+v %v", link, err)
	}
	rows := h.Rows()
	if again := h.Import(); again.Records.Read != 0 || h.Rows() != rows {
		t.Errorf("again %+v", again)
	}
}

func TestTitles(t *testing.T) {
	h := newHouse(t)
	path := h.Write(id+".jsonl", user("1", "", "first words"))
	for _, step := range []struct{ line, want string }{
		{"", "first words"},
		{`{"type":"summary","summary":"Of another","leafUuid":"gone"}`, "first words"},
		{`{"type":"summary","summary":"Of this","leafUuid":"1"}`, "Of this"},
		{`{"type":"ai-title","aiTitle":"Made"}`, "Made"},
		{`{"type":"custom-title","customTitle":"Given"}`, "Given"},
		{`{"type":"ai-title","aiTitle":"Made again"}`, "Given"},
	} {
		if step.line != "" {
			h.Append(path, step.line+"\n")
		}
		h.Import(path)
		if s := h.Session(id); s.Title != step.want {
			t.Errorf("after %s: %q", step.line, s.Title)
		}
	}
}

// Claude Code writes the summary of a session into the file of the next one.
func TestSummaryNamesTheSessionOfItsRow(t *testing.T) {
	const next = "9a000000-0000-4000-8000-000000000002"
	in := func(session, row string) string { return strings.ReplaceAll(row, id, session) }
	h := newHouse(t)
	home := filepath.Dir(h.Write(id+".jsonl", user("1", "", "first words"),
		says("2", "1", "m1", text("done"), "end_turn")))
	h.Rewrite(filepath.Join(home, next+".jsonl"), `{"type":"summary","summary":"Fix the cart","leafUuid":"2"}`,
		`{"type":"summary","summary":"Of nobody","leafUuid":"gone"}`,
		in(next, user("3", "", "second words")), in(next, says("4", "3", "m2", text("done"), "end_turn")))
	h.Import(home)
	for session, want := range map[string]string{id: "Fix the cart", next: "second words"} {
		if got := h.Session(session).Title; got != want {
			t.Errorf("%s is called %q, want %q", session, got, want)
		}
	}
	if again := h.Import(home); again.Records.Read != 0 {
		t.Errorf("a second import gave %+v", again)
	}
}

// Where Claude Code made the worktree says which project a session is of, also when the worktree is gone.
func TestWorktreeIsOfTheFolderItWasMadeFrom(t *testing.T) {
	h := newHouse(t)
	path := h.Write(id+".jsonl", strings.ReplaceAll(user("1", "", "x"), `"/proj"`, `"/elsewhere/fix/sub"`),
		`{"type":"worktree-state","sessionId":"`+id+`","worktreeSession":{"originalCwd":"/proj","worktreePath":"/elsewhere/fix","worktreeName":"fix"}}`)
	h.Import(path)
	if s := h.Session(id); s.Project != "/proj" || s.Directory != "/elsewhere/fix/sub" {
		t.Errorf("%s is of %s", s.Directory, s.Project)
	}
}

// A prompt that says nothing, a bare command and what a fork copied are no titles.
func TestTitlesAreOfWhatThePersonSaidHere(t *testing.T) {
	const fork = "9a000000-0000-4000-8000-000000000003"
	h := newHouse(t)
	home := filepath.Dir(filepath.Dir(h.Write("a/"+id+".jsonl", user("0", "", "hi"),
		says("a0", "0", "m0", text("hello"), "end_turn"), user("1", "a0", "<command-name>/model</command-name>"),
		user("2", "1", "Fix the parser"), says("3", "2", "m1", text("done"), "end_turn"))))
	h.Import(home)
	if got := h.Session(id).Title; got != "Fix the parser" {
		t.Errorf("the title is %q", got)
	}
	copied := func(row, of string) string {
		return strings.Replace(strings.ReplaceAll(row, id, fork), "{",
			`{"forkedFrom":{"sessionId":"`+id+`","messageUuid":"`+of+`"},`, 1)
	}
	h.Rewrite(filepath.Join(home, "b", fork+".jsonl"), copied(user("f0", "", "hi"), "0"),
		copied(says("fa0", "f0", "m0", text("hello"), "end_turn"), "a0"),
		copied(user("f2", "fa0", "Fix the parser"), "2"), copied(says("f3", "f2", "m1", text("done"), "end_turn"), "3"),
		strings.ReplaceAll(user("4", "f3", "Now the lexer"), id, fork),
		strings.ReplaceAll(says("5", "4", "m2", text("done"), "end_turn"), id, fork))
	h.Import(home)
	if s := h.Session(fork); s.Title != "Now the lexer" || s.ParentKind != session.ParentFork {
		t.Errorf("the fork is called %q (%s)", s.Title, s.ParentKind)
	}
}

func TestKilledImportGoesOn(t *testing.T) {
	var lines []string
	parent := ""
	for i := range 700 {
		u, a := fmt.Sprint("u", i), fmt.Sprint("a", i)
		side := strings.Replace(user(fmt.Sprint("s", i), "", "side"), `"isSidechain":false`,
			`"isSidechain":true,"agentId":"x"`, 1)
		lines = append(lines, user(u, parent, "say"), says(a, u, fmt.Sprint("m", i), text("said"), "end_turn"), side)
		parent = a
	}
	historytest.KilledImportGoesOn(t, quiet(), newHouse(t).Write(id+".jsonl", lines...), 0, 1, 3)
}

// Which of two transcripts is the copy is seen though all files were changed at one time, as cp -r leaves them, and
// though the original went on after the fork.
func TestForkIsKnownWhateverTheTimesOfFiles(t *testing.T) {
	for name, forkChanged := range map[string]time.Duration{"equal": 0, "the fork before": -26 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) { forkIsKnown(t, forkChanged) })
	}
}

func forkIsKnown(t *testing.T, forkChanged time.Duration) {
	from := filepath.Join(samples.Case(t, "49-claude-code-2.1.332-real"), "projects")
	h := newHouse(t)
	folder := t.TempDir()
	testkit.Check(t, os.CopyFS(folder, os.DirFS(from)))
	testkit.Check(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
		if strings.HasPrefix(filepath.Base(path), "545c8de1") {
			at = at.Add(forkChanged)
		}
		return cmp.Or(err, os.Chtimes(path, at, at))
	}))
	h.Import(folder)
	origin, fork := h.Session("cbc5c75e-a6ae-4676-a740-1c7ba0674bac"), h.Session("545c8de1-ecc5-479a-9840-5ca0b67ada7c")
	names := func(s session.Session) (all []string) {
		for _, c := range h.Calls(s.ID) {
			all = append(all, strings.TrimPrefix(c.ExternalID, "claude-code:msg_mock"))
		}
		slices.Sort(all)
		return all
	}
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork || fork.Title != "forked question" {
		t.Errorf("%+v", fork)
	}
	if got := names(origin); !slices.Contains(got, "0008") || !slices.Contains(got, "0011") ||
		slices.Contains(got, "0012") {
		t.Errorf("the origin has the calls %q", got)
	}
	if got := names(fork); !slices.Equal(got, []string{"0012"}) {
		t.Errorf("the fork has the calls %q", got)
	}
}
