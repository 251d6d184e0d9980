package bench_test

import (
	"database/sql"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

var cursorSize = flag.Int("cursor", 100, "MB of Cursor's database in one large conversation")

// form writes sessions as a program does that writes a session anew. said has the texts of a conversation, a person's
// first, then in turn.
type form struct {
	source string
	write  func(dir string, sessions int, said []string) error
}

// joined makes an entry of each text, the i-th one of an alternating conversation, with commas between.
func joined(said []string, entry func(i int, isReply bool, text string) string) string {
	all := make([]string, len(said))
	for i, text := range said {
		all[i] = entry(i, i%2 == 1, string(session.JSONOf(text)))
	}
	return strings.Join(all, ",")
}

// filesOf returns a form of one file a session.
func filesOf(source string, name func(n int) string, text func(n int, said []string) string) form {
	return form{source, func(dir string, sessions int, said []string) error {
		for n := range sessions {
			if err := writeOld(filepath.Join(dir, name(n)), text(n, numbered(n, said))); err != nil {
				return err
			}
		}
		return nil
	}}
}

// exportOf returns a form of one file of all sessions.
func exportOf(source, name string, text func(n int, said []string) string) form {
	return form{source, func(dir string, sessions int, said []string) error {
		all := make([]string, sessions)
		for n := range all {
			all[n] = text(n, numbered(n, said))
		}
		return writeOld(filepath.Join(dir, name), "["+strings.Join(all, ",\n")+"]")
	}}
}

// numbered has the conversations begin each in its own way.
func numbered(n int, said []string) []string {
	said = slices.Clone(said)
	said[0] = fmt.Sprintf("%d: %s", n, said[0])
	return said
}

// writeOld writes a file that nobody wrote to for long.
func writeOld(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, stamp(0), stamp(0))
}

func role(isReply bool) string {
	if isReply {
		return "assistant"
	}
	return "user"
}

