package opencode_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// schema is a small database, as opencode 1.18 makes it, with one session.
const schema = `
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT,
	revert TEXT, permission TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_archived INTEGER, model TEXT, cost REAL DEFAULT 0);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL, seq INTEGER NOT NULL);
INSERT INTO session (id, project_id, directory, title, time_created, time_updated) VALUES ('ses_1', 'p', '/w', 'one', 1770109200000, 1770109200000);`

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// put is a message's row at a second, with its parts.
func put(id string, second int, data string, parts ...string) string {
	at := 1770109200000 + second*1000
	sql := fmt.Sprintf("INSERT INTO message VALUES (%s, 'ses_1', %d, %d, %s);", quote(id), at, at, quote(data))
	for i, p := range parts {
		sql += fmt.Sprintf("INSERT INTO part VALUES (%s, %s, 'ses_1', %d, %d, %s);", quote(fmt.Sprintf("prt_%s_%d", id, i)),
			quote(id), at, at, quote(p))
	}
	return sql
}

func user(id string, second int, text string) string {
	return put(id, second, fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, 1770109200000+second*1000), textPart(text))
}

func reply(id string, second int, text string) string {
	at := 1770109200000 + second*1000
	return put(id, second, fmt.Sprintf(`{"role":"assistant","time":{"created":%d,"completed":%d},"modelID":"m","providerID":"p","finish":"stop","cost":0.001,"tokens":{"input":%d,"output":1}}`, at, at+500, second), textPart(text))
}

func textPart(text string) string {
	return fmt.Sprintf(`{"type":"text","text":%s}`, session.JSONOf(text))
}

const updated = `UPDATE session SET time_updated = time_updated + 1`

func TestOpencodeRowsOfAnyKind(t *testing.T) {
	big := strings.Repeat("x", large())
	for _, test := range []struct {
		name, sql     string
		texts         string // of what came in
		imported, raw int    // messages and parts
		problems      int
	}{
		{"nothing", "", "", 0, 0, 0},
		{"a message that is no JSON", put("a", 1, `{"role":`, textPart("one")), "{\"role\":\n" + textPart("one"), 0, 2, 1},
		{"a message of bytes that are no UTF-8", `INSERT INTO message VALUES ('a', 'ses_1', 1, 1, CAST(x'7b22726f6c65223a2275736572222c2278223a22ff227d' AS TEXT));`, "", 1, 0, 0},
		{"a part that is no JSON", put("a", 1, `{"role":"user"}`, `{"type":"te`, textPart("one")), "one", 3, 0, 0},
		{"an unknown role", put("a", 1, `{"role":"robot"}`), `{"role":"robot"}`, 0, 1, 1},
		{"an unknown part", put("a", 1, `{"role":"user"}`, `{"type":"dream","of":"sheep"}`, textPart("one")), "one", 3, 0, 0},
		{
			"nested too deep", put("a", 1, `{"role":"user","x":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`),
			`{"role":"user","x":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, 0, 1, 1,
		},
		{
			"NUL and half a pair", put("a", 1, `{"role":"user"}`, `{"type":"text","text":"a\u0000b\ud800"}`), "a\ufffdb\ufffd",
			2, 0, 0,
		},
		{"a large part", put("a", 1, `{"role":"user"}`, textPart(big)), big, 2, 0, 0},
		{"parts without their message", `INSERT INTO part VALUES ('prt_x', 'gone', 'ses_1', 1, 1, '{"type":"text","text":"left"}');` + user("a", 1, "one"), "one {}\n" + `{"type":"text","text":"left"}`, 2, 1, 1},
		{"a session that is its own parent", `UPDATE session SET parent_id = id;` + user("a", 1, "one"), "one", 2, 0, 0},
		{"an answer to a message that is not there", put("a", 1, `{"role":"assistant","parentID":"gone","time":{"created":1,"completed":2}}`, textPart("one")), "one", 2, 0, 0},
		{
			"order by time, then by id across the wrap", user("msg_000000000001AAAAAAAAAAAAAA", 5, "two") +
				user("msg_fffffffffff1AAAAAAAAAAAAAA", 5, "one") + user("msg_aaaaaaaaaaaaAAAAAAAAAAAAAA", 6, "three"),
			"one two three", 6, 0, 0,
		},
		{
			"a thousand parts too many", put("a", 1, `{"role":"user"}`, manyParts(2000)...),
			strings.TrimSpace(strings.Repeat("x\n", 512)), 2001, 0, 0,
		},
		{"a picture, a text file and a folder", put("a", 1, `{"role":"user"}`, `{"type":"file","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`,
			`{"type":"file","mime":"text/plain","filename":"a.txt","url":"data:text/plain;base64,aGVsbG8="}`, `{"type":"file","mime":"application/x-directory","url":"file:///w"}`), "", 4, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			db := h.load("", schema, test.sql)
			done := h.Import(db)
			if done.Records.Imported != 1+test.imported || done.Records.Raw != test.raw || len(done.Errors) != test.problems {
				t.Errorf("%+v %.300s", done.Records, fmt.Sprint(done.Errors))
			}
			var got []string
			for _, m := range h.Entries(h.Session("ses_1").ID) {
				if m.Kind == session.KindUnknown {
					got = append(got, m.Parts[0].Content())
				} else if text := m.Text(); text != "" {
					got = append(got, text)
				}
			}
			if strings.Join(got, " ") != test.texts {
				t.Errorf("%.300q", got)
			}
			h.Change(db, `PRAGMA user_version = 1`)
			if done := h.Import(db); done.Records.Imported+done.Records.Raw != 0 {
				t.Errorf("the second import: %+v", done.Records)
			}
		})
	}
}

