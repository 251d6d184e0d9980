package cursor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/cursor"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/storetest"
)

func source(now func() time.Time) history.Source { return cursor.New(historytest.NoUser, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 6, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "cursor")
	}}
	claims.Hold(t)
}

// samples imports all samples.
func samples(t *testing.T) (*historytest.House, history.Accounting) {
	t.Helper()
	return historytest.ImportSample(t, source(historytest.Later), "cursor")
}

// Conversations of the samples.
const (
	rounding = "0a1b2c3d-0000-4000-8000-00000000000a"
	tests    = "0a1b2c3d-0000-4000-8000-00000000000b"
	regex    = "0a1b2c3d-0000-4000-8000-00000000000c"
	draft    = "0a1b2c3d-0000-4000-8000-00000000000d"
	todos    = "0a1b2c3d-0000-4000-8000-00000000000e"
	orphan   = "task-call_0001/fc_0001"
	oldChat  = "55555555-0000-4000-8000-000000000001"
	agent    = "6f0c1d2e-0000-4000-8000-0000000000c1"
	linter   = "6f0c1d2e-0000-4000-8000-0000000000c3"
	real     = "8d2f0000-0000-4000-8000-0000000000aa"
)

func TestSamplesAddUp(t *testing.T) {
	h, done := samples(t)
	if len(done.Errors) > 0 || done.Sessions.New != 9 {
		t.Errorf("%+v", done)
	}
	for id, want := range map[string]historytest.Counts{
		rounding: {Users: 2, Replies: 8, Calls: 4, Results: 4, Failed: 2, Aside: 1, Ledger: 1, Input: 41263, Output: 4901},
		tests:    {Users: 1, Replies: 2, Calls: 1, Results: 1, Ledger: 1, Input: 9120, Output: 640},
		regex:    {Users: 1, Replies: 2, Calls: 1, Results: 1, Ledger: 1, NanoUSD: 120_000_000},
		todos:    {Users: 1, Replies: 2, Calls: 1, Results: 1},
		orphan:   {Replies: 1},
		oldChat:  {Users: 1, Replies: 1},
		agent:    {Users: 2, Replies: 4, Calls: 3, Results: 3, Failed: 1},
		linter:   {Users: 1, Replies: 2, Calls: 1},
		real:     {Users: 1, Replies: 10, Calls: 10},
	} {
		testkit.Equal(t, want, h.CountsOf(id))
	}
	skips := done.Records.Skipped
	if skips["row without a value"] != 2 || skips[history.SkipSilent] != 1 ||
		skips["lossy copy of a stored conversation"] != 9 {
		t.Errorf("skipped %v", skips)
	}
}