func forms() []form {
	at := func(i int) int64 { return stamp(i).UnixMilli() }
	return []form{
		{"cursor", writeCursor},
		filesOf("vscode-copilot", func(n int) string { return "workspaceStorage/1/chatSessions/" + uuid(n) + ".jsonl" },
			func(n int, said []string) string {
				text := fmt.Sprintf(`{"kind":0,"v":{"version":3,"creationDate":%d,"sessionId":%q,"requests":[]}}`, at(0), uuid(n))
				for i := 0; i+1 < len(said); i += 2 {
					text += fmt.Sprintf("\n"+`{"kind":2,"k":["requests"],"v":[{"requestId":"r%d","timestamp":%d,"message":{"text":%s},"response":[],"modelState":{"value":0}}]}`, i, at(i), session.JSONOf(said[i]))
					for part := range 4 { // as it is streamed
						text += fmt.Sprintf("\n"+`{"kind":2,"k":["requests",%d,"response"],"v":[{"value":%s}],"i":0}`, i/2, session.JSONOf(said[i+1][:len(said[i+1])*(part+1)/4]))
					}
					text += fmt.Sprintf("\n"+`{"kind":1,"k":["requests",%d,"modelState"],"v":{"value":1}}`, i/2)
				}
				return text + "\n"
			}),
		filesOf("cline", func(n int) string { return fmt.Sprintf("sessions/%[1]s/%[1]s.messages.json", uuid(n)) },
			func(n int, said []string) string {
				return `{"version":1,"sessionId":"` + uuid(n) + `","messages":[` + joined(said, func(i int, r bool, text string) string {
					return fmt.Sprintf(`{"id":"m%d","role":%q,"content":[{"type":"text","text":%s}],"ts":%d}`, i, role(r), text, at(i))
				}) + `]}`
			}),
		filesOf("roo-code", func(n int) string {
			return "rooveterinaryinc.roo-cline/tasks/" + uuid(n) + "/api_conversation_history.json"
		}, func(_ int, said []string) string {
			return `[` + joined(said, func(i int, r bool, text string) string {
				if !r {
					text = `"<user_message>` + text[1:len(text)-1] + `</user_message>"`
				}
				return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s}],"ts":%d}`, role(r), text, at(i))
			}) + `]`
		}),
		filesOf("kimi-code", func(n int) string { return "sessions/wd_x/session_" + uuid(n) + "/agents/main/wire.jsonl" },
			func(_ int, said []string) string {
				text := fmt.Sprintf(`{"type":"metadata","protocol_version":"1.5","created_at":%d}`+"\n", at(0))
				for i := range said {
					text += fmt.Sprintf(`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":%s}],"id":"m%d","origin":{"kind":"user"}},"time":%d}`+"\n", session.JSONOf(said[i]), i, at(i))
				}
				return text
			}),
		filesOf("continue", func(n int) string { return "sessions/" + uuid(n) + ".json" },
			func(n int, said []string) string {
				return `{"sessionId":"` + uuid(n) + `","title":"t","workspaceDirectory":"/w","history":[` +
					joined(said, func(_ int, r bool, text string) string {
						return fmt.Sprintf(`{"message":{"role":%q,"content":%s},"contextItems":[]}`, role(r), text)
					}) + `]}`
			}),
		exportOf("chatgpt", "conversations.json", func(n int, said []string) string {
			return `{"id":"` + uuid(n) + `","current_node":"m` + fmt.Sprint(len(said)-1) + `","mapping":{` +
				joined(said, func(i int, r bool, text string) string {
					return fmt.Sprintf(`"m%[1]d":{"id":"m%[1]d","parent":"m%[2]d","message":{"id":"m%[1]d","author":{"role":%[3]q},"create_time":%[4]d,"content":{"content_type":"text","parts":[%[5]s]}}}`, i, i-1, role(r), at(i)/1000, text)
				}) + `}}`
		}),
		exportOf("claude-ai", "conversations.json", func(n int, said []string) string {
			return `{"uuid":"` + uuid(n) + `","chat_messages":[` + joined(said, func(i int, r bool, text string) string {
				return fmt.Sprintf(`{"uuid":"m%d","sender":%q,"content":[{"type":"text","text":%s}],"created_at":%q}`, i, map[bool]string{true: "assistant", false: "human"}[r], text, stamp(i).Format(time.RFC3339))
			}) + `]}`
		}),
		{"hermes", writeHermes},
		{"devin", writeDevin},
		filesOf("antigravity", func(n int) string {
			return "brain/" + uuid(n) + "/.system_generated/logs/transcript_full.jsonl"
		}, func(_ int, said []string) (text string) {
			for i := range said {
				kind := map[bool]string{true: "PLANNER_RESPONSE", false: "USER_INPUT"}[i%2 == 1]
				text += fmt.Sprintf(`{"step_index":%d,"source":"MODEL","type":%q,"status":"DONE","created_at":%q,"content":%s}`+"\n", i, kind,
					stamp(i).Format(time.RFC3339), session.JSONOf(said[i]))
			}
			return text
		}),
		exportOf("gemini-takeout", "MyActivity.json", func(n int, said []string) string {
			var all []string
			for i := 0; i+1 < len(said); i += 2 {
				all = append(all, fmt.Sprintf(`{"header":"Gemini Apps","title":%s,"time":%q,"safeHtmlItem":[{"html":%s}],"details":[{"url":"https://gemini.google.com/app/%016x"}]}`,
					session.JSONOf("Prompted "+said[i]), stamp(i).Format(time.RFC3339), session.JSONOf("<p>"+said[i+1]+"</p>"), n))
			}
			return strings.Join(all, ",")
		}),
		filesOf("generic", func(n int) string { return uuid(n) + ".jsonl" }, func(_ int, said []string) (text string) {
			for i := range said {
				text += fmt.Sprintf(`{"role":%q,"content":%s,"timestamp":%d}`+"\n", role(i%2 == 1), session.JSONOf(said[i]), at(i))
			}
			return text
		}),
	}
}

// writeCursor makes a database of Cursor's editor.
func writeCursor(dir string, sessions int, said []string) (err error) {
	return writeDatabase(filepath.Join(dir, "globalStorage", "state.vscdb"), func(exec func(query string, args ...any)) {
		exec(`CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)`)
		exec(`CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)`)
		for n := range sessions {
			heads := joined(said, func(i int, _ bool, _ string) string { return fmt.Sprintf(`{"bubbleId":"b%d"}`, i) })
			exec(`INSERT INTO cursorDiskKV VALUES (?, ?)`, "composerData:"+uuid(n), fmt.Sprintf(
				`{"createdAt":%d,"lastUpdatedAt":%[1]d,"status":"completed","fullConversationHeadersOnly":[%s]}`,
				stamp(0).UnixMilli(), heads))
			for i, text := range said {
				exec(`INSERT INTO cursorDiskKV VALUES (?, ?)`, fmt.Sprintf("bubbleId:%s:b%d", uuid(n), i),
					fmt.Sprintf(`{"type":%d,"text":%s}`, 1+i%2, session.JSONOf(text)))
			}
		}
	})
}

