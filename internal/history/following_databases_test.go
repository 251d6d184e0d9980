package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/crush"
	"sessiond/internal/history/devin"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/hermes"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/zed"
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

// writesZed: a thread is one document, whose entries are comments here until its row is written.
func writesZed() *writer {
	entry := strings.NewReplacer("/*", "", "*/", "")
	return &writer{
		name: "zed", either: true,
		source: func(now func() time.Time) history.Source { return zed.New(historytest.NoUser, now) },
		base:   "threads.db", schema: `CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, created_at TEXT, updated_at TEXT, data_type TEXT, data BLOB);`,
		begin: func(w *writing, f *file) {
			f.path = f.id
			f.lines = append(f.lines, line{text: fmt.Sprintf(`'%s', '%s', '%s'`, f.id, w.says(), w.now.Format(time.RFC3339))})
		},
		turn: func(w *writing, f *file) {
			id := fmt.Sprintf("u%d", w.fresh())
			f.add(id, `/*{"User":{"id":%q,"content":[{"Text":%q}]}}*/`, id, w.says())
			f.add("", `/*{"Agent":{"content":[{"Text":%q}]}}*/`, w.says())
		},
		change: changeWords,
		ends: func(f *file) string {
			var said []string
			for _, l := range f.lines[1:] {
				said = append(said, entry.Replace(l.text))
			}
			return fmt.Sprintf(`INSERT INTO threads VALUES (%s, '%s', 'json', '{"version":"0.3.0","messages":[%s]}')`, f.lines[0].text,
				f.updated.Format(time.RFC3339), strings.Join(said, ","))
		},
	}
}

func writesCrush() *writer {
	begin := func(w *writing, f *file, parent string) {
		f.path = f.id
		f.add("", `INSERT INTO sessions VALUES ('%s', %s, '%s', 0, %d, %s / 1000)`, f.id, parent, w.says(), w.now.Unix(), updated)
		f.lines[0].ends = true
	}
	return &writer{
		name: "crush", source: func(now func() time.Time) history.Source { return crush.New(historytest.NoUser, now) },
		base: "crush.db", schema: `
			CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, cost REAL, created_at INTEGER, updated_at INTEGER);
			CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER, updated_at INTEGER);`,
		begin: func(w *writing, f *file) { begin(w, f, "NULL") },
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				ends := ""
				if role == "assistant" {
					ends = `,{"type":"finish","data":{"reason":"end_turn"}}`
				}
				return fmt.Sprintf(`INSERT INTO messages VALUES ('%s', '%s', '%s', '[{"type":"text","data":{"text":%q}}%s]', %d, %s)`, id, f.id,
					role, text, ends, w.now.Unix(), updated)
			})
		},
		change: changeWords,
		agent: func(w *writing, f, from *file) {
			begin(w, f, "'"+from.id+"'")
			w.say(f)
		},
	}
}

func writesHermes() *writer {
	begin := func(w *writing, f *file, marks, parent string) {
		f.path = f.id
		f.add("", `INSERT INTO sessions VALUES ('%s', 'cli', '%s', '%s', %s, %d, %s / 1000.0)`, f.id, w.says(), marks, parent, w.now.Unix(), updated)
		f.lines[0].ends = true
	}
	return &writer{
		name: "hermes", source: func(now func() time.Time) history.Source { return hermes.New(historytest.NoUser, now) },
		base: "state.db", schema: `
			CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, title TEXT, model_config TEXT, parent_session_id TEXT, started_at REAL, last_activity_at REAL);
			CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, timestamp REAL);`,
		begin: func(w *writing, f *file) { begin(w, f, "", "NULL") },
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, _, text string) string {
				return fmt.Sprintf(`INSERT INTO messages (session_id, role, content, timestamp) VALUES ('%s', '%s', '%s', %d)`, f.id, role, text,
					w.now.Unix())
			})
		},
		fork: func(w *writing, f, from *file) {
			begin(w, f, `{"_branched_from":"`+from.id+`"}`, "'"+from.id+"'")
			for _, l := range w.copied(from) {
				f.lines = append(f.lines, line{l.id, strings.ReplaceAll(l.text, "'"+from.id+"'", "'"+f.id+"'"), l.ends})
			}
			w.say(f)
		},
		agent: func(w *writing, f, from *file) {
			begin(w, f, `{"_delegate_from":"`+from.id+`"}`, "'"+from.id+"'")
			w.say(f)
		},
	}
}

func writesDevin() *writer {
	return &writer{
		name: "devin", source: func(now func() time.Time) history.Source { return devin.New(historytest.NoUser, now) },
		base: "sessions.db", schema: `
			CREATE TABLE sessions (id TEXT PRIMARY KEY, working_directory TEXT, created_at INTEGER, last_activity_at INTEGER, title TEXT, main_chain_id INTEGER);
			CREATE TABLE message_nodes (row_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, node_id INTEGER, parent_node_id INTEGER, chat_message TEXT, created_at INTEGER);`,
		begin: func(w *writing, f *file) {
			f.path = f.id
			f.lines = append(f.lines, line{text: fmt.Sprintf(`'%s', '/w', %d, %s, '%s'`, f.id, w.now.Unix(), updated, w.says())})
		},
		turn: func(w *writing, f *file) {
			for _, role := range []string{"user", "assistant"} {
				parent, id := "NULL", w.fresh()
				if last := f.last(); last != "" {
					parent = last
				}
				used := ""
				if role == "assistant" {
					used = fmt.Sprintf(`,"metadata":{"metrics":{"input_tokens":%d,"output_tokens":5}}`, w.fresh())
				}
				f.add(fmt.Sprint(id), `INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message, created_at) VALUES ('%s', %d, %s, '{"message_id":"m%d","role":%q,"content":%q%s}', %d)`, f.id, id, parent, id, role, w.says(), used, w.now.Unix())
				w.now = w.now.Add(time.Second)
			}
		},
		change: changeWords,
		ends: func(f *file) string {
			head := f.last()
			if head == "" {
				head = "NULL"
			}
			return fmt.Sprintf(`INSERT INTO sessions VALUES (%s, %s)`, f.lines[0].text, head)
		},
	}
}
