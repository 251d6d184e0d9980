package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/opencode"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// Of a program that keeps its sessions in a database each is a file here, whose lines are statements.

// load makes the database of what is there.
func (w *writing) load() {
	w.Helper()
	testkit.Check(w, os.MkdirAll(filepath.Dir(filepath.Join(w.dir, w.base)), 0o700))
	scripts := []string{w.schema}
	for _, f := range w.files {
		if f.away {
			continue
		}
		texts := make([]string, len(f.lines))
		for i, l := range f.lines {
			texts[i] = l.text
		}
		if w.ends != nil { // of the first line, which is no statement, and the others
			texts[0] = w.ends(f)
		}
		for _, text := range texts {
			scripts = append(scripts, strings.ReplaceAll(text, updated, fmt.Sprint(f.updated.UnixMilli())))
		}
	}
	w.followed.Load(filepath.Join(w.dir, w.base), scripts...)
}

// updated stands for when a session was written last, in milliseconds.
const updated = "{updated}"

func writesGoose() *writer {
	begin := func(w *writing, f *file, name string) {
		f.id = fmt.Sprintf("20260301_%d", w.fresh())
		f.path = f.id
		f.add("", `INSERT INTO sessions (id, name, created_at, updated_at) VALUES ('%s', '%s', '%s', '%s')`, f.id, name, w.now.Format(time.DateTime), updated)
		f.lines[0].ends = true
	}
	return &writer{
		name: "goose", either: true, source: func(func() time.Time) history.Source { return goose.New(historytest.NoEnv) },
		base: "sessions.db", schema: `
			CREATE TABLE schema_version (version INTEGER PRIMARY KEY); INSERT INTO schema_version VALUES (17);
			CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT DEFAULT '', working_dir TEXT DEFAULT '/w', session_type TEXT DEFAULT 'user',
				created_at TIMESTAMP, updated_at TIMESTAMP, parent_session_id TEXT);
			CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
			CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER, model TEXT, input_tokens INTEGER,
				output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);`,
		begin: func(w *writing, f *file) { begin(w, f, w.says()) },
		turn: func(w *writing, f *file) {
			put := func(role, content string) {
				f.add("", `INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES ('msg_%d', '%s', '%s', '[%s]', %d)`, w.fresh(), f.id, role, content, w.now.Unix())
			}
			text := func() string { return fmt.Sprintf(`{"type":"text","text":%q}`, w.says()) }
			put("user", text())
			if w.pick(2) == 0 {
				call := fmt.Sprintf("call_%d", w.fresh())
				put("assistant", fmt.Sprintf(`{"type":"toolRequest","id":%q,"toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}`, call))
				put("user", fmt.Sprintf(`{"type":"toolResponse","id":%q,"toolResult":{"status":"success","value":[%s]}}`, call, text()))
			}
			put("assistant", text())
		},
		fork: func(w *writing, f, from *file) {
			begin(w, f, w.says())
			for _, l := range from.lines[1:w.whole(from)] {
				f.lines = append(f.lines, line{l.id, strings.ReplaceAll(l.text, "'"+from.id+"'", "'"+f.id+"'"), l.ends})
			}
			w.say(f)
		},
	}
}

func writesOpencode() *writer {
	begin := func(w *writing, f *file, parent string) {
		f.id = fmt.Sprintf("ses_%06d", 999999-w.fresh())
		f.path = f.id
		f.add("", `INSERT INTO session (id, project_id, parent_id, directory, title, time_created, time_updated) VALUES ('%s', 'p', %s, '/w', '%s', %d, %s)`, f.id, parent, w.says(), w.now.UnixMilli(), updated)
		f.lines[0].ends = true
	}
	return &writer{
		name: "opencode", either: true, source: func(now func() time.Time) history.Source {
			return opencode.New(historytest.NoEnv, now)
		},
		base: "opencode.db", schema: `
			CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT,
				revert TEXT, permission TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_archived INTEGER, model TEXT, cost REAL DEFAULT 0);
			CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
			CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
			CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL, seq INTEGER NOT NULL);`,
		begin: func(w *writing, f *file) { begin(w, f, "NULL") },
		turn: func(w *writing, f *file) {
			at := w.now.UnixMilli()
			put := func(data string, parts ...string) {
				id := fmt.Sprintf("msg_%012x", w.fresh())
				sql := fmt.Sprintf(`INSERT INTO message VALUES ('%s', '%s', %d, %d, '%s');`, id, f.id, at, at, data)
				for i, p := range parts {
					sql += fmt.Sprintf(` INSERT INTO part VALUES ('prt_%s_%d', '%s', '%s', %d, %d, '%s');`, id, i, id, f.id, at, at, p)
				}
				f.lines = append(f.lines, line{text: sql})
				at++
			}
			text := func() string { return fmt.Sprintf(`{"type":"text","text":%q}`, w.says()) }
			reply := func(finish string, parts ...string) {
				put(fmt.Sprintf(`{"role":"assistant","time":{"created":%d,"completed":%d},"modelID":"m","providerID":"p","finish":%q,"cost":0.001,"tokens":{"input":%d,"output":1}}`, at, at+1, finish, w.fresh()), parts...)
			}
			put(fmt.Sprintf(`{"role":"user","time":{"created":%d}}`, at), text())
			if w.pick(2) == 0 {
				reply("tool-calls", fmt.Sprintf(`{"type":"tool","callID":"call_%d","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":%q,"time":{"start":%d,"end":%d}}}`, w.fresh(), w.says(), at, at+5))
			}
			reply("stop", text())
		},
		fork: func(w *writing, f, from *file) {
			begin(w, f, "NULL")
			again := strings.NewReplacer("'"+from.id+"'", "'"+f.id+"'", "msg_", fmt.Sprintf("msg_%dx", w.fresh()))
			for _, l := range from.lines[1:w.whole(from)] {
				f.lines = append(f.lines, line{l.id, again.Replace(l.text), l.ends})
			}
			w.say(f)
		},
		agent: func(w *writing, f, from *file) {
			begin(w, f, "'"+from.id+"'")
			w.say(f)
		},
	}
}
