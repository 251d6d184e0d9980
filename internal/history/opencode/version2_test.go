package opencode_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/history"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// figures are what a session of version 2 holds: messages of people and models, calls of tools,
// summaries, and its ledger, whose output includes the reasoning. Cost is in dollars × 10^7.
type figures struct {
	title                                           string
	user, assistant, calls, compactions, ledger     int
	input, output, reasoning, cacheRead, cacheWrite int64
	cost                                            int64
}

func (h *house) figures(id string) figures {
	h.Helper()
	s := h.Session(id)
	got := figures{title: s.Title, compactions: int(s.CompactionCount)}
	for _, m := range h.Entries(s.ID) {
		got.calls += len(m.Calls())
		switch {
		case m.Kind != session.KindMessage:
		case m.Role == session.Assistant && m.InContext:
			got.assistant++
		case m.Role == session.User && m.Origin != session.Program:
			got.user++
		}
	}
	for _, c := range h.Calls(s.ID) {
		got.ledger++
		got.input, got.output, got.reasoning = got.input+c.InputTokens, got.output+c.OutputTokens,
			got.reasoning+c.ReasoningTokens
		got.cacheRead, got.cacheWrite = got.cacheRead+c.CacheReadTokens, got.cacheWrite+c.CacheWriteTokens
		got.cost += *c.CostNanoUSD / 100
	}
	return got
}

func version2Sample(t testing.TB, name string) string {
	t.Helper()
	return historytest.Read(t, historytest.Sample(t, "opencode2", name+".sql"))
}

// Sessions of the samples of version 2.
const (
	allTypes   = "ses_f5167e17fffeAAAAAAAAAAA001"
	subagent   = "ses_f5167b29ffeeAAAAAAAAAAA017"
	forked     = "ses_f5166f71ffebAAAAAAAAAAA020"
	firstOld   = "ses_febe6a97fffeAAAAAAAAAAA001"
	secondOld  = "ses_fe6c04d7ffefAAAAAAAAAAA016"
	notCopied  = "ses_fe199f17ffe7AAAAAAAAAAA024"
	madeLater  = "ses_f4c41857ffe0AAAAAAAAAAA031"
	begunIn2   = "ses_f471b297ffd8AAAAAAAAAAA039"
	halves     = "ses_febafbafffebAAAAAAAAAAA020"
	switchRows = "ses_feb78cc7ffe2AAAAAAAAAAA029"
)

const (
	same    = "same in both versions of opencode"
	changed = "changed in version 2 of opencode"
)

func TestOpencodeVersion2SamplesAddUp(t *testing.T) {
	for _, test := range []struct {
		name     string
		want     history.Records
		sessions map[string]figures
	}{
		{"opencode2-only", history.Records{
			Read: 3 + 25 + 4, Imported: 3 + 18, Skipped: map[string]int{"copy of " + allTypes: 6, "bookkeeping": 1 + 4},
		}, map[string]figures{
			allTypes: {"Read the notes", 3, 5, 4, 1, 5, 1150, 119 + 29, 29, 4120, 200, 25520},
			subagent: {"Count the lines (@general)", 1, 1, 1, 0, 1, 300, 20, 0, 0, 250, 7125},
			forked:   {"Read the notes (fork)", 1, 1, 0, 0, 1, 95, 8, 0, 1040, 0, 2390}, // without its copies
		}},
		{"opencode2-both", history.Records{
			Read: 4 + 3 + 10 + 24 + 8 + 4, Imported: 5 + 12 + 24, Skipped: map[string]int{same: 6, changed: 2, "bookkeeping": 4},
		}, map[string]figures{
			firstOld:  {"Copied one", 2, 2, 1, 0, 2, 620, 49 + 10, 10, 640, 0, 9790},
			secondOld: {"Copied two", 1, 1, 1, 0, 1, 800, 60, 0, 0, 700, 19750},
			notCopied: {"Skipped by the job", 1, 1, 0, 0, 1, 77, 7, 0, 0, 0, 1120},
			madeLater: {"Made by 1.x after the job", 1, 1, 1, 0, 1, 333, 33 + 3, 3, 30, 0, 5160},
			begunIn2:  {"New in version 2", 1, 1, 0, 0, 1, 50, 5, 0, 0, 0, 750},
		}},
		{"opencode2-continued", history.Records{
			Read: 3 + 2 + 8 + 18 + 12 + 4, Imported: 3 + 8 + 18 + 7,
			Skipped: map[string]int{same: 4, changed: 2, "bookkeeping": 1 + 4},
		}, map[string]figures{
			firstOld:   {"Begun in 1.x, went on in 2", 3, 3, 2, 0, 3, 770, 73 + 16, 16, 1360, 0, 13510},
			halves:     {"Begun in 1.x, not copied, went on in 2", 2, 2, 0, 0, 2, 430, 44, 0, 200, 0, 6700},
			switchRows: {"Switch rows only", 1, 1, 0, 0, 1, 90, 10, 0, 0, 0, 1400},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			db := h.load("", version2Sample(t, test.name))
			done := h.Import(db)
			if len(done.Errors) != 0 {
				t.Errorf("%+v", done.Errors)
			}
			testkit.Equal(t, test.want, done.Records)
			for id, want := range test.sessions {
				if got := h.figures(id); got != want {
					t.Errorf("%s:\n got %+v\nwant %+v", id, got, want)
				}
			}
			before := h.Told()
			if done := h.Import(db); done.Records.Imported+done.Records.Raw != 0 ||
				done.Sessions != (history.Sessions{Unchanged: len(test.sessions)}) || !done.Records.Balanced() {
				t.Errorf("the second import did something: %+v", done)
			}
			testkit.Equal(t, before, h.Told())
		})
	}
}

