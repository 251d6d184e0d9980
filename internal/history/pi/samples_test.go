package pi_test

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/samples"

	"github.com/google/go-cmp/cmp"
)

// facts are what a file of the samples must give, by the samples' own README.
type facts struct {
	lines                                      history.Records
	kinds                                      map[string]int // by the line's type, or message/role: of its own entries
	onPath                                     map[string]int // of a fork: those on its path, whosever they are
	toolCalls, results, open, failedResults    int
	finishes                                   map[session.Finish]int
	input, output, cacheRead, cacheWrite, rows int64
	cost                                       float64 // of its own calls
	roots                                      int
	head                                       string
	context                                    []string // roles at the head; nil: not stated
	title                                      string
}

func TestPiSamplesAddUp(t *testing.T) {
	v3Kinds := map[string]int{
		"branch_summary": 1, "compaction": 1, "context_edit": 1, "custom": 1, "custom_message": 1, "label": 2,
		"message/assistant": 10, "message/bashExecution": 2, "message/system": 1, "message/toolResult": 4,
		"message/user": 6, "model_change": 1, "session_info": 1, "thinking_level_change": 1, "usage": 1,
	}
	copied := maps.Clone(v3Kinds)
	copied["message/user"] = 7
	forked := map[string]int{ // of a path
		"context_edit": 1, "custom": 1, "custom_message": 1, "message/assistant": 6, "message/bashExecution": 2,
		"message/system": 1, "message/toolResult": 3, "message/user": 3, "model_change": 1, "thinking_level_change": 1,
	}
	through := maps.Clone(forked) // the origin's path, of which the fork's file leaves out a label
	through["label"] = 1
	const copy = "copied from the session it was forked from"
	for _, test := range []struct {
		name, source string
		before       []string // imported before it
		path         []string
		want         facts
	}{
		{"version 1, no compaction", "d703a1a9-1b7b-4fb1-b512-c9738b1fe617", nil, []string{"large-session.jsonl"}, facts{
			lines: history.Records{Read: 1019, Imported: 1019},
			kinds: map[string]int{
				"message/assistant": 453, "message/toolResult": 373, "message/user": 88, "model_change": 1,
				"thinking_level_change": 103,
			},
			toolCalls: 391, results: 373, open: 18, failedResults: 19,
			finishes: map[session.Finish]int{"tool_calls": 366, "stop": 65, "aborted": 21, "error": 1},
			input:    1049, output: 83156, cacheRead: 43229469, cacheWrite: 4296232, rows: 453, cost: 30.330198,
			roots: 1, head: "v1:1017",
		}},
		{
			"version 1, two compactions", "ffae836b-9420-4060-ac13-7745215f90ff", nil,
			[]string{"before-compaction.jsonl"},
			facts{
				lines: history.Records{Read: 1003, Imported: 1003},
				kinds: map[string]int{
					"compaction": 2, "message/assistant": 484, "message/bashExecution": 3, "message/toolResult": 448,
					"message/user": 55, "model_change": 5, "thinking_level_change": 5,
				},
				toolCalls: 454, results: 448, open: 6, failedResults: -1,
				input: 3689, output: 187895, cacheRead: 54693675, cacheWrite: 1685320, rows: 484, cost: 42.595908,
				roots: 1, head: "v1:1001",
			},
		},
		{
			"version 3 with every kind of line", "01a1fd0d-de16-7472-878d-5ea5e96ee142", nil,
			[]string{"v3", "--home-dev-demo--", "*e142.jsonl"},
			facts{
				lines: history.Records{Read: 35, Imported: 35}, kinds: v3Kinds,
				toolCalls: 5, results: 4, open: 1,
				finishes: map[session.Finish]int{"tool_calls": 3, "stop": 5, "aborted": 1, "error": 1},
				input:    4154, output: 706, cacheRead: 21200, cacheWrite: 3530, rows: 13, cost: 0.0426495,
				roots: 2, head: "3534db8b", context: []string{"user", "assistant"}, title: "Greeting program",
			},
		},
		{
			"fork of a path counts only what it adds", "01a1fd0d-de1b-7472-878d-5ea642b53ab0",
			[]string{"v3", "--home-dev-demo--", "*e142.jsonl"},
			[]string{"v3", "--home-dev-demo--", "*3ab0.jsonl"},
			facts{
				lines: history.Records{Read: 21, Imported: 3, Skipped: map[string]int{copy: 18}},
				kinds: map[string]int{"message/assistant": 1, "message/user": 1}, onPath: through,
				input: 4, output: 6, cacheRead: 2950, cacheWrite: 20, rows: 1, cost: 0.001062,
				head: "fa0d9c41",
			},
		},
		{
			"fork of a path whose origin is not here has it all", "01a1fd0d-de1b-7472-878d-5ea642b53ab0", nil,
			[]string{"v3", "--home-dev-demo--", "*3ab0.jsonl"},
			facts{
				lines: history.Records{Read: 21, Imported: 21}, kinds: forked, onPath: forked,
				toolCalls: 3, results: 3,
				input: 35, output: 258, cacheRead: 10850, cacheWrite: 3040, rows: 6, cost: 0.01863,
				roots: 1, head: "fa0d9c41",
			},
		},
		{
			"fork of a whole file costs nothing", "01a1fd0d-de1c-7472-878d-5ea959550bae",
			[]string{"v3", "--home-dev-demo--", "*e142.jsonl"},
			[]string{"v3", "--home-dev-other--", "*.jsonl"},
			facts{
				lines: history.Records{Read: 36, Imported: 2, Skipped: map[string]int{copy: 34}},
				kinds: map[string]int{"message/user": 1},
				head:  "7fa355b3", context: []string{"user", "assistant", "user"}, title: "Greeting program",
			},
		},
		{
			"fork of a whole file whose origin is not here", "01a1fd0d-de1c-7472-878d-5ea959550bae", nil,
			[]string{"v3", "--home-dev-other--", "*.jsonl"},
			facts{
				lines: history.Records{Read: 36, Imported: 36}, kinds: copied,
				toolCalls: 5, results: 4, open: 1,
				input: 4154, output: 706, cacheRead: 21200, cacheWrite: 3530, rows: 13, cost: 0.0426495,
				roots: 2, head: "7fa355b3", context: []string{"user", "assistant", "user"}, title: "Greeting program",
			},
		},
		{
			"harness of version 3 moves the leaf", "01a1fd12-64b2-73cd-af47-f611db608997", nil,
			[]string{"v3-harness", "*.jsonl"},
			facts{
				lines: history.Records{Read: 7, Imported: 7},
				kinds: map[string]int{"active_tools_change": 1, "label": 1, "leaf": 1, "message/user": 2, "session_info": 1},
				roots: 1, head: "1c454909", context: []string{"user"}, title: "Harness v3",
			},
		},
		{
			"harness of version 4", "01a1fd12-6411-750c-8ca1-e6c9e6253dc5", nil,
			[]string{"v4-harness", "*e6c9e6253dc5.jsonl"},
			facts{
				lines: history.Records{Read: 14, Imported: 13, Raw: 1},
				kinds: map[string]int{
					"entry/active_tools_change": 1, "entry/compaction": 1, "entry/message": 4, "entry/model_change": 1,
					"fact/label": 2, "fact/name": 1, "lane": 2, "record/usage": 1,
				},
				finishes: map[session.Finish]int{"stop": 1},
				input:    10, output: 6, cacheWrite: 40, rows: 2, cost: 0.0002,
				roots: 1, head: "01a1fd12-6421-750c-8ca1-e6cfb1e1c7d0", context: []string{"summary", "assistant", "user"},
				title: "Harness demo",
			},
		},
		{
			"fork of a harness file of version 4", "01a1fd12-6425-750c-8ca1-e6d1a35ee98b",
			[]string{"v4-harness", "*e6c9e6253dc5.jsonl"},
			[]string{"v4-harness", "*e6d1a35ee98b.jsonl"},
			facts{
				lines:  history.Records{Read: 5, Imported: 3, Skipped: map[string]int{copy: 2}},
				kinds:  map[string]int{"fact/name": 1, "lane": 1},
				onPath: map[string]int{"entry/message": 2},
				head:   "01a1fd12-641e-750c-8ca1-e6cdf9e8e186", context: []string{"user", "assistant"}, title: "Harness demo",
			},
		},
		{
			"half a last line waits", "01a1fd0d-de16-7472-878d-5ea5e96ee142", nil,
			[]string{"made", "torn-last-line.jsonl"},
			facts{
				lines: history.Records{Read: 36, Imported: 35, Waiting: 1}, kinds: v3Kinds,
				toolCalls: 5, results: 4, open: 1,
				input: 4154, output: 706, cacheRead: 21200, cacheWrite: 3530, rows: 13, cost: 0.0426495,
				roots: 2, head: "3534db8b", context: []string{"user", "assistant"}, title: "Greeting program",
			},
		},
		{
			"cycle, orphan and self-parent", "019b0000-0000-7000-8000-00000000c1c1", nil,
			[]string{"made", "cycle-and-orphan.jsonl"},
			facts{
				lines: history.Records{Read: 8, Imported: 8}, kinds: map[string]int{"message/user": 7},
				roots: 4, head: "aaaa0007", context: []string{"user", "user", "user"}, title: "root",
			},
		},
		{
			"version 1 with a compaction", "019b0000-0000-4000-8000-0000000001a1", nil,
			[]string{"made", "v1-compaction.jsonl"},
			facts{
				lines: history.Records{Read: 7, Imported: 7},
				kinds: map[string]int{"compaction": 1, "message/assistant": 2, "message/user": 3},
				input: 20, output: 10, cacheWrite: 200, rows: 2, cost: 0.00096,
				roots: 1, head: "v1:5", context: []string{"summary", "user", "assistant", "user"}, title: "one",
			},
		},
		{
			"version 2 with an unknown kind and a broken line", "019b0000-0000-7000-8000-00000000b2b2", nil,
			[]string{"made", "v2-hook-message.jsonl"},
			facts{
				lines: history.Records{Read: 6, Imported: 4, Raw: 2},
				kinds: map[string]int{"broken": 1, "future_kind": 1, "message/hookMessage": 1, "message/user": 2},
				roots: 1, head: "bbbb0004", context: []string{"user", "user", "user"}, title: "after the unknown entry",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			if test.before != nil {
				h.Import(sample(t, test.before...))
			}
			done := h.Import(sample(t, test.path...))
			h.check(test.source, done, test.want)
			h.unchanged(sample(t, test.path...))
		})
	}
}

