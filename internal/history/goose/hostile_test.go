package goose_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// large is the size of a large row in bytes.
func large() int {
	if effort.Long() {
		return 50 << 20
	}
	return 2 << 20
}

// schema is a small database of version 17.
const schema = `
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP);
INSERT INTO schema_version VALUES (17, '2026-03-01 08:00:00');
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT 0,
	session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL DEFAULT '/w', created_at TIMESTAMP DEFAULT '2026-03-14 09:00:00',
	updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}', accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER,
	accumulated_output_tokens INTEGER, accumulated_cache_read_tokens INTEGER, accumulated_cache_write_tokens INTEGER, accumulated_cost REAL,
	provider_name TEXT, model_config_json TEXT, archived_at TIMESTAMP, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
	created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER, metadata_json TEXT);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER, model TEXT, input_tokens INTEGER,
	output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);
INSERT INTO sessions (id, name) VALUES ('20260314_1', 'one');`

// say is a message's row, at a second of 2026-03-14.
func say(id, role, text string, second int) string {
	return put(id, role, fmt.Sprintf(`[{"type":"text","text":%s}]`, session.JSONOf(text)), 1773478800+second, "")
}

func put(id, role, content string, created int, metadata string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	meta := "NULL"
	if metadata != "" {
		meta = quote(metadata)
	}
	return fmt.Sprintf("INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, "+
		"metadata_json) VALUES (%s, '20260314_1', %s, %s, %d, %s);",
		quote(id), quote(role), quote(content), created, meta)
}

func TestGooseEditedPromptIsABranch(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), say("b", "assistant", "two", 1), say("c", "user", "three", 2),
		say("d", "assistant", "four", 3))
	h.Import(db)
	h.Change(db, `DELETE FROM messages WHERE message_id IN ('c', 'd')`, say("e", "user", "otherwise", 9))
	if done := h.Import(db); done.Records.Imported != 1 {
		t.Errorf("%+v", done.Records)
	}
	s := h.Session("20260314_1")
	if got := strings.Join(h.Keys(s), " "); got != "a#0 b#0 e#0" || s.MessageCount != 5 {
		t.Errorf("path %s, %d messages: what was imported stays", got, s.MessageCount)
	}
}

func TestGooseRowThatGrewIsAnotherVersion(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), say("b", "assistant", "tw", 1))
	h.Import(db)
	h.Change(db, `UPDATE messages SET content_json = '[{"type":"text","text":"two and more"}]' WHERE message_id = 'b'`, `UPDATE sessions SET updated_at = 'x'`)
	h.Import(db)
	s := h.Session("20260314_1")
	rows := h.Entries(s.ID)
	if got := historytest.Texts(rows); got != "one tw two and more" || *s.HeadID != rows[2].RowID ||
		*rows[2].ParentID != rows[0].RowID {
		t.Errorf("%s, head %v", got, s.Head)
	}
	if done := h.Import(db); done.Records.Imported != 0 {
		t.Errorf("%+v", done.Records)
	}
}

func TestGooseCompactionAfterTheFirstImport(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), say("b", "assistant", "two", 1))
	h.Import(db)
	h.Change(db, `UPDATE messages SET metadata_json = '{"userVisible":true,"agentVisible":false}'`,
		put("s", "user", `[{"type":"text","text":"In short."}]`, 1773478810, `{"userVisible":false,"agentVisible":true}`),
		put("p", "assistant", `[{"type":"text","text":"Go on."}]`, 1773478810, `{"userVisible":false,"agentVisible":true}`),
		say("c", "user", "three", 11))
	h.Import(db)
	s := h.Session("20260314_1")
	got, err := h.Store.Effective(t.Context(), s)
	if err != nil || got == nil || got.Summary != "In short." || got.Through.Seq != 2 {
		t.Fatalf("%+v %v", got, err)
	}
	// Compacted again: the first summary is hidden by the second.
	h.Change(db, `UPDATE messages SET metadata_json = '{"userVisible":' || (message_id NOT IN ('s', 'p')) || ',"agentVisible":false}'`,
		`UPDATE messages SET metadata_json = REPLACE(REPLACE(metadata_json, ':0', ':false'), ':1', ':true')`,
		put("s2", "user", `[{"type":"text","text":"In shorter."}]`, 1773478830, `{"userVisible":false,"agentVisible":true}`),
		put("p2", "assistant", `[{"type":"text","text":"Go on."}]`, 1773478830, `{"userVisible":false,"agentVisible":true}`),
		say("d", "user", "four", 40))
	h.Import(db)
	s = h.Session("20260314_1")
	if got, err = h.Store.Effective(t.Context(), s); err != nil || got.Summary != "In shorter." || s.CompactionCount != 2 {
		t.Errorf("%+v %v, %d compactions", got, err, s.CompactionCount)
	}
	// A new house sees the same.
	other := newHouse(t)
	other.Import(db)
	if s := other.Session("20260314_1"); s.CompactionCount != 2 || s.ContextTokens == 0 {
		t.Errorf("%+v", s)
	}
}

