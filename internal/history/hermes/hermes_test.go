package hermes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/history/hermes"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return hermes.New(historytest.NoUser, now) }

// sample makes the database of a sample in a folder.
func sample(t *testing.T, folder, name string) string {
	t.Helper()
	testkit.Check(t, os.MkdirAll(folder, 0o700))
	return historytest.New(t, source(time.Now)).Load(filepath.Join(folder, "state.db"),
		historytest.Read(t, historytest.Sample(t, "hermes", name)))
}

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 3, Make: func(t *testing.T, folder string) {
		sample(t, folder, "state-v30.sql")
		sample(t, filepath.Join(folder, "profiles", "work"), "state-v8.sql")
	}}
	claims.Hold(t)
	claims.Contexts, claims.Make = 1, func(t *testing.T, folder string) {
		historytest.CopySample(t, folder, "hermes", "home-old")
		torn := filepath.Join(folder, "sessions", "20260330_080000_aabbccdd.jsonl") // its last line would wait
		whole := historytest.Read(t, torn)
		testkit.Check(t, os.WriteFile(torn, []byte(whole[:strings.LastIndex(whole, "\n")+1]), 0o600))
	}
	t.Run("files", claims.Hold)
}

const (
	first    = "20260725_210000_1a2b3c"
	agent    = "20260725_210200_4d5e6f"
	telegram = "20260726_080000_77aa88"
)

func TestSamplesAddUp(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	folder := t.TempDir()
	sample(t, folder, "state-v30.sql")
	historytest.CopySample(t, folder, "hermes", "home") // a copy of what the database has
	done := h.Import(folder)
	h.Gave(done, 3, "")
	testkit.Equal(t, historytest.Counts{
		Users: 3, Replies: 5, Calls: 3, Results: 2, Aside: 2, Ledger: 4, NanoUSD: 62_100_000,
		Input: 6060, Output: 1058, CacheRead: 14000, CacheWrite: 3000,
	}, h.CountsOf(first))
	testkit.Equal(t, historytest.Counts{Replies: 1, Ledger: 1, Input: 300, Output: 40, NanoUSD: 1_500_000},
		h.CountsOf(agent))
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Ledger: 1, Input: 900, Output: 120, CacheRead: 100},
		h.CountsOf(telegram))
	if done.Records.Skipped["copy that a compaction made"] != 2 || done.Records.Skipped["settings of the session"] != 1 {
		t.Errorf("%+v", done.Records)
	}
	s := h.Session(first)
	overlay, rest := h.Seen(s)
	if got := historytest.Texts(rest); overlay == nil || !strings.Contains(overlay.Summary, "Fix the loop.") ||
		got != "like in this picture? Yes. apply the fix Fixed. " {
		t.Errorf("%+v, then %q", overlay, got)
	}
	if s.Title != "Fix retry loop" || s.Directory != "/home/dev1/demo" || s.GitBranch != "main" {
		t.Errorf("%+v", s)
	}
	if s := h.Session(agent); s.Kind != "subagent" || s.ParentID != h.Session(first).ID {
		t.Errorf("%+v", s)
	}
	if s := h.Session(telegram); s.Title != "remind me at nine" || strings.Contains(string(s.Metadata), "Dev One") {
		t.Errorf("%+v", s)
	}
	for _, c := range h.Calls(h.Session(telegram).ID) {
		if c.CostNanoUSD == nil || *c.CostNanoUSD != 0 || c.ReasoningTokens != 60 {
			t.Errorf("%+v", c)
		}
	}
}

// A compaction of older builds goes on in a new session, and a branch begins with copies.
func TestRotationAndBranch(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(sample(t, t.TempDir(), "state-v8.sql")), 3, "")
	chained, branch := h.Session("20260403_160000_6b4f3a"), h.Session("20260403_170000_7c5a4b")
	if from := h.Session("20260403_152721_5a3e2f").ID; chained.ParentID != from || branch.ParentID != from {
		t.Errorf("%+v %+v", chained, branch)
	}
	if own := h.Entries(branch.ID); len(own) != 0 {
		t.Errorf("the branch has %d messages of its own", len(own))
	}
	if overlay, rest := h.Seen(chained); overlay == nil || historytest.Texts(rest) != "push it Pushed." {
		t.Errorf("%+v %s", overlay, historytest.Texts(rest))
	}
	if n := len(h.Path(chained)); n != 5 {
		t.Errorf("%d messages on the path", n)
	}
	testkit.Equal(t, historytest.Counts{
		Users: 2, Replies: 2, Ledger: 1, Input: 400, Output: 30, NanoUSD: 3_000_000,
	}, h.CountsOf(chained.SourceID))
}

func TestFilesOfOlderBuilds(t *testing.T) {
	h, done := historytest.ImportSample(t, source(historytest.Later), "hermes", "home-old")
	h.Gave(done, 2, "")
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 2, Calls: 1, Results: 1}, h.CountsOf("20260329_101500_99ee11"))
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1}, h.CountsOf("20260330_080000_aabbccdd"))
}