func TestConversationsSayWhatTheyAre(t *testing.T) {
	h, _ := samples(t)
	for id, want := range map[string]string{
		rounding: "Fix the rounding bug | /home/dev1/work/shop | main | claude-4.6-sonnet-medium-thinking | chat",
		tests:    "Write tests | /home/dev1/work/shop |  | claude-4.6-sonnet-medium-thinking | subagent",
		regex:    "Explain the regex | /home/dev1/work/tools |  | claude-3.5-sonnet | chat",
		todos:    "Open todos | /home/dev1/work/shop |  |  | chat",
		oldChat:  "Old chat | /home/dev1/work/tools |  | gpt-4 | chat",
		agent:    "Discount and tests | /home/dev1/work/shop |  | composer-2.5-fast | chat",
		linter:   "Run the linter. | /home/dev1/work/shop |  |  | subagent",
	} {
		s := h.Session(id)
		if got := fmt.Sprintf("%s | %s | %s | %s | %s", s.Title, s.Directory, s.GitBranch, s.Model, s.Kind); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for child, parent := range map[string]string{tests: rounding, linter: agent} {
		if s := h.Session(child); s.ParentID != h.Session(parent).ID || s.ParentKind != session.ParentChild {
			t.Errorf("%s: %+v", child, s)
		}
	}
	var call string
	testkit.Check(t, h.Store.Reader().Get(&call, `SELECT call_id FROM links WHERE session_id = ?`, h.Session(tests).ID))
	if call != "toolu_03TASK" {
		t.Errorf("started by the call %q", call)
	}
	path := h.Path(h.Session(rounding))
	if last := path[len(path)-1]; last.Model != "" || last.Text() != "Tests are written; I did not push." {
		t.Errorf("the model `default` is not known: %+v", last)
	}
	talk := h.Talk(h.Session(agent))
	if !strings.HasPrefix(talk, "user: Run the tests.") && !strings.Contains(talk, "user: Add a discount of 10 %.") ||
		strings.Contains(talk, "user_query") || strings.Contains(talk, "open_and_recently") {
		t.Errorf("%s", talk)
	}
}

// A summary hides what it stands for; the older root of the store lists the same messages once more.
func TestArchiveIsACompaction(t *testing.T) {
	h, _ := samples(t)
	overlay, rest := h.Seen(h.Session(agent))
	if overlay == nil || overlay.Summary != "Summary: the user wanted a discount of 10 %; it is in cart.go." {
		t.Fatalf("%+v", overlay)
	}
	if len(rest) != 5 || rest[0].Text() != "Run the tests." {
		t.Errorf("%d messages: %s", len(rest), historytest.Texts(rest))
	}
	first := h.Path(h.Session(agent))[2]
	at := first.CreatedAt.Format(time.RFC3339)
	if first.Text() != "Add a discount of 10 %." || at != "2026-09-21T14:20:00Z" {
		t.Errorf("%s at %s", first.Text(), at)
	}
}

// Login tokens lie in the table from which named items are read: nothing of them is stored or reported.
func TestSecretsAreNeverRead(t *testing.T) {
	if storetest.OnPostgres() {
		t.Skip("PostgreSQL keeps no file that could be searched")
	}
	h, done := samples(t)
	var all strings.Builder
	fmt.Fprintf(&all, "%+v", done)
	testkit.Check(t, h.Store.Close())
	file := h.Store.File()
	for _, suffix := range []string{"", "-wal"} {
		text, _ := os.ReadFile(file + suffix) // the log may be gone
		all.Write(text)
	}
	for _, secret := range []string{"SECRET-MUST-NEVER", "cursorAuth", "blobEncryptionKey", "abababababab"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%s is there", secret)
		}
	}
	if !strings.Contains(all.String(), "Rounded once at the end") {
		t.Error("the store was not read")
	}
}

// database makes a database of the editor with some rows.
func database(h *historytest.House, path string, rows map[string]string) string {
	h.Helper()
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	script := `CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
		CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);`
	for key, value := range rows {
		script += fmt.Sprintf("INSERT INTO cursorDiskKV VALUES ('%s', '%s');", key, value)
	}
	return h.Load(path, script)
}

const generating = `{"_v":18,"composerId":"c1","status":"generating","createdAt":1790000000000,"lastUpdatedAt":1790000009000,"fullConversationHeadersOnly":[{"bubbleId":"b1"},{"bubbleId":"b2"}]}`

// A bubble that is being written waits; one that changes later is another version of it, and a rewound prompt leaves
// the path.
func TestConversationThatGoesOn(t *testing.T) {
	at := time.UnixMilli(1790000010000)
	h := historytest.New(t, source(func() time.Time { return at }))
	path := filepath.Join(t.TempDir(), "globalStorage", "state.vscdb")
	rows := map[string]string{
		"composerData:c1": generating, "bubbleId:c1:b1": `{"type":1,"text":"one"}`, "bubbleId:c1:b2": `{"type":2,"text":"fir"}`,
	}
	database(h, path, rows)
	if done := h.Import(path); done.Records.Waiting != 1 || h.Talk(h.Session("c1")) != "user: one" {
		t.Errorf("%+v %q", done, h.Talk(h.Session("c1")))
	}
	rows["bubbleId:c1:b2"] = `{"type":2,"text":"first","tokenCount":{"inputTokens":5,"outputTokens":2}}`
	rows["composerData:c1"] = strings.Replace(generating, "generating", "completed", 1)
	database(h, path, rows)
	h.Import(path)
	if got := h.Talk(h.Session("c1")); got != "user: one\nassistant: first" {
		t.Errorf("%q", got)
	}
	rows["bubbleId:c1:b2"] = `{"type":2,"text":"first, and more","tokenCount":{"inputTokens":5,"outputTokens":9}}`
	database(h, path, rows)
	h.Import(path)
	if got := h.Talk(h.Session("c1")); got != "user: one\nassistant: first, and more" {
		t.Errorf("%q", got)
	}
	if n := h.CountsOf("c1"); n.Ledger != 1 || n.Output != 9 {
		t.Errorf("%+v", n)
	}
	rows["composerData:c1"] = strings.Replace(rows["composerData:c1"], `{"bubbleId":"b1"},{"bubbleId":"b2"}`, `{"bubbleId":"b3"}`, 1)
	rows["bubbleId:c1:b3"] = `{"type":1,"text":"another one"}`
	database(h, path, rows)
	h.Import(path)
	if got := h.Talk(h.Session("c1")); got != "user: another one" {
		t.Errorf("%q", got)
	}
	h.Examine()
}