func TestGooseRowsOfAnyKind(t *testing.T) {
	big := strings.Repeat("x", large())
	for _, test := range []struct {
		name, sql     string
		texts         string // of what came in
		imported, raw int    // messages
		problems      int
	}{
		{"nothing", "", "", 0, 0, 0},
		{"content that is no list", put("a", "user", `{"type":"text"}`, 1773478800, ""), `{"type":"text"}`, 0, 1, 1},
		{"content that is cut off", put("a", "user", `[{"type":"te`, 1773478800, ""), `[{"type":"te`, 0, 1, 1},
		{"no content", `INSERT INTO messages (session_id, role) VALUES ('20260314_1', 'user')`, "", 0, 1, 1},
		{
			"content in a string", put("a", "user", `"[{\"type\":\"text\",\"text\":\"inside\"}]"`, 1773478800, ""), "inside", 1,
			0, 0,
		},
		{"content of bytes that are no UTF-8", `INSERT INTO messages (session_id, role, content_json) VALUES ('20260314_1', 'user', CAST(x'5b7b2274797065223a2274657874222c2274657874223a22ff227d5d' AS TEXT))`, "\ufffd", 1, 0, 0},
		{
			"NUL and half a pair", put("a", "user", `[{"type":"text","text":"a\u0000b\ud800"}]`, 1773478800, ""),
			"a\ufffdb\ufffd", 1, 0, 0,
		},
		{"an unknown role", put("a", "robot", `[]`, 1773478800, ""), "[]", 0, 1, 1},
		{"times of all kinds", put("a", "user", `[{"type":"text","text":"two"}]`, 1773478802, "") +
			put("b", "user", `[{"type":"text","text":"one"}]`, 1773478801000, "") +
			`INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('20260314_1', 'user', '[{"type":"text","text":"none"}]', 'soon')`, "one none two", 3, 0, 0},
		{
			"one id for all", say("a", "user", "one", 1) + say("a", "user", "one", 1) + say("a", "user", "two", 1),
			"one one two", 3, 0, 0,
		},
		{
			"metadata that are none", put("a", "user", `[{"type":"text","text":"seen"}]`, 1773478800, `{"userVisible"`), "seen",
			1, 0, 0,
		},
		{
			"nested too deep", put("a", "user", `[`+strings.Repeat(`[`, 2000)+strings.Repeat(`]`, 2000)+`]`, 1773478800, ""),
			strings.Repeat("[", 2001) + strings.Repeat("]", 2001), 0, 1, 1,
		},
		{"a large row", put("a", "user", `[{"type":"text","text":"`+big+`"}]`, 1773478800, ""), big, 1, 0, 0},
		{
			"a parent that is its own child", `UPDATE sessions SET parent_session_id = id;` + say("a", "user", "one", 1), "one",
			1, 0, 0,
		},
		{
			"blocks that are none", put("a", "user", `[1,null,"x",{"type":"text","text":"one"},{}]`, 1773478800, ""), "one", 1,
			0, 0,
		},
		{
			"a thousand blocks too many", put("a", "assistant",
				`[{"type":"text","text":"one"}`+strings.Repeat(`,{"type":"image","data":"x"}`, 3000)+`]`, 1773478800, ""), "one", 1,
			0, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			db := h.load("", schema, test.sql)
			done := h.Import(db)
			if done.Records.Imported != 1+test.imported || done.Records.Raw != test.raw || len(done.Errors) != test.problems {
				t.Errorf("%+v %.300s", done.Records, fmt.Sprint(done.Errors))
			}
			rows := h.Entries(h.Session("20260314_1").ID)
			got := historytest.Texts(rows)
			for i := range rows {
				if rows[i].Kind == session.KindUnknown {
					got += rows[i].Parts[0].Content()
				}
			}
			if got != test.texts {
				t.Errorf("%.200q", got)
			}
			testkit.Check(t, os.Chtimes(db, rowsTime, rowsTime))
			if done := h.Import(db); done.Records.Imported+done.Records.Raw != 0 {
				t.Errorf("the second import: %+v", done.Records)
			}
		})
	}
}

var rowsTime = session.At(session.Time{}.AddDate(2025, 0, 0)).Time