const tables = `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT, title TEXT, parent_session_id TEXT, started_at REAL,
		input_tokens INTEGER, output_tokens INTEGER, last_activity_at REAL);
	CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
		tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0);`

const talk = tables + `INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 1785015600);`

func say(role, text string, at int) string {
	return fmt.Sprintf(`INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', '%s', '%s', %d);`, role, text,
		1785015600+at)
}

func TestWrongSessions(t *testing.T) {
	for what, test := range map[string]struct {
		script, says string
		sessions     int
	}{
		"another database": {`CREATE TABLE dreams (x);`, "no sessions of Hermes", 0},
		"no content":       {`CREATE TABLE sessions (id TEXT); CREATE TABLE messages (session_id TEXT, role TEXT);`, "no sessions of Hermes", 0},
		"no message":       {talk, "", 0},
		"odd values": {
			talk + say("user", "one", 1) + say("dream", "of sheep", 2) + `INSERT INTO messages (session_id, role, tool_calls, timestamp) VALUES
				('s', 'assistant', '7', 5e246), ('s', 'assistant', '{"id":"a","name":"x"}', NULL), ('s', 'assistant', '"[]"', -1), ('s', NULL, NULL, 'x');`,
			"", 1,
		},
		"a circle": {
			tables + `INSERT INTO sessions (id, parent_session_id) VALUES ('s', 't'), ('t', 's');` + say("user", "one", 1), "", 1,
		},
		"a parent that is gone": {
			tables + `INSERT INTO sessions (id, source, parent_session_id) VALUES ('s', 'subagent', 'gone');` + say("user", "one", 1) +
				say("assistant", "two", 2), "", 1,
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), "state.db"), test.script)), test.sessions, test.says)
		})
	}
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(h.Write("session_1.json", "hello")), 0, "no session of Hermes")
}

// A result whose text was cleared to save space stays as it was, and nothing behind it becomes a branch.
func TestClearedResultStays(t *testing.T) {
	h, path := historytest.New(t, source(historytest.Later)), filepath.Join(t.TempDir(), "state.db")
	script := func(result string) string {
		return talk + say("user", "one", 1) + `INSERT INTO messages (session_id, role, tool_calls, timestamp)
			VALUES ('s', 'assistant', '[{"id":"c1","function":{"name":"terminal","arguments":"{}"}}]', 1785015602);
			INSERT INTO messages (session_id, role, content, tool_call_id, timestamp) VALUES ('s', 'tool', '` + result + `', 'c1', 1785015603);` +
			say("assistant", "done", 4)
	}
	h.Import(h.Load(path, script("much output")))
	h.Import(h.Load(path, script("[Old tool output cleared to save context space]")+`UPDATE sessions SET last_activity_at = 1785015700;`))
	if all := h.Entries(h.Session("s").ID); len(all) != 4 {
		t.Errorf("%d messages", len(all))
	}
	if got := h.Path(h.Session("s"))[2].Results()[0].Text; got != "much output" {
		t.Errorf("%q", got)
	}
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct{ system, home, want string }{
		{"linux", "", "/home/ana/.hermes"}, {"darwin", "/h", "/h"}, {"windows", "", "C:/Users/ana/AppData/Local/hermes"},
	} {
		env := func(name string) string {
			return map[string]string{
				"HOME": "/home/ana", "HERMES_HOME": test.home, "LOCALAPPDATA": "C:/Users/ana/AppData/Local",
			}[name]
		}
		places := hermes.New(folders.User{System: test.system, Getenv: env}, time.Now).Places()
		if strings.Join(places, " ") != test.want {
			t.Errorf("%s: %q", test.system, places)
		}
	}
}

func TestDatabaseIsLeftAlone(t *testing.T) {
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := historytest.New(t, source(historytest.Later))
		return h, h.Load(filepath.Join(t.TempDir(), "state.db"), talk+say("user", "one", 1))
	}, "s", say("assistant", "two", 2), say("user", "three", 3))
}

func FuzzContent(f *testing.F) {
	f.Add([]byte("\x00json:" + `[{"type":"text","text":"a"}]`))
	f.Add([]byte(`{"id":"a","function":{"name":"x","arguments":"{}"}}`))
	historytest.FuzzCell(f, "state.db", talk+say("user", "one", 1)+say("assistant", "two", 2)+say("tool", "three", 3),
		`UPDATE messages SET content = ?1, tool_calls = ?1, tool_call_id = ?1 WHERE id > 1`, source(historytest.Later))
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"session_id":"1","session_start":"2026-03-29T10:15:00","messages":[{"role":"user","content":"a"}]}`))
	historytest.FuzzFile(f, "session_1.json", source(historytest.Later))
}