// check compares a session with the facts of its file.
func (h *house) check(source string, done history.Accounting, want facts) {
	h.Helper()
	s := h.Session(source)
	all := h.Entries(s.ID)
	got := facts{
		lines: done.Records, kinds: map[string]int{}, rows: 0, head: "", title: want.title,
		input: s.InputTokens, output: s.OutputTokens, cacheRead: s.CacheReadTokens, cacheWrite: s.CacheWriteTokens,
	}
	if want.lines.Skipped == nil {
		want.lines.Skipped = map[string]int{}
	}
	finishes, answered := map[session.Finish]int{}, map[int64]bool{}
	for i := range all {
		m := &all[i]
		got.kinds[kindOf(h.T, m)]++
		got.toolCalls += len(m.Calls())
		if m.ParentID == nil {
			got.roots++
		}
		if m.Finish != "" {
			finishes[m.Finish]++
		}
		for _, p := range m.Results() {
			got.results++
			if p.Failed() {
				got.failedResults++
			}
			if p.CallPartID == nil {
				h.Errorf("result %s has no call", p.CallID)
				continue
			}
			answered[*p.CallPartID] = true
		}
	}
	path := h.Path(s)
	if len(path) > 0 {
		got.head = path[len(path)-1].ExternalID
	}
	if want.onPath != nil {
		got.onPath = map[string]int{}
		for i := range path {
			got.onPath[kindOf(h.T, &path[i])]++
		}
	}
	got.open = got.toolCalls - len(answered)
	if want.finishes != nil {
		got.finishes = finishes
	}
	if want.failedResults < 0 {
		got.failedResults = want.failedResults
	}
	got.rows = int64(len(h.Calls(s.ID)))
	if s.CostUSD != nil {
		got.cost = math.Round(*s.CostUSD*1e8) / 1e8
	}
	if math.Abs(got.cost-want.cost) < 1e-6 { // the README rounds to six digits
		got.cost = want.cost
	}
	if want.context != nil {
		got.context = h.context(s)
	}
	if want.title != "" {
		got.title = s.Title
	}
	testkit.Equal(h, want, got, cmp.AllowUnexported(facts{}))
}