func manyParts(n int) []string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = textPart("x")
	}
	return parts
}

func TestOpencodeDatabasesOfAnyKind(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(h *house) string
		says string
	}{
		{"an empty file", func(h *house) string { return h.file("opencode.db", "") }, "empty"},
		{"text", func(h *house) string {
			return h.file("opencode.db", "this is no database, though it is long enough")
		}, "no SQLite database"},
		{"another program's", func(h *house) string {
			return h.load("", `CREATE TABLE session (id TEXT); CREATE TABLE other (x)`)
		}, "no opencode database"},
		{"half of one", func(h *house) string {
			return h.file("opencode.db", historytest.Read(h.T,
				h.load("", schema, user("a", 1, strings.Repeat("long ", 20000))))[:20000])
		}, "damaged"},
		{"a newer one", func(h *house) string {
			return h.load("", schema, user("a", 1, "one"), `ALTER TABLE session ADD COLUMN mood TEXT; ALTER TABLE session DROP COLUMN cost; CREATE TABLE dreams (id); UPDATE session SET mood = 'good'`)
		}, ""},
		{"a message whose session is gone", func(h *house) string {
			return h.load("", schema, user("a", 1, "one"), `DELETE FROM session`)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			done := h.Import(test.make(h))
			if got := fmt.Sprint(done.Errors); test.says == "" && len(done.Errors) != 0 || !strings.Contains(got, test.says) {
				t.Errorf("%s", got)
			}
			if test.says == "" {
				if got := historytest.Texts(h.Entries(h.Session("ses_1").ID)); got != "one" {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

func (h *house) file(name, text string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(h, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestOpencodeChangesInPlace(t *testing.T) {
	h := newHouse(t)
	tool := func(rest string) string {
		return `{"type":"tool","tool":"read","callID":"c","state":{"status":"completed","input":{},"output":"out","time":{"start":1,"end":5` + rest + `}}}`
	}
	db := h.load("", schema, user("a", 1, "one"), put("b", 2, `{"role":"assistant","time":{"created":1770109202000,"completed":1770109203000},"finish":"stop"}`, tool("")), user("c", 3, "three"), reply("d", 4, "four"))
	h.Import(db)

	// An output that the model does not see any more is no other message.
	h.Change(db, updated, `UPDATE part SET data = `+quote(tool(`,"compacted":1770112800000`))+` WHERE message_id = 'b'`)
	if done := h.Import(db); done.Records.Imported != 0 {
		t.Errorf("pruned: %+v", done.Records)
	}
	s := h.Session("ses_1")
	if records, err := h.Store.Compactions(t.Context(), s.ID); err != nil || len(records) != 1 ||
		records[0].Strategy != session.StrategyPrune || records[0].Status != session.StatusDone {
		t.Errorf("%+v %v", records, err)
	}
	if effective, _ := h.Store.Effective(t.Context(), s); effective == nil {
		t.Error("the pruning is not in force")
	}

	// A text that was edited is another version, beside the one that was imported.
	h.Change(db, updated, `UPDATE part SET data = `+quote(textPart("otherwise"))+` WHERE message_id = 'd'`)
	if done := h.Import(db); done.Records.Imported != 2 {
		t.Errorf("edited: %+v", done.Records)
	}
	if s = h.Session("ses_1"); s.MessageCount != 6 || !strings.HasPrefix(h.Keys(s)[len(h.Keys(s))-1], "d~") {
		t.Errorf("%v", h.Keys(s))
	}

	// Taken back, then said again.
	h.Change(db, updated, `UPDATE session SET revert = '{"messageID":"c"}'`)
	h.Import(db)
	if got := strings.Join(h.Keys(h.Session("ses_1")), " "); got != "a b b#r" {
		t.Errorf("reverted: %s", got)
	}
	h.Change(db, updated, `UPDATE session SET revert = NULL`)
	h.Import(db)
	if got := strings.Join(h.Keys(h.Session("ses_1")), " "); !strings.HasPrefix(got, "a b b#r c d~") {
		t.Errorf("not reverted any more: %s", got)
	}
	h.Change(db, updated, `DELETE FROM message WHERE id IN ('c', 'd'); DELETE FROM part WHERE message_id IN ('c', 'd')`, user("e", 9, "instead"))
	h.Import(db)
	if s = h.Session("ses_1"); strings.Join(h.Keys(s), " ") != "a b b#r e" || s.MessageCount != 7 {
		t.Errorf("a branch: %v, %d messages", h.Keys(s), s.MessageCount)
	}
}

func TestOpencodeTitleBeforeThereIsOne(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, `UPDATE session SET title = 'New session - 2026-02-03T09:00:00.000Z'`, user("a", 1, "why is it slow?"))
	h.Import(db)
	if s := h.Session("ses_1"); s.Title != "why is it slow?" {
		t.Errorf("%q", s.Title)
	}
	h.Change(db, updated, `UPDATE session SET title = 'Slow queries'`)
	h.Import(db)
	if s := h.Session("ses_1"); s.Title != "Slow queries" {
		t.Errorf("%q", s.Title)
	}
}

func TestOpencodeUnfinishedReplyWaits(t *testing.T) {
	h := newHouse(t)
	h.now = time.UnixMilli(1770109205000)
	db := h.load("", schema, user("a", 1, "one"), put("b", 2, `{"role":"assistant","time":{"created":1770109202000}}`,
		textPart("tw")), user("c", 3, "three"))
	done := h.Import(db)
	if done.Records.Imported != 3 || done.Records.Waiting != 4 {
		t.Errorf("%+v", done.Records)
	}
	if got := historytest.Texts(h.Entries(h.Session("ses_1").ID)); got != "one" {
		t.Errorf("%q", got)
	}
	h.now = h.now.Add(10 * time.Minute) // nothing changed: it died
	if done := h.Import(db); done.Records.Imported != 4 {
		t.Errorf("%+v", done.Records)
	}
	rows := h.Entries(h.Session("ses_1").ID)
	if got := historytest.Texts(rows); got != "one tw three" || rows[1].Finish != session.FinishAborted {
		t.Errorf("%q %s", got, rows[1].Finish)
	}
}

func TestOpencodeVersion2Rows(t *testing.T) {
	h := newHouse(t)
	row := func(seq int, kind, data string) string {
		return fmt.Sprintf("INSERT INTO session_message VALUES ('e%d', 'ses_1', '%s', %d, 0, %s, %d);", seq, kind,
			1770109200000+seq*1000, quote(data), seq)
	}
	db := h.load("", schema,
		row(1, "user", `{"text":"read it","files":[{"mime":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]}`),
		row(2, "assistant", `{"agent":"build","model":{"id":"m","providerID":"p"},"time":{"created":1770109202000,"completed":1770109203000},"finish":"stop","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":0,"cache":{"read":0,"write":0}},
			"content":[{"type":"reasoning","id":"r","text":"hm"},{"type":"tool","id":"c1","name":"read","time":{"created":1,"ran":2,"completed":9},"state":{"status":"completed","input":{"filePath":"a"},"content":[{"type":"text","text":"hello"}]}},{"type":"text","id":"t","text":"It says hello."}]}`),
		row(3, "compaction", `{"reason":"auto","summary":"In short.","recent":"lately"}`),
		row(4, "shell", `{"callID":"s","command":"ls","output":"a"}`), row(5, "model-switched", `{"model":"x"}`),
		row(6, "synthetic", `{"text":"go on"}`))
	done := h.Import(db)
	s := h.Session("ses_1")
	if done.Records.Imported != 1+6 || done.Records.Raw != 0 || s.CompactionCount != 1 || s.OutputTokens != 2 ||
		*s.CostNanoUSD != 500_000_000 {
		t.Errorf("%+v %+v", done.Records, s)
	}
	overlay, err := h.Store.Effective(t.Context(), s)
	if err != nil || overlay == nil || overlay.Summary != "In short." || overlay.Through.Seq != 3 {
		t.Fatalf("%+v %v", overlay, err)
	}
	rows := h.Entries(s.ID)
	if rows[2].Role != session.Tool || rows[2].Parts[0].CallPartID == nil || rows[2].Parts[0].Text != "hello" ||
		*rows[2].Parts[0].DurationMS != 7 {
		t.Errorf("%+v", rows[2].Parts[0])
	}
	if last := rows[len(rows)-1]; last.Origin != session.Program || last.Text() != "go on" {
		t.Errorf("%+v", last)
	}
}

func TestOpencodeOldestFiles(t *testing.T) {
	h := newHouse(t)
	root := h.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, "project", "home-dev-demo", "storage", "session", name)
		testkit.Check(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	write("info/ses_1.json", `{"id":"ses_1","version":"0.1.174","title":"Old","time":{"created":1750000000000,"updated":1750000001000}}`)
	write("message/ses_1/msg_a.json", `{"id":"msg_a","role":"user","parts":[{"type":"text","text":"read a"}],"metadata":{"time":{"created":1750000000000},"sessionID":"ses_1","tool":{}}}`)
	write("message/ses_1/msg_b.json", `{"id":"msg_b","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"Hi"},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1","toolName":"read","args":{"filePath":"a"},"result":"inside"}},{"type":"step-start"},{"type":"text","text":"Done"}],
		"metadata":{"time":{"created":1750000000500,"completed":1750000001000},"sessionID":"ses_1","tool":{"c1":{"title":"a","time":{"start":1,"end":2}}},"assistant":{"modelID":"m1","providerID":"mock","path":{"cwd":"/","root":"/"},"cost":0.001,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"system":[]}}}`)
	write("info/ses_2.json", `{"id":"ses_2","title":"Later","time":{"created":1750000100000}}`)
	write("message/ses_2/msg_c.json", `{"id":"msg_c","role":"user","time":{"created":1750000100000}}`)
	write("part/ses_2/msg_c/prt_1.json", `{"id":"prt_1","type":"text","text":"apart"}`)
	write("message/ses_2/msg_d.json", ``)
	done := h.Import(root)
	if done.Sessions.New != 2 || done.Records.Imported != 2+2+2 || done.Records.Skipped["unreadable file"] != 1 ||
		len(done.Errors) != 1 || !strings.HasSuffix(done.Errors[0].Path, "msg_d.json") {
		t.Errorf("%+v", done)
	}
	s := h.Session("ses_1")
	rows := h.Entries(s.ID)
	if got := historytest.Texts(rows); got != "read a Hi inside Done" || s.Model != "m1" || s.OutputTokens != 1 ||
		rows[2].Role != session.Tool || *rows[2].Parts[0].DurationMS != 1 {
		t.Errorf("%q %+v", got, s)
	}
	if got := historytest.Texts(h.Entries(h.Session("ses_2").ID)); got != "apart" {
		t.Errorf("%q", got)
	}
	write("message/ses_2/msg_d.json", `{"id":"msg_d","role":"user","time":{"created":1750000200000}}`) // it was being written
	if done := h.Import(root); done.Records.Imported != 1 || len(done.Errors) != 0 {
		t.Errorf("%+v", done)
	}
}

func TestOpencodeExportsOfAnyKind(t *testing.T) {
	info := `{"id":"ses_1","title":"t","time":{"created":1770109200000}}`
	one := `{"info":{"id":"a","role":"user","time":{"created":1770109200000}},"parts":[{"id":"p","type":"text","text":"one"}]}`
	for _, test := range []struct{ name, text, says, texts string }{
		{"an export", `{"info":` + info + `,"messages":[` + one + `]}`, "", "one"},
		{"messages before the session", `{"messages":[` + one + `],"info":` + info + `}`, "", "one"},
		{"a share", `[{"type":"session","data":` + info + `},{"type":"message","data":{"id":"a","role":"user","time":{"created":1770109200000}}},{"type":"part","data":{"id":"p","messageID":"a","type":"text","text":"one"}}]`, "", "one"},
		{"empty", "", "empty", ""},
		{"another program's", `{"hello":"world"}`, "no opencode session", ""},
		{"a list of something else", `[1,2]`, "no opencode session", ""},
		{"cut off", `{"info":` + info + `,"messages":[` + one[:40], "cannot be read", ""},
		{"no list", `{"info":` + info + `,"messages":{}}`, "cannot be read", ""},
		{"a message that is none", `{"info":` + info + `,"messages":[7,` + one + `]}`, "kept raw", "one"},
		{"redacted", `{"info":{"id":"ses_1","title":"[redacted:title:ses_1]","time":{"created":1770109200000}},"messages":[` + one + `]}`, "", "one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			done := h.Import(h.file("x.json", test.text))
			if got := fmt.Sprint(done.Errors); test.says == "" && len(done.Errors) != 0 || !strings.Contains(got, test.says) {
				t.Errorf("%s", got)
			}
			if test.texts == "" {
				return
			}
			if got := h.Said("ses_1"); got != test.texts {
				t.Errorf("%q", got)
			}
		})
	}
}

// opencode's database and its folder are not changed by reading them.
func TestOpencodeIsNeverWrittenTo(t *testing.T) {
	historytest.DatabaseIsLeftAlone(t, func(t *testing.T) (*historytest.House, string) {
		h := newHouse(t)
		return h.House, h.load("", schema, user("a", 1, "one"))
	}, "ses_1", reply("b", 2, "two"), user("c", 3, "not yet"))
}

// The reader opens no table and no file with credentials: here the pages of such tables are damaged,
// and such files cannot be parsed.
func TestOpencodeNeverReadsCredentials(t *testing.T) {
	h := newHouse(t)
	db := h.load("", schema, user("a", 1, "one"), `CREATE TABLE account (t TEXT); INSERT INTO account VALUES ('x'); CREATE TABLE credential (t TEXT); INSERT INTO credential VALUES ('x');
		CREATE TABLE session_share (session_id, secret); INSERT INTO session_share VALUES ('ses_1', 'x'); CREATE TABLE auth_tokens (t); INSERT INTO auth_tokens VALUES ('x')`)
	opened := testkit.Must(sql.Open("sqlite", db))(t)
	defer opened.Close()
	file := testkit.Must(os.OpenFile(db, os.O_RDWR, 0))(t)
	for _, table := range []string{"account", "credential", "session_share", "auth_tokens"} {
		var page int64
		testkit.Check(t, opened.QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = ?`,
			table).Scan(&page))
		testkit.Must(file.WriteAt(bytes.Repeat([]byte{0x5a}, 4096), (page-1)*4096))(t)
		var n int
		if opened.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n) == nil {
			t.Fatalf("%s can be read: this test shows nothing", table)
		}
	}
	testkit.Check(t, file.Close())
	for _, name := range []string{"auth.json", "mcp-auth.json"} {
		testkit.Check(t, os.WriteFile(filepath.Join(filepath.Dir(db), name), []byte(`{"info":{"id":"ses_9"},"messages":[]}`),
			0o600))
	}
	done := h.Import(filepath.Dir(db))
	if len(done.Errors) != 0 || done.Records.Skipped["without conversations, not opened"] != 4 || done.Sessions.New != 1 {
		t.Errorf("%+v", done)
	}
	if found, problems, err := h.Source.Find(t.Context(), []string{h.file("sub/mcp-auth.json", "{}")}); err != nil ||
		len(found) != 0 || len(problems) != 1 {
		t.Errorf("%v %v %v", found, problems, err)
	}
	if found, _, err := h.Source.Find(t.Context(), []string{filepath.Dir(h.file("more/auth.json", "{}"))}); err != nil ||
		len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
}

// The reader holds only the first messages of a large session, and reads the others again.
func TestOpencodeLargeSession(t *testing.T) {
	text := func(i int) string { return fmt.Sprint(i, strings.Repeat(" long", 200<<10)) }
	var rows, rows2, messages []string
	for i := range 12 {
		rows = append(rows, user(fmt.Sprint("m", i), i, text(i)))
		rows2 = append(rows2, prompt2(i, i, text(i)))
		messages = append(messages, fmt.Sprintf(`{"info":{"id":"m%d","role":"user","time":{"created":%d}},"parts":[%s]}`, i, 1770109200000+i, textPart(text(i))))
	}
	for name, load := range map[string]func(h *house) string{
		"rows": func(h *house) string { return h.load("", schema, strings.Join(rows, "")) },
		"version 2": func(h *house) string {
			return h.load("", strings.ReplaceAll(schema2+messages2+strings.Join(rows2, ""), "ses_2", "ses_1"))
		},
		"export": func(h *house) string {
			return h.file("x.json", `{"info":{"id":"ses_1","title":"t"},"messages":[`+strings.Join(messages, ",")+`]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			if done := h.Import(load(h)); len(done.Errors) != 0 || done.Records.Waiting != 0 {
				t.Errorf("%+v", done)
			}
			all := h.Entries(h.Session("ses_1").ID)
			for i, m := range all {
				if m.Text() != text(i) {
					t.Errorf("message %d says %.20q", i, m.Text())
				}
			}
			if len(all) != 12 {
				t.Errorf("%d messages", len(all))
			}
		})
	}
}