func TestGooseDatabasesOfAnyKind(t *testing.T) {
	for _, test := range []struct {
		name    string
		make    func(h *house) string
		says    string // the problem; "": none
		session bool
	}{
		{"an empty file", func(h *house) string { return h.file("sessions.db", "") }, "empty", false},
		{"text", func(h *house) string {
			return h.file("sessions.db", "this is no database, though it is long enough")
		}, "no SQLite database", false},
		{"another program's", func(h *house) string {
			return h.load("", `CREATE TABLE sessions (id TEXT); CREATE TABLE other (x)`)
		}, "no Goose database", false},
		{"a damaged one", func(h *house) string {
			db := h.load("", schema, say("a", "user", strings.Repeat("long ", 20000), 1))
			bytes := []byte(historytest.Read(h.T, db))
			for i := 4096; i < len(bytes); i++ {
				bytes[i] = 0x5a
			}
			return h.file("sessions.db", string(bytes))
		}, "damaged", false},
		{"half of one", func(h *house) string {
			db := h.load("", schema, say("a", "user", strings.Repeat("long ", 20000), 1))
			return h.file("sessions.db", historytest.Read(h.T, db)[:20000])
		}, "damaged", false},
		{"a newer one", func(h *house) string {
			return h.load("", schema, say("a", "user", "one", 1), `UPDATE schema_version SET version = 99; ALTER TABLE sessions ADD COLUMN mood TEXT; ALTER TABLE messages ADD COLUMN colour TEXT;
				CREATE TABLE dreams (id); ALTER TABLE sessions DROP COLUMN accumulated_cost;`)
		}, "", true},
		{"one of version 0", func(h *house) string {
			return h.load("", `CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT, created_at TIMESTAMP);
				CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
				INSERT INTO sessions VALUES ('20260314_1', 'old', '/w', '2026-03-14 09:00:00');
				INSERT INTO messages VALUES (1, '20260314_1', 'user', '[{"type":"text","text":"one"}]', 1773478800);`)
		}, "", true},
		{"usage of a session that is gone", func(h *house) string {
			return h.load("", schema, say("a", "user", "one", 1), `INSERT INTO usage_ledger (session_id, input_tokens) VALUES ('20260313_1', 5)`)
		}, "usage of a session that is gone", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			done := h.Import(test.make(h))
			got := fmt.Sprint(done.Errors)
			if test.says == "" && len(done.Errors) != 0 || !strings.Contains(got, test.says) {
				t.Errorf("%s", got)
			}
			if test.session {
				if s := h.Session("20260314_1"); s.MessageCount != 1 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func (h *house) file(name, text string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	testkit.Check(h, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGooseFilesOfAnyKind(t *testing.T) {
	const head = `{"working_dir":"/w","description":"d","message_count":2}` + "\n"
	const one, two = `{"role":"user","created":1754035200,"content":[{"type":"text","text":"one"}]}` + "\n", `{"role":"assistant","created":1754035201,"content":[{"type":"text","text":"two"}]}` + "\n"
	for _, test := range []struct {
		name, text, says, texts string
	}{
		{"empty", "", "empty", ""},
		{"another first line", `{"hello":"world"}` + "\n" + one, "no Goose session", ""},
		{"pi's", `{"type":"session","version":3,"id":"x"}` + "\n", "no Goose session", ""},
		{"half a first line", `{"working_dir":"/w`, "not finished", ""},
		{"only a head", head, "", ""},
		{"no head", one + two, "", "one two"},
		{"broken in the middle", head + one + `{"role":` + "\n" + two, "line 3", "one two"},
		{"no UTF-8", head + strings.Replace(one, "one", "o\xffe", 1) + two, "", "o\ufffde two"},
		{"half a last line", head + one + two[:20], "", "one"},
		{"a last line without its end", head + one + strings.TrimSpace(two), "", "one two"},
		{"blank lines", head + "\n" + one + "\n" + two, "", "one two"},
		{
			"a large line", head + one + strings.Replace(two, "two", strings.Repeat("x", large()), 1), "",
			"one " + strings.Repeat("x", large()),
		},
		{"a line that is no message", head + `{"a":1}` + "\n" + one, "no message", "one"},
		{"content in a string", head + `{"role":"user","created":1754035200,"content":"[{\"type\":\"text\",\"text\":\"one\"}]"}` + "\n", "", "one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			path := h.file("20250801_080000.jsonl", test.text)
			done := h.Import(path)
			var problems string
			for _, p := range done.Errors {
				problems += fmt.Sprintf("%s line %d: %s;", p.Path, p.Line, p.Error)
			}
			if !strings.Contains(problems, test.says) || test.says == "" && problems != "" ||
				test.says != "" && !strings.Contains(problems, path) {
				t.Errorf("problems %q", problems)
			}
			if test.texts == "" {
				return
			}
			if got := h.Said("20250801_080000"); got != test.texts {
				t.Errorf("%.100q", got)
			}
		})
	}
}

func TestGooseFileThatGrows(t *testing.T) {
	h := newHouse(t)
	text := `{"working_dir":"/w","description":"d"}` + "\n" + `{"role":"user","created":1754035200,"content":[{"type":"text","text":"one"}]}` + "\n" + `{"role":"assis`
	path := h.file("grows.jsonl", text)
	if done := h.Import(path); done.Records.Waiting != 1 {
		t.Errorf("%+v", done.Records)
	}
	text += `tant","created":1754035201,"content":[{"type":"text","text":"two"}]}` + "\n"
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	if done := h.Import(path); done.Records.Imported != 1 || done.Sessions.Updated != 1 {
		t.Errorf("%+v", done)
	}
	s := h.Session("grows")
	if got := historytest.Texts(h.Entries(s.ID)); got != "one two" {
		t.Errorf("%q", got)
	}
	text = text[strings.Index(text, "\n"):] + `{"role":"user","created":1754035202,"content":[{"type":"text","text":"three"}]}` + "\n"
	testkit.Check(t, os.WriteFile(path, []byte(`{"working_dir":"/w","description":"retitled"}`+text), 0o600))
	if done := h.Import(path); done.Records.Imported != 1 || h.Session("grows").Title != "retitled" {
		t.Errorf("%+v %+v", done, h.Session("grows"))
	}
}

// A thread is the interface's copy of a session, unless that one's messages are gone.
func TestGooseThreads(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), `
		CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP, metadata_json TEXT);
		CREATE TABLE thread_messages (id INTEGER PRIMARY KEY, thread_id TEXT, session_id TEXT, message_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
		INSERT INTO threads VALUES ('copy', 'a copy', '/w', '2026-03-01 09:00:00', '{}'), ('own', 'kept', '/w', '2026-03-01 09:00:00', '{"model_name":"m"}');
		INSERT INTO thread_messages (thread_id, session_id, message_id, role, content_json, created_timestamp) VALUES
			('copy', '20260314_1', 't1', 'user', '[{"type":"text","text":"one"}]', 1773478800), ('own', 'gone', 't2', 'user', '[{"type":"text","text":"two"}]', 1773478801),
			('own', '20260314_1', 't3', 'user', '[{"type":"text","text":"one"}]', 1773478800), ('lost', NULL, 't4', 'user', '[{"type":"text","text":"three"}]', 1773478802);`)
	done := h.Import(db)
	if done.Records.Skipped["interface copy"] != 3 || done.Records.Imported != 2+2+1 || done.Sessions.New != 3 {
		t.Errorf("%+v", done)
	}
	s := h.Session("thread/own")
	if got := historytest.Texts(h.Entries(s.ID)); got != "two" || s.Title != "kept" || s.Model != "m" {
		t.Errorf("%q %+v", got, s)
	}
	if got := historytest.Texts(h.Entries(h.Session("thread/lost").ID)); got != "three" {
		t.Errorf("%q", got)
	}
	h.Change(db, `PRAGMA user_version = 1`)
	if done := h.Import(db); done.Records.Imported != 0 {
		t.Errorf("%+v", done)
	}
}

// A file whose session moved to the database, with ids that the migration gave.
func TestGooseFileBeforeItsDatabase(t *testing.T) {
	h := newHouse(t)
	h.Import(sample(t, "constructed", "20250925_143012.jsonl"))
	db := h.load("", historytest.Read(t, sample(t, "constructed", "schema-17.sql")))
	h.Import(db)
	if s := h.Session("20250925_143012"); s.MessageCount != 2 || len(h.Calls(s.ID)) != 1 || s.InputTokens != 1100 {
		t.Errorf("%d messages, %+v", s.MessageCount, h.Calls(s.ID))
	}
}

func TestGooseCountsOnceWhatTheLedgerCarriesForward(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), `UPDATE sessions SET accumulated_input_tokens = 100, accumulated_output_tokens = 10`)
	h.Import(db)
	h.Change(db, `INSERT INTO usage_ledger (session_id, input_tokens, output_tokens, cost_source) VALUES ('20260314_1', 100, 10, 'carried_forward'), ('20260314_1', 7, 3, 'estimated')`)
	h.Import(db)
	h.Change(db, `UPDATE sessions SET name = 'changed'`)
	h.Import(db)
	if s := h.Session("20260314_1"); s.Title != "changed" || s.InputTokens != 107 || len(h.Calls(s.ID)) != 2 {
		t.Errorf("%+v", h.Calls(s.ID))
	}
}

func TestGooseExportWithBrokenJSONImportsWhatIsBeforeIt(t *testing.T) {
	h := newHouse(t)
	const begin = `{"id":"20260314_2","name":"n","conversation":[{"role":"user","created":1773478931,"content":[{"type":"text","text":"one"}]},`
	path := h.file("export.json", begin+`{"role":,"content":[]}]}`)
	done := h.Import(path)
	where := fmt.Sprintf("at byte %d", len(begin+`{"role":`))
	if len(done.Errors) != 1 || done.Errors[0].Path != path || !strings.Contains(done.Errors[0].Error, where) {
		t.Errorf("%+v, want %s", done.Errors, where)
	}
	if got := historytest.Texts(h.Entries(h.Session("20260314_2").ID)); got != "one" {
		t.Errorf("%q", got)
	}
	mended := h.file("export.json", begin+`{"role":"assistant","created":1773478932,"content":[{"type":"text","text":"two"}]}]}`)
	if done := h.Import(mended); done.Records.Imported != 1 || len(done.Errors) != 0 {
		t.Errorf("the whole export: %+v", done)
	}
}

func TestGooseExport(t *testing.T) {
	h := newHouse(t)
	text := `{"id":"20260314_2","name":"Fix the parser","working_dir":"/home/ana/parser","created_at":"2026-03-14T09:02:11Z","updated_at":"2026-03-14T09:31:40Z",
 "accumulated_usage":{"input_tokens":91800,"output_tokens":4600,"total_tokens":96400,"cache_read_input_tokens":70200,"cache_write_input_tokens":5100},"accumulated_cost":0.1873,
 "conversation":[{"id":"msg_a","role":"user","created":1773478931,"content":[{"type":"text","text":"hi"}],"metadata":{"userVisible":true,"agentVisible":true}},
  {"id":"msg_b","role":"assistant","created":1773478932,"content":[{"type":"text","text":"hello"}]}]}`
	path := h.file("export.json", text)
	done := h.Import(path)
	s := h.Session("20260314_2")
	if done.Records.Imported != 3 || s.Title != "Fix the parser" || s.InputTokens != 91800-70200-5100 ||
		s.CacheReadTokens != 70200 || s.CacheWriteTokens != 5100 || s.OutputTokens != 4600 || *s.CostNanoUSD != 187_300_000 {
		t.Errorf("%+v %+v", done, s)
	}
	if got := historytest.Texts(h.Entries(s.ID)); got != "hi hello" {
		t.Errorf("%q", got)
	}
	for name, bad := range map[string]string{
		"cut off": text[:400], "no id": `{"conversation":[]}`,
		"no list": `{"id":"x","conversation":{}}`,
	} {
		if done := h.Import(h.file("bad.json", bad)); len(done.Errors) == 0 {
			t.Errorf("%s: %+v", name, done)
		}
	}
}

// What Goose's database and its folder are is not changed by reading them, neither at rest
// nor beside a writer, nor where nothing may be written.
func TestGooseIsNeverWrittenTo(t *testing.T) {
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := newHouse(t)
		return h.House, h.load("", schema, say("a", "user", "one", 0))
	}, "20260314_1", say("b", "assistant", "two", 1), say("c", "user", "not yet", 2))
}

// The reader opens no table with secrets: here the page of such a table is damaged.
func TestGooseNeverReadsWhatMayHoldSecrets(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, say("a", "user", "one", 0), `CREATE TABLE provider_inventory_entries (k TEXT)`,
		`INSERT INTO provider_inventory_entries VALUES ('x')`)
	opened := testkit.Must(sql.Open("sqlite", db))(t)
	defer opened.Close()
	var page int64
	testkit.Check(t, opened.QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = 'provider_inventory_entries'`).Scan(&page))
	file, err := os.OpenFile(db, os.O_RDWR, 0)
	testkit.Check(t, err)
	_, err = file.WriteAt(bytes.Repeat([]byte{0x5a}, 4096), (page-1)*4096)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	var n int
	if opened.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM provider_inventory_entries`).Scan(&n) == nil {
		t.Fatal("the table can be read: this test shows nothing")
	}
	done := h.Import(db)
	if len(done.Errors) != 0 || done.Records.Skipped["without conversations, not opened"] != 1 {
		t.Errorf("%+v", done)
	}
}