// kindOf names an entry as the samples' README does, from what the row holds.
func kindOf(t *testing.T, m *session.Message) string {
	t.Helper()
	line := lineOf(t, m)
	kind, _ := line["type"].(string)
	if envelope, ok := line["kind"].(string); ok && kind != "usage" || envelope == "record" { // version 4
		if fact, ok := line["fact"].(string); ok {
			kind = fact
		}
		return strings.TrimSuffix(envelope+"/"+kind, "/")
	}
	if kind != "message" {
		if kind == "" {
			return "broken"
		}
		return kind
	}
	message, _ := line["message"].(map[string]any)
	if role, ok := message["role"].(string); ok {
		return "message/" + role
	}
	return "message/" + map[session.Role]string{
		session.User: "user", session.Assistant: "assistant",
		session.Tool: "toolResult",
	}[m.Role]
}

// lineOf returns what a row keeps of its line's own fields.
func lineOf(t *testing.T, m *session.Message) map[string]any {
	t.Helper()
	var extra struct{ Line map[string]any }
	if len(m.Extra) > 0 {
		testkit.Check(t, json.Unmarshal(m.Extra, &extra))
	}
	return extra.Line
}

// unchanged imports again, with and without the help of size and time, and finds nothing new.
func (h *house) unchanged(path string) {
	h.Helper()
	mark := testkit.Must(h.Store.LastMessageID(h.Context()))(h)
	if done := h.Import(path); done.Sessions != (history.Sessions{Unchanged: 1}) || done.Records.Read != 0 {
		h.Errorf("a second import gave %+v", done)
	}
	var before int
	testkit.Check(h, h.Store.Reader().Get(&before, `SELECT (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM events) + (SELECT COUNT(*) FROM compactions)`))
	copied := h.Write("copy.jsonl") // another path: read from its beginning
	h.Append(copied, historytest.Read(h.T, path))
	done := h.Import(copied)
	if done.Sessions != (history.Sessions{Unchanged: 1}) || done.Records.Imported+done.Records.Raw != 0 {
		h.Errorf("a copy gave %+v", done)
	}
	var after int
	testkit.Check(h, h.Store.Reader().Get(&after, `SELECT (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM events) + (SELECT COUNT(*) FROM compactions)`))
	if last, err := h.Store.LastMessageID(h.Context()); err != nil || last != mark || after != before {
		h.Errorf("the copy wrote: last message %d → %d, other rows %d → %d, %v", mark, last, before, after, err)
	}
}