func TestWrongDatabases(t *testing.T) {
	for name, test := range map[string]struct {
		script, says string
		sessions     int
	}{
		"no table of Cursor":   {`CREATE TABLE dreams (x);`, "no database of Cursor", 0},
		"an empty one":         {`CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT, value BLOB);`, "", 0},
		"a column missing":     {`CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT);`, "no column value", 0},
		"an agent without id":  {`CREATE TABLE blobs (id TEXT, data BLOB); CREATE TABLE meta (key TEXT, value TEXT); INSERT INTO meta VALUES ('0', '7B7D');`, "names no agentId", 0},
		"an agent without row": {`CREATE TABLE blobs (id TEXT, data BLOB); CREATE TABLE meta (key TEXT, value TEXT);`, "no row", 0},
		"a broken conversation": {`CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT, value BLOB);
			INSERT INTO cursorDiskKV VALUES ('composerData:x', '{"torn":'), ('composerData:y', '{"fullConversationHeadersOnly":[{"bubbleId":"1"}]}'), ('bubbleId:y:1', '{"type":1,"text":"fine"}');`, "is no JSON object", 1},
		"a broken bubble": {`CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT, value BLOB);
			INSERT INTO cursorDiskKV VALUES ('composerData:y', '{"fullConversationHeadersOnly":[{"bubbleId":"1"},{"bubbleId":"2"}]}'), ('bubbleId:y:1', '{"type":1,"text":"fine"}'), ('bubbleId:y:2', '{"torn":');`, "kept raw", 1},
		"odd values": {`CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT, value BLOB);
			INSERT INTO cursorDiskKV VALUES ('composerData:y', '{"createdAt":"never","name":7,"usageData":[],"fullConversationHeadersOnly":[{"bubbleId":"1"},3,{"bubbleId":"1"}],"conversationState":"~!"}'), ('bubbleId:y:1', '{"type":"1","text":"fine","toolFormerData":[],"tokenCount":"many","createdAt":{}}');`, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			path := filepath.Join(t.TempDir(), "globalStorage", "state.vscdb")
			testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			done := h.Import(h.Load(path, test.script))
			h.Gave(done, test.sessions, test.says)
		})
	}
}

// A transcript counts as long as no store has its conversation.
func TestTranscriptGivesWayToTheStore(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := t.TempDir()
	historytest.CopySample(t, folder, "cursor")
	chats := filepath.Join(folder, "dot-cursor", "projects")
	h.Import(chats)
	if n := h.CountsOf(agent); n.Users != 2 || n.Results != 0 {
		t.Errorf("of the transcript: %+v", n)
	}
	h.Import(folder)
	if n := h.CountsOf(agent); n.Users != 2 || n.Results != 3 || n.Replies != 4 {
		t.Errorf("of the store: %+v", n)
	}
	h.Examine()
}

func TestDatabaseIsLeftAlone(t *testing.T) {
	text := func(id, say string) string {
		return fmt.Sprintf(`INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:%s', '{"type":1,"text":"%s"}')`, id, say)
	}
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := historytest.New(t, source(historytest.Later))
		return h, database(h, filepath.Join(t.TempDir(), "globalStorage", "state.vscdb"), map[string]string{
			"composerData:c1": strings.Replace(generating, "generating", "completed", 1),
			"bubbleId:c1:b1":  `{"type":1,"text":"one"}`,
		})
	}, "c1", text("b2", "two"), text("b3", "three"))
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte(`{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nhi\n</user_query>"}]}}` + "\n" + `{"type":"turn_ended"}`))
	historytest.FuzzRead(f, source(historytest.Later))
}

func FuzzAgentState(f *testing.F) {
	f.Add([]byte("\x0a\x02ab\x42\x01c"))
	f.Fuzz(func(t *testing.T, root []byte) { cursor.ParseForTest(bytes.Clone(root)) })
}
