package zed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/history/zed"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

func source(now func() time.Time) history.Source { return zed.New(historytest.NoUser, now) }

// sample copies a database of the samples to where Zed has it.
func sample(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, "threads", "threads.db")
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(t, os.WriteFile(path, []byte(historytest.Read(t, historytest.Sample(t, "zed", name))), 0o600))
	return path
}

func TestClaimsHold(t *testing.T) {
	claims := historytest.Claims{New: source, Contexts: 5, Make: func(t *testing.T, folder string) {
		path := sample(t, folder, "constructed-threads.db")
		historytest.New(t, source(time.Now)).Change(path, "DELETE FROM threads WHERE id LIKE '%ff'") // the broken one
	}}
	claims.Hold(t)
}

func id(end string) string { return "9d1f3a52-0000-4000-8000-0000000000" + end }

func TestSamplesAddUp(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	done := h.Import(sample(t, t.TempDir(), "ctx-threads.db"))
	h.Gave(done, 2, "")
	testkit.Equal(t, historytest.Counts{
		Users: 1, Replies: 1, Calls: 1, Results: 1, Ledger: 1, Input: 10, Output: 5,
	}, h.CountsOf("zed-root"))
	testkit.Equal(t, historytest.Counts{Replies: 1, Ledger: 1, Input: 3, Output: 2}, h.CountsOf("zed-child"))
	if s := h.Session("zed-child"); s.ParentID != h.Session("zed-root").ID || s.Kind != "subagent" {
		t.Errorf("%+v", s)
	}

	h = historytest.New(t, source(historytest.Later))
	done = h.Import(sample(t, t.TempDir(), "constructed-threads.db"))
	h.Gave(done, 5, "its document is broken")
	for end, want := range map[string]historytest.Counts{
		"aa": {
			Users: 2, Replies: 4, Calls: 2, Results: 2, Failed: 1, Ledger: 1, Input: 700, Output: 190, CacheWrite: 4000,
			CacheRead: 9000,
		},
		"bb": {Replies: 1, Ledger: 1, Input: 90, Output: 5},
		"cc": {Users: 1, Replies: 2, Calls: 1, Results: 1, Ledger: 1, Input: 2100, Output: 80},
		"dd": {Users: 1, Replies: 2, Calls: 1, Results: 1},
		"ee": {Users: 1, Replies: 1},
	} {
		testkit.Equal(t, want, h.CountsOf(id(end)))
	}
	h.Examine()
}

func TestThreadsSayWhatTheyAre(t *testing.T) {
	h := historytest.New(t, source(historytest.Later))
	h.Import(sample(t, t.TempDir(), "constructed-threads.db"))
	for end, want := range map[string]string{
		"aa": "Harbour notes | /home/dev1/lib | claude-sonnet-4-5 | 2026-08-20T10:00:00Z",
		"bb": "Sub: count | /home/dev1/lib | claude-sonnet-4-5 | 2026-08-20T10:02:00Z",
		"cc": "Old thread |  | claude-3-7-sonnet | 2025-07-19T08:00:02Z",
		"ee": "Oldest thread |  |  | 2025-03-01T08:00:02Z",
	} {
		s := h.Session(id(end))
		if got := s.Title + " | " + s.Directory + " | " + s.Model + " | " + s.CreatedAt.Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", end, got, want)
		}
	}
	talk := h.Talk(h.Session(id("aa")))
	if strings.Contains(talk, "not sent") || !strings.Contains(talk, "user: Which animal?\nassistant: A zebra.") {
		t.Errorf("%s", talk)
	}
	overlay, rest := h.Seen(h.Session(id("aa")))
	if overlay == nil || overlay.Summary != "The user asked for the files of demo: notes.txt." || len(rest) == 0 {
		t.Errorf("%+v %s", overlay, historytest.Texts(rest))
	}
	first := h.Path(h.Session(id("aa")))[0]
	if len(first.Parts) != 3 || first.Parts[1].Kind != session.PartData || !strings.Contains(first.Parts[1].Text, "6432") {
		t.Errorf("the attached file: %+v", first.Parts)
	}
}

const tables = `CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
	data_type TEXT NOT NULL, data BLOB NOT NULL);`

func thread(id, document string) string {
	return fmt.Sprintf(`%s INSERT OR REPLACE INTO threads VALUES ('%s', 't', '2026-08-20T10:05:00+00:00', 'json', '%s');`,
		tables, id, document)
}

func document(used int, messages ...string) string {
	return fmt.Sprintf(`{"version":"0.3.0","cumulative_token_usage":{"input_tokens":%d},"messages":[%s]}`, used,
		strings.Join(messages, ","))
}

func user(text string) string {
	return `{"User":{"id":"u","content":[{"Text":"` + text + `"}]}}`
}

func agent(text string) string {
	return `{"Agent":{"content":[{"Text":"` + text + `"}],"tool_results":{}}}`
}

