package devin_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/history/devin"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return devin.New(historytest.NoUser, now) }

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 2, Make: func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "windsurf-devin", "constructed", "share")
	}}
	claims.Hold(t)
}

func TestSamplesAddUp(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "windsurf-devin", "constructed", "share")
	h.Gave(done, 2, "")
	testkit.Equal(t, historytest.Counts{
		Users: 1, Replies: 2, Calls: 2, Results: 1, Aside: 2, Ledger: 2, Input: 500, Output: 92, CacheRead: 2100,
		CacheWrite: 40,
	}, h.CountsOf("amber-otter"))
	s := h.Session("amber-otter")
	if s.Title != "Fix the broken checks" || s.Directory != "/home/dev1/work/shop" || s.Model != "swe-1-7" ||
		s.ArchivedAt != nil {
		t.Errorf("%+v", s)
	}
	if s := h.Session("hidden-fox"); s.ArchivedAt == nil {
		t.Errorf("%+v", s)
	}
	if got := h.Talk(s); got != "user: Fix the broken checks.\nassistant: Reading the file.(read_file)(run_shell)\n"+
		"tool: print('hello')\nassistant: It prints hello." {
		t.Errorf("%s", got)
	}
	for _, c := range h.Calls(s.ID) {
		if c.CostNanoUSD != nil || !strings.Contains(string(c.Metadata), "committed_acu_cost") {
			t.Errorf("%+v", c)
		}
	}
}

const tables = `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, working_directory TEXT, model TEXT, created_at INTEGER,
		last_activity_at INTEGER, title TEXT, main_chain_id INTEGER, hidden INTEGER DEFAULT 0);
	CREATE TABLE IF NOT EXISTS message_nodes (row_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, node_id INTEGER,
		parent_node_id INTEGER, chat_message TEXT, created_at INTEGER);`

// talk is a session whose conversation ends at a node.
func talk(head int) string {
	return tables + fmt.Sprintf(`INSERT INTO sessions VALUES ('s', '/w', 'm', 1790000000, 1790000000, NULL, %d, 0);`, head)
}

func node(id, parent int, message string) string {
	return fmt.Sprintf(`INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message, created_at)
		VALUES ('s', %d, NULLIF(%d, 0), '%s', 1790000000);`, id, parent, message)
}

func says(id, role, text, more string) string {
	return `{"message_id":"` + id + `","role":"` + role + `","content":"` + text + `"` + more + `}`
}

const metrics = `,"metadata":{"generation_model":"n","created_at":"2026-09-21T13:33:30Z","metrics":` +
	`{"input_tokens":10,"output_tokens":5,"cache_read_tokens":3,"cache_creation_tokens":null}}`

// Newer builds say in a node what its reply used; a transcript of the same session then counts nothing. A node that was
// written again is no second message, and has the time of the message.
func TestUsageOfReplies(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	path := filepath.Join(folder, "sessions.db")
	script := talk(4) + node(1, 0, says("a", "user", "one", `,"metadata":{"is_user_input":true}`)) +
		node(2, 1, says("b", "assistant", "two", metrics)) + node(3, 0, says("a", "user", "one", "")) +
		node(4, 3, says("b", "assistant", "two", metrics))
	h.Load(path, script)
	h.Rewrite(filepath.Join(folder, "transcripts", "s.json"),
		`{"session_id":"s","steps":[{"step_id":2,"metrics":{"prompt_tokens":13,"completion_tokens":5,"cached_tokens":3}}]}`)
	done := h.Import(folder)
	h.Gave(done, 1, "")
	want := historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 10, Output: 5, CacheRead: 3}
	testkit.Equal(t, want, h.CountsOf("s"))
	m := h.Path(h.Session("s"))[1]
	if m.Model != "n" || m.CreatedAt.Format(time.TimeOnly) != "13:33:30" {
		t.Errorf("%+v", m)
	}
	if done.Records.Skipped["copy of a message"] != 2 {
		t.Errorf("%+v", done.Records)
	}
}

// What a session used is counted in one of its two places, also if the other one comes later.
func TestUsageIsCountedInOnePlace(t *testing.T) {
	h, folder := historytest.New(t, source(historytest.Later)), t.TempDir()
	path := filepath.Join(folder, "sessions.db")
	one := node(1, 0, says("a", "user", "one", "")) + node(2, 1, says("b", "assistant", "two", ""))
	h.Load(path, talk(2)+one)
	h.Rewrite(filepath.Join(folder, "transcripts", "s.json"),
		`{"session_id":"s","steps":[{"step_id":2,"metrics":{"prompt_tokens":13,"completion_tokens":5,"cached_tokens":3}}]}`)
	h.Import(folder)
	want := historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 10, Output: 5, CacheRead: 3}
	testkit.Equal(t, want, h.CountsOf("s"))
	h.Load(path, talk(3)+one+node(3, 2, says("c", "assistant", "three", metrics)))
	h.Import(folder)
	want.Replies = 2
	testkit.Equal(t, want, h.CountsOf("s"))
}