func TestOpencodeVersion2KeepsOrderForksAndSummaries(t *testing.T) {
	h := newHouse(t)
	h.Import(h.load("", version2Sample(t, "opencode2-only")))
	all, child, fork := h.Session(allTypes), h.Session(subagent), h.Session(forked)
	if child.ParentID != all.ID || child.ParentKind != session.ParentChild || fork.ParentID != all.ID ||
		fork.ParentKind != session.ParentFork {
		t.Errorf("%+v\n%+v", child, fork)
	}
	if want := "user: What is in a.txt?\nassistant: I read it.(read)\ntool: 1: alpha\n2: beta\n" +
		"assistant: It holds alpha and beta.\nuser: And in b.txt?\nassistant: b.txt is empty."; h.Talk(fork) != want {
		t.Errorf("the fork says\n%s", h.Talk(fork))
	}
	overlay, err := h.Store.Effective(t.Context(), all)
	if err != nil || overlay == nil || overlay.Summary != "a.txt holds alpha and beta; c.txt holds gamma." ||
		overlay.PrefixSummary != "user: Read missing.txt and write c.txt." {
		t.Errorf("%+v %v", overlay, err)
	}
	if all.Directory != "/Users/dev1/demo" || all.Model != "m1" {
		t.Errorf("%+v", all)
	}
	h = newHouse(t)
	h.Import(h.load("", version2Sample(t, "opencode2-continued")))
	want := "user: First question?\nassistant: First answer.(read)\ntool: alpha\nuser: Second question?\n" +
		"assistant: Second answer.\n" +
		"user: Third question, in version 2?\nassistant: Third answer.(read)\ntool: beta"
	if got := h.Talk(h.Session(firstOld)); got != want {
		t.Errorf("the continued session says\n%s", got)
	}
	if got := h.Entries(h.Session(firstOld).ID)[2].Parts[0].DurationMS; got == nil || *got != 20 {
		t.Errorf("the tool took %v ms: the older tables know it", got)
	}
}

// What was imported from 1.x is recognised after the upgrade, whether the older tables stay or not.
func TestOpencodeUpgradeToVersion2BringsTheNewTurns(t *testing.T) {
	const drop = `DROP TABLE session; DROP TABLE message; DROP TABLE part;`
	for _, test := range []struct {
		name, then string
		sessions   []string
	}{
		{"the older tables stay", ``, []string{firstOld, halves, switchRows}},
		{"the older tables go", drop, []string{firstOld}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			after := version2Sample(t, "opencode2-continued")
			db := h.load("", after, `DROP TABLE session_v2; DELETE FROM session_message`)
			h.Import(db)
			if got := h.figures(firstOld); got.user != 2 || got.assistant != 2 {
				t.Fatalf("before: %+v", got)
			}
			done := h.Import(h.load(db, after, test.then))
			if len(done.Errors) != 0 || done.Sessions.New != 0 || !done.Records.Balanced() {
				t.Errorf("%+v", done)
			}
			fresh := newHouse(t)
			fresh.Import(fresh.load("", after))
			for _, id := range test.sessions {
				if got, want := h.figures(id), fresh.figures(id); got != want {
					t.Errorf("%s:\n got %+v\nwant %+v", id, got, want)
				}
				if got, want := h.Talk(h.Session(id)), fresh.Talk(fresh.Session(id)); got != want {
					t.Errorf("%s says\n%s\nwant\n%s", id, got, want)
				}
			}
		})
	}
}