func writeHermes(dir string, sessions int, said []string) error {
	return writeDatabase(filepath.Join(dir, "state.db"), func(exec func(query string, args ...any)) {
		exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL, input_tokens INTEGER, output_tokens INTEGER)`)
		exec(`CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, timestamp REAL)`)
		exec(`CREATE INDEX by_session ON messages (session_id, timestamp)`)
		for n := range sessions {
			exec(`INSERT INTO sessions VALUES (?, 'cli', ?, 3, 5)`, uuid(n), stamp(0).Unix())
			for i, text := range said {
				exec(`INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)`, uuid(n), role(i%2 == 1), text,
					stamp(i).Unix())
			}
		}
	})
}

func writeDevin(dir string, sessions int, said []string) error {
	return writeDatabase(filepath.Join(dir, "sessions.db"), func(exec func(query string, args ...any)) {
		exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, created_at INTEGER, main_chain_id INTEGER)`)
		exec(`CREATE TABLE message_nodes (row_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, node_id INTEGER,
			parent_node_id INTEGER, chat_message TEXT, created_at INTEGER, UNIQUE (session_id, node_id))`)
		for n := range sessions {
			exec(`INSERT INTO sessions VALUES (?, ?, ?)`, uuid(n), stamp(0).Unix(), len(said)-1)
			for i, text := range said {
				exec(`INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message, created_at) VALUES (?, ?, ?, ?, ?)`,
					uuid(n), i, i-1, fmt.Sprintf(`{"message_id":"m%d","role":%q,"content":%s}`, i, role(i%2 == 1), session.JSONOf(text)),
					stamp(i).Unix())
			}
		}
	})
}

// writeDatabase makes a database in one transaction.
func writeDatabase(path string, fill func(exec func(query string, args ...any))) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(0)")
	if err != nil {
		return err
	}
	defer func() {
		if ended := db.Close(); err == nil {
			err = ended
		}
	}()
	db.SetMaxOpenConns(1)
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = db.Exec(query, args...)
		}
	}
	exec(`BEGIN`)
	fill(exec)
	exec(`COMMIT`)
	return err
}

// BenchmarkForms imports 1,000 sessions of each form that is read whole, by a command: its speed, its peak of memory,
// and the CPU time of a second import that finds nothing new, above that of an import of one known session.
func BenchmarkForms(b *testing.B) {
	sessiond := binary(b)
	said := make([]string, 40)
	write := newAuthor(6)
	for i := range said {
		said[i] = write.sentence(usualWords)
	}
	for _, f := range forms() {
		b.Run(f.source, func(b *testing.B) {
			dir, sessions := b.TempDir(), sized(1000)
			testkit.Check(b, f.write(dir, sessions, said))
			one := b.TempDir()
			testkit.Check(b, f.write(one, 1, said))
			measureForm(b, sessiond, f.source, dir, one, float64(sessions*len(said)))
		})
	}
	b.Run("cursor, one database of many MB", func(b *testing.B) {
		dir := b.TempDir()
		large := strings.Repeat(write.sentence(100), 40)
		texts := make([]string, 20)
		for i := range texts {
			texts[i] = large
		}
		sessions := max(1, sized(*cursorSize)*1_000_000/(len(large)*len(texts)))
		testkit.Check(b, writeCursor(dir, sessions, texts))
		one := b.TempDir()
		testkit.Check(b, writeCursor(one, 1, texts[:1]))
		measureForm(b, sessiond, "cursor", dir, one, float64(sessions*len(texts)))
	})
}

func measureForm(b *testing.B, sessiond, source, dir, one string, messages float64) {
	b.Helper()
	var size int64
	testkit.Check(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, _ := d.Info()
			size += info.Size()
		}
		return err
	}))
	for b.Loop() {
		db := filepath.Join(b.TempDir(), "sessions.db")
		begun := time.Now()
		peak, cpu := peakOf(b, command(sessiond, db, "import", source, dir, "--mine"))
		wall := time.Since(begun).Seconds()
		var again, start float64
		const tries = 3 // the least of some, as a busy machine adds to each
		for i := range tries {
			_, nothing := peakOf(b, command(sessiond, db, "import", source, one, "--mine"))
			_, known := peakOf(b, command(sessiond, db, "import", source, dir, "--mine"))
			if i == 0 || known-nothing < again-start {
				again, start = known, nothing
			}
		}
		megabytes := float64(size) / 1e6
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(megabytes, "MB")
		b.ReportMetric(megabytes/wall, "MB/s")
		b.ReportMetric(megabytes/cpu, "MB/cpu-s")
		b.ReportMetric(messages/cpu, "messages/cpu-s")
		b.ReportMetric(peak, "peak-MB")
		b.ReportMetric(1e3*(again-start), "again-cpu-ms")
		testkit.Check(b, os.RemoveAll(filepath.Dir(db)))
	}
}