func TestWrongSessions(t *testing.T) {
	hi := says("a", "user", "one", "")
	for what, test := range map[string]struct {
		script, says string
		sessions     int
	}{
		"another database": {`CREATE TABLE dreams (x);`, "no sessions of Devin", 0},
		"no nodes":         {tables[:strings.Index(tables, ";")], "no sessions of Devin", 0},
		"no message":       {talk(1), "", 0},
		"no JSON":          {talk(2) + node(1, 0, hi) + node(2, 1, "hello"), "kept raw", 1},
		"too deep": {
			talk(2) + node(1, 0, hi) + node(2, 1, strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)), "kept raw", 1,
		},
		"an unknown role": {
			talk(2) + node(1, 0, hi) + node(2, 1, says("b", "dream", "of sheep", "")), "role is not known", 1,
		},
		"a circle":            {talk(2) + node(1, 2, hi) + node(2, 1, says("b", "assistant", "two", "")), "", 1},
		"a head that is gone": {talk(9) + node(1, 0, hi) + node(2, 1, says("b", "assistant", "two", "")), "", 1},
		"odd values": {
			talk(3) + node(1, 0, hi) + node(2, 1, `{"role":"assistant","content":7,"thinking":7,"tool_calls":[7,{}],"metadata":7}`) +
				node(3, 2, `{"role":"tool","content":[{"type":"dream"}],"images":[7,{"base64_data":"!"}]}`), "", 1,
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), "sessions.db"), test.script)), test.sessions, test.says)
		})
	}
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(h.Write("s.json", `{"hello":1}`)), 0, "no transcript of Devin")
	h.Gave(h.Import(h.Write("s.json", `{"steps":[7,{"metrics":7}]}`)), 0, "")
}

// Another branch becomes the conversation when the program says so.
func TestChainMoves(t *testing.T) {
	h, path := historytest.New(t, source(historytest.Later)), filepath.Join(t.TempDir(), "sessions.db")
	all := node(1, 0, says("a", "user", "one", "")) + node(2, 1, says("b", "assistant", "two", "")) +
		node(3, 1, says("c", "assistant", "other", `,"metadata":{"is_user_input":null}`))
	h.Import(h.Load(path, talk(2)+all))
	if got := h.Talk(h.Session("s")); got != "user: one\nassistant: two" {
		t.Errorf("%s", got)
	}
	h.Import(h.Load(path, talk(3)+all))
	if got := h.Talk(h.Session("s")); got != "user: one\nassistant: other" {
		t.Errorf("%s", got)
	}
	if n := len(h.Entries(h.Session("s").ID)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

func TestPlaces(t *testing.T) {
	for system, want := range map[string]string{
		"linux": "/home/ana/.local/share/devin/cli", "darwin": "/home/ana/.local/share/devin/cli",
		"windows": "C:/Users/ana/AppData/Roaming/devin/cli",
	} {
		env := func(name string) string {
			return map[string]string{"HOME": "/home/ana", "APPDATA": "C:/Users/ana/AppData/Roaming"}[name]
		}
		places := devin.New(folders.User{System: system, Getenv: env}, time.Now).Places()
		if strings.Join(places, " ") != want {
			t.Errorf("%s: %q", system, places)
		}
	}
}

func TestDatabaseIsLeftAlone(t *testing.T) {
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := historytest.New(t, source(historytest.Later))
		return h, h.Load(filepath.Join(t.TempDir(), "sessions.db"), talk(1)+node(1, 0, says("a", "user", "one", "")))
	}, "s", `INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message) VALUES ('s', 2, 1, '`+
		says("b", "assistant", "two", "")+`'); UPDATE sessions SET main_chain_id = 2`,
		`INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message) VALUES ('s', 3, 2, '{}')`)
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","steps":[{"step_id":2,"metrics":{"prompt_tokens":13,"completion_tokens":5}}]}`))
	historytest.FuzzFile(f, "s.json", source(historytest.Later))
}

func FuzzNode(f *testing.F) {
	f.Add([]byte(says("b", "assistant", "two", metrics)))
	historytest.FuzzCell(f, "sessions.db", talk(2)+node(1, 0, says("a", "user", "one", ""))+node(2, 1, "{}"),
		`UPDATE message_nodes SET chat_message = ? WHERE node_id = 2`, source(historytest.Later))
}