const schema2 = `
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, directory TEXT NOT NULL, title TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
INSERT INTO session_v2 VALUES ('ses_2', 'p', '/w', NULL, 1789635600000, 1789635600000);`

const messages2 = `CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);`

func prompt2(seq, second int, text string) string {
	at := 1789635600000 + second*1000
	return fmt.Sprintf(`INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data) VALUES ('msg_%d', 'ses_2', 'user', %d, %d, %d, '{"text":%q,"time":{"created":%d}}');`, seq, seq, at, at, text, at)
}

func TestOpencodeVersion2RowsThatComeLater(t *testing.T) {
	h := newHouse(t)
	h.now = time.UnixMilli(1789635600000).Add(20 * time.Second)
	db := h.load("", schema2, messages2, prompt2(1, 1, "one"), `INSERT INTO session_message VALUES ('msg_2', 'ses_2', 'assistant', 2, 1789635602000, 1789635602000,
		'{"agent":"build","model":{"id":"m","providerID":"p"},"content":[{"type":"text","text":"tw"}],"time":{"created":1789635602000}}')`)
	if done := h.Import(db); done.Records.Waiting != 1 || h.Talk(h.Session("ses_2")) != "user: one" {
		t.Errorf("a reply is being written: %+v", done)
	}
	h.Change(db, `UPDATE session_message SET time_updated = 1789635603000, data = '{"agent":"build","model":{"id":"m","providerID":"p"},"finish":"stop","cost":0.5,
		"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":0,"write":0}},"content":[{"type":"text","text":"two"}],"time":{"created":1789635602000,"completed":1789635603000}}' WHERE id = 'msg_2'`,
		prompt2(3, 4, "three"))
	if done := h.Import(db); done.Records.Imported != 2 || done.Sessions.Updated != 1 {
		t.Errorf("%+v", done)
	}
	s := h.Session("ses_2")
	if got := h.Talk(s); got != "user: one\nassistant: two\nuser: three" || s.OutputTokens != 5 {
		t.Errorf("%s; %d tokens", got, s.OutputTokens)
	}
	h.Change(db, `UPDATE session_v2 SET title = 'Named', time_updated = 1789635609000`)
	if done := h.Import(db); done.Records.Imported != 0 || h.Session("ses_2").Title != "Named" {
		t.Errorf("%+v", done)
	}
}

func TestOpencodeVersion2Order(t *testing.T) {
	for _, test := range []struct{ name, schema, want string }{
		{"by seq, whatever the times say", messages2, "user: one\nuser: two\nuser: three"},
		{
			"by time without seq", strings.Replace(messages2, "seq INTEGER NOT NULL", "seq_of_another INTEGER", 1),
			"user: two\nuser: three\nuser: one",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			rows := prompt2(1, 9, "one") + prompt2(2, 1, "two") + prompt2(3, 2, "three")
			if !strings.Contains(test.schema, " seq ") {
				rows = strings.ReplaceAll(rows, " seq,", " seq_of_another,")
			}
			h.Import(h.load("", schema2, test.schema, rows))
			if got := h.Talk(h.Session("ses_2")); got != test.want {
				t.Errorf("%s", got)
			}
		})
	}
}

// A message that says something else in version 2 is version 2's; the older rows are counted, and told apart from
// copies.
func TestOpencodeVersion2WinsWhereContentsDiffer(t *testing.T) {
	h := newHouse(t)
	old := strings.NewReplacer("'ses_1'", "'ses_2'").Replace(user("msg_1", 0, "before") + user("msg_0", -5, "only here"))
	tables := strings.ReplaceAll(schema[:strings.Index(schema, "INSERT")], "CREATE TABLE session_message",
		"CREATE TABLE unused")
	done := h.Import(h.load("", tables, schema2, messages2, old, prompt2(1, 1, "after")))
	if got := h.Talk(h.Session("ses_2")); got != "user: only here\nuser: after" {
		t.Errorf("%s", got)
	}
	if want := map[string]int{changed: 2, "bookkeeping": 1}; cmp.Diff(want, done.Records.Skipped) != "" {
		t.Errorf("%+v", done.Records)
	}
}