func TestPiForksAreLinkedToTheirOrigin(t *testing.T) {
	h := newHouse(t)
	done := h.Import(sample(t, "v3"))
	if done.Sessions.New != 3 {
		t.Fatalf("%+v", done)
	}
	origin := h.Session("01a1fd0d-de16-7472-878d-5ea5e96ee142")
	for _, id := range []string{"01a1fd0d-de1b-7472-878d-5ea642b53ab0", "01a1fd0d-de1c-7472-878d-5ea959550bae"} {
		if fork := h.Session(id); fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork {
			t.Errorf("%s is linked to %q as %q", id, fork.ParentID, fork.ParentKind)
		}
	}
}

// All samples at once: eleven sessions, since the torn file is of the same session as another,
// and one file that is none. A cycle and a line that is no JSON are reported, too.
func TestPiWholeFolder(t *testing.T) {
	h := newHouse(t)
	done := h.Import(filepath.Join(samples.Dir(t), "pi"))
	if done.Sessions != (history.Sessions{New: 11}) || len(done.Errors) != 3 {
		t.Errorf("%+v", done)
	}
	var cost float64
	testkit.Check(t, h.Store.Reader().Get(&cost, `SELECT SUM(cost_usd) FROM calls`))
	// 30.3301977 + 42.5959075 + 0.0426495 + 0.001062 + 0.00096 + 0.0002
	if math.Abs(cost-72.9709767) > 1e-6 {
		t.Errorf("all cost %.7f", cost)
	}
}