// A prompt that is edited cuts the thread: what stood there is a branch, and what it used stays.
func TestEditedPromptIsABranch(t *testing.T) {
	h, path := historytest.New(t, source(historytest.Later)), filepath.Join(t.TempDir(), "threads.db")
	h.Import(h.Load(path, thread("1", document(10, user("one"), agent("first"), user("two"), agent("second")))))
	h.Import(h.Load(path, thread("1", document(30, user("one"), agent("first"), user("three"), agent("second")))))
	if got := h.Talk(h.Session("1")); got != "user: one\nassistant: first\nuser: three\nassistant: second" {
		t.Errorf("%s", got)
	}
	testkit.Equal(t, historytest.Counts{Users: 2, Replies: 2, Aside: 2, Ledger: 1, Input: 30}, h.CountsOf("1"))
	h.Import(h.Load(path, thread("1", document(8, user("one"), agent("first")))))
	testkit.Equal(t, historytest.Counts{Users: 1, Replies: 1, Aside: 4, Ledger: 1, Input: 30}, h.CountsOf("1"))
	h.Examine()
}

// A reply that is written waits for its end.
func TestReplyThatIsWrittenWaits(t *testing.T) {
	now := time.Date(2026, 8, 20, 10, 5, 2, 0, time.UTC)
	h := historytest.New(t, source(func() time.Time { return now }))
	path := filepath.Join(t.TempDir(), "threads.db")
	h.Import(h.Load(path, thread("1", document(0, user("one"), agent("fir")))))
	if got := h.Talk(h.Session("1")); got != "user: one" {
		t.Errorf("%s", got)
	}
	now = now.Add(time.Hour)
	h.Import(h.Load(path, thread("1", document(0, user("one"), agent("first")))))
	if got := h.Talk(h.Session("1")); got != "user: one\nassistant: first" {
		t.Errorf("%s", got)
	}
}

func TestWrongThreads(t *testing.T) {
	for what, test := range map[string]struct {
		script, says string
		sessions     int
	}{
		"another database": {`CREATE TABLE dreams (x);`, "no threads of Zed", 0},
		"no data":          {`CREATE TABLE threads (id TEXT, data_type TEXT);`, "no threads of Zed", 0},
		"no JSON":          {thread("1", "hello"), "its document is broken", 0},
		"too deep":         {thread("1", document(0, strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001))), "broken", 0},
		"no message":       {thread("1", document(0)), "", 0},
		"an unknown kind":  {thread("1", document(0, user("one"), `{"Dream":{"of":"sheep"}}`, `"Sleep"`, `7`)), "", 1},
		"odd values": {
			thread("1", document(0, user("one"), `{"User":7}`, `{"Agent":{"content":{"a":1}}}`,
				`{"Agent":{"content":[{"ToolUse":3},{"Dream":1}],"tool_results":[]}}`, `{"Compaction":{"Native":{}}}`)), "", 1,
		},
		"another coding": {strings.Replace(thread("1", document(0, user("one"))), "'json'", "'zstd'", 1), "broken", 0},
		"one beside it":  {thread("1", "hello") + thread("2", document(0, user("one"))), "broken", 1},
	} {
		t.Run(what, func(t *testing.T) {
			h := historytest.New(t, source(historytest.Later))
			h.Gave(h.Import(h.Load(filepath.Join(t.TempDir(), "threads.db"), test.script)), test.sessions, test.says)
		})
	}
	h := historytest.New(t, source(historytest.Later))
	h.Gave(h.Import(h.Write("threads.txt", "hello")), 0, "that is a database")
}

func TestDatabaseIsLeftAlone(t *testing.T) {
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := historytest.New(t, source(historytest.Later))
		return h, h.Load(filepath.Join(t.TempDir(), "threads.db"), thread("1", document(0, user("one"))))
	}, "1", thread("1", document(0, user("one"), user("two"))),
		thread("1", document(0, user("one"), user("two"), user("three"))))
}

func TestPlacesOnEverySystem(t *testing.T) {
	for system, want := range map[string]string{
		"linux": "/home/ana/.local/share/zed/threads", "darwin": "/home/ana/Library/Application Support/Zed/threads",
		"windows": "/home/ana/AppData/Local/Zed/threads",
	} {
		home := func(name string) string { return map[string]string{"HOME": "/home/ana"}[name] }
		places := zed.New(folders.User{System: system, Getenv: home}, time.Now).Places()
		if len(places) == 0 || places[0] != want {
			t.Errorf("%s: %q", system, places)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(document(3, `{"User":{"id":"u","content":[{"Text":"a"}]}}`, `{"Agent":{"content":[{"Text":"b"}]}}`)))
	historytest.FuzzCell(f, "threads.db", thread("a", document(3)), `UPDATE threads SET data = ?`, source(historytest.Later))
}