func TestPiHarnessForkIsLinkedById(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "v4-harness"))
	origin, fork := h.Session("01a1fd12-6411-750c-8ca1-e6c9e6253dc5"), h.Session("01a1fd12-6425-750c-8ca1-e6d1a35ee98b")
	if fork.ParentID != origin.ID || fork.ParentKind != session.ParentFork {
		t.Errorf("linked to %q as %q", fork.ParentID, fork.ParentKind)
	}
	compactions, err := h.Store.Compactions(t.Context(), origin.ID)
	if err != nil || len(compactions) != 1 || compactions[0].FirstKept == nil || compactions[0].FirstKept.Seq != 2 {
		t.Errorf("the copies that the harness kept are of the reply: %+v, %v", compactions, err)
	}
}

// A harness may have kept what is not the end of the path: then the overlay holds it itself.
func TestPiTailThatIsNotOnThePath(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write("a.jsonl", header, user("1", "", "one"),
		`{"type":"compaction","id":"2","parentId":"1","timestamp":"2026-01-02T09:02:00.000Z","summary":"So far.","tokensBefore":9,"retainedTail":[{"role":"user","content":"shortened"}]}`))
	compactions, err := h.Store.Compactions(t.Context(), h.Session("one").ID)
	if err != nil || len(compactions) != 1 || compactions[0].FirstKept != nil {
		t.Fatalf("%+v %v", compactions, err)
	}
	var items []struct{ Parts []session.Part }
	if err := json.Unmarshal(compactions[0].Replacement, &items); err != nil || len(items) != 2 ||
		items[0].Parts[0].Text != "So far." || items[1].Parts[0].Text != "shortened" {
		t.Errorf("replacement %s, %v", compactions[0].Replacement, err)
	}
}

func TestPiForkBeforeItsOriginKeepsThePath(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "v3", "--home-dev-other--", "*.jsonl"))
	fork := h.Session("01a1fd0d-de1c-7472-878d-5ea959550bae")
	if fork.ParentID != "" || !strings.Contains(string(fork.Metadata), "5ea5e96ee142.jsonl") {
		t.Errorf("parent %q, metadata %s", fork.ParentID, fork.Metadata)
	}
}

func TestPiCompactionsAreOverlays(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "before-compaction.jsonl"))
	s := h.Session("ffae836b-9420-4060-ac13-7745215f90ff")
	all, err := h.Store.Compactions(t.Context(), s.ID)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d compactions, %v", len(all), err)
	}
	// firstKeptEntryIndex 293 and 551 are the entries 292 and 550, which have seqs from 1.
	for i, want := range []struct{ through, kept, before int64 }{{292, 293, 175004}, {550, 551, 185014}} {
		c := all[i]
		if c.Through.Seq != want.through || c.FirstKept.Seq != want.kept || c.TokensBefore != want.before ||
			c.Trigger != session.TriggerImport || c.Status != session.StatusDone || c.Summary == "" {
			t.Errorf("compaction %d: through %v, kept %v, %d tokens before, %s %s", i, c.Through, c.FirstKept, c.TokensBefore,
				c.Trigger, c.Status)
		}
	}
	if effective, err := h.Store.Effective(t.Context(), s); err != nil || effective.RowID != all[1].RowID {
		t.Errorf("effective is %+v, %v", effective, err)
	}
	if _, err := h.Store.UndoCompaction(t.Context(), s.ID, all[1].RowID); err != nil {
		t.Errorf("an imported compaction can be undone: %v", err)
	}
}

// The label line that clears the label is on the path that was compacted: seen from there
// pi's context is the prompt (which the record keeps a copy of), the summary and six messages.
func TestPiContextAtAnotherLeaf(t *testing.T) {
	h := newHouse(t)
	lines := strings.Split(strings.TrimSpace(historytest.Read(t, sample(t, "v3", "--home-dev-demo--", "*e142.jsonl"))),
		"\n")
	h.Import(h.Write("cut.jsonl", lines[:len(lines)-2]...))
	s := h.Session("01a1fd0d-de16-7472-878d-5ea5e96ee142")
	want := []string{"summary", "user", "assistant", "tool", "assistant", "user", "assistant"}
	if got := h.context(s); !slices.Equal(got, want) {
		t.Errorf("context %v, want %v", got, want)
	}
	if labels := historytest.Labels(t, h.Store, s.ID); len(labels) != 0 {
		t.Errorf("a cleared label is left: %v", labels)
	}
}

func TestPiRefusesWhatIsNoSession(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"made/no-header.jsonl", "no session header"},
		{"made/empty", "file is empty"},
		{"made/text", "no session header"},
		{"made/version", "versions 1 to 4"},
		{"made/openclaw", "`sessiond import openclaw` reads it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := ""
			switch test.name {
			case "made/no-header.jsonl":
				// problems name files as they are, links resolved
				path = testkit.Must(filepath.EvalSymlinks(sample(t, "made", "no-header.jsonl")))(t)
			case "made/empty":
				path = h.Write("empty.jsonl")
			case "made/text":
				path = h.Write("text.jsonl", "hello", "world")
			case "made/version":
				path = h.Write("new.jsonl", `{"type":"session","version":9,"id":"x"}`)
			case "made/openclaw":
				path = h.Write("openclaw.jsonl", `{"type":"session","version":4,"id":"x"}`)
			}
			done := h.Import(path)
			if len(done.Errors) != 1 || !strings.Contains(done.Errors[0].Error, test.want) || done.Errors[0].Path != path {
				t.Errorf("errors %+v", done.Errors)
			}
			if done.Sessions != (history.Sessions{}) || done.Records.Imported != 0 {
				t.Errorf("%+v", done)
			}
		})
	}
}

// What pi itself would send next, after what its lines say of its context.
func TestPiWhatTheModelIsGiven(t *testing.T) {
	one, two, three := user("1", "", "one"), user("2", "1", "two"), user("3", "2", "three")
	line := func(kind, id, parent, rest string) string {
		return `{"type":"` + kind + `","id":"` + id + `","parentId":"` + parent +
			`","timestamp":"2026-01-02T09:04:00.000Z",` + rest + `}`
	}
	for _, test := range []struct {
		name  string
		lines []string
		given []string
	}{
		{"all of the path", []string{one, two, three}, []string{"user: one", "user: two", "user: three"}},
		{
			"a branch that was left is not sent",
			[]string{one, two, user("x", "1", "other")},
			[]string{"user: one", "user: other"},
		},
		{"what a branch came to is", []string{one, two, line("branch_summary", "b", "1",
			`"fromId":"2","summary":"Tried it."`), user("4", "b", "four")}, []string{"user: one", "user: ", "user: four"}},
		{
			"a summary, and what it kept",
			[]string{one, two, three, compacted("C", "3", "3", 3), user("4", "C", "four")},
			[]string{"user: <conversation_summary>", "user: three", "user: four"},
		},
		{
			"nothing was kept",
			[]string{one, two, three, compacted("C", "3", "gone", 3), user("4", "C", "four")},
			[]string{"user: <conversation_summary>", "user: four"},
		},
		{
			"the newest of two",
			[]string{
				one, two, compacted("C", "2", "2", 3), user("3", "C", "three"),
				compacted("D", "3", "3", 4), user("4", "D", "four"),
			},
			[]string{"user: <conversation_summary>", "user: three", "user: four"},
		},
		{
			"an edit takes a message away",
			[]string{
				one, two, three,
				line("context_edit", "e", "3", `"targetId":"2","replacement":null`), user("4", "e", "four"),
			},
			[]string{"user: one", "user: three", "user: four"},
		},
		{"or says it otherwise", []string{one, two, line("context_edit", "e", "2",
			`"targetId":"1","replacement":{"content":"uno"}`)}, []string{"user: uno", "user: two"}},
		{
			"labels, names and an extension's state are not sent",
			[]string{
				one, label("L", "1", "1", "x"), line("custom", "c", "L", `"customType":"x","data":1`),
				line("session_info", "s", "c", `"name":"n"`), user("4", "s", "four"),
			},
			[]string{"user: one", "user: four"},
		},
		{
			"an extension's message is, also one that people do not see",
			[]string{one, line("custom_message", "c", "1", `"customType":"x","content":"be short","display":false`)},
			[]string{"user: one", "user: be short"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			h.Import(h.Write("1.jsonl", append([]string{head("s", "")}, test.lines...)...))
			h.BeginsWith(h.Session("s").ID, test.given)
		})
	}
}
