package history_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
	own "sessiond/internal/history/sessiond"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/testkit/storetest"
)

func programs(t *testing.T) []program {
	omp, kilo := ofPi(), ofOpencode() // forks that write the same form
	omp.source, kilo.source = pi.NewOmp(historytest.NoEnv), opencode.NewKilo(historytest.NoEnv, historytest.Later)
	all := []program{
		ofPi(), omp, ofClaudeCode(), ofCodex(), ofOpenClaw(), ofGoose(), ofOpencode(), kilo, ofGeminiCLI(), ofCopilotCLI(),
		ofQwenCode(), ofSessiond(t), ofContinue(), ofCline(), ofRoo(), ofChatGPT(), ofClaudeAI(), ofGeneric(), ofKimiCode(),
		ofVSCodeCopilot(), ofCursor(), ofDroid(), ofWindsurf(), ofZed(), ofCrush(), ofHermes(), ofDevin(), ofAntigravity(),
		ofGeminiTakeout(),
	}
	for i := range all {
		if p := &all[i]; p.lines.says != nil {
			p.wrong = append(p.wrong, p.lines.rows()...)
		}
	}
	return all
}

// parent returns the name of the line before the i-th one, "" for the first.
func parent(i int) string {
	if i == 1 {
		return ""
	}
	return strconv.Itoa(i - 1)
}

// The file has texts of 50 MiB and 65 MiB instead of these words.
const wide, huge = "<50 MiB>", "<65 MiB>"

// deep is a JSON array in 10,000 others.
var deep = strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

func quote(text string) string { return string(session.JSONOf(text)) }

var noDatabase = []string{
	"a newer database", "a corrupt database", "a locked database", "a table missing",
	"a column missing",
}

func ofPi() program {
	const head = `{"type":"session","version":3,"id":"wrong","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`
	say := typed
	file := "2026-01-02_wrong.jsonl"
	return program{
		source: pi.New(historytest.NoEnv),
		good: wrong{
			file: "2026-01-01_good.jsonl",
			text: lines(strings.Replace(head, "wrong", "good", 1), say("1", "", fine)),
		},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "", "a")), says: "no session header"},
			{kind: "half a line", file: file, text: head + "\n" + say("1", "", "a") + "\n" + `{"type":"mess`},
			{
				kind: "invalid JSON in the middle", file: file,
				text: lines(head, say("1", "", "a"), `{"torn":`, say("2", "1", "b")), says: "JSON", line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, say("1", "", "a"),
				strings.Replace(say("2", "1", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", "", wide), say("2", "1", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", "", huge), say("2", "1", "after")),
				says: "64 MiB", line: 2,
			},
			{kind: "10,001 levels", file: file, text: lines(head, say("1", "", "a"),
				`{"type":"message","id":"2","parentId":"1","x":`+deep+`}`, say("3", "1", "b")), says: "kept raw", line: 3},
			{kind: "a cycle", file: file, text: lines(head, say("1", "2", "a"), say("2", "1", "b")), says: "cycle", line: 2},
			{kind: "an orphan", file: file, text: lines(head, say("1", "", "a"), say("2", "gone", "b"))},
			{kind: "a name twice", file: file, text: lines(head, say("1", "", "a"), say("1", "", "another"),
				say("2", "1", "b"))},
			{kind: "no end of the last line", file: file, text: head + "\n" + say("1", "", "a") + "\n" + say("2", "1", "b")},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "", "a")+say("2", "1", "b"), `{"torn":`),
				says: "JSON", line: 3,
			},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "", "a"),
				`{"type":"dream","id":"2","parentId":"1"}`)},
			{kind: "an unknown version", file: file, text: lines(strings.Replace(head, `"version":3`, `"version":9`, 1),
				say("1", "", "a")), says: "version 9"},
		},
		none: noDatabase,
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string {
				return say(strconv.Itoa(i), parent(i), text)
			},
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream %d","id":"%d","parentId":%q}`, i, i, parent(i)) },
		},
	}
}

// typed is a line of pi's and OpenClaw's: what a person typed, as a child of parent.
func typed(id, parent, text string) string {
	link := "null"
	if parent != "" {
		link = quote(parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-02T09:01:00.000Z","message":{"role":"user","content":%s,"timestamp":1767344460000}}`, id, link, quote(text))
}

func ofClaudeCode() program {
	of := "88888888-4444-4444-8444-121212121212"
	say := func(id, parent, text string) string {
		link := "null"
		if parent != "" {
			link = quote(parent)
		}
		return `{"parentUuid":` + link + `,"isSidechain":false,"cwd":"/proj","sessionId":"` + of + `","version":"2.1.120","type":"user","message":{"role":"user","content":` + quote(text) + `},"uuid":"` + id + `","timestamp":"2026-02-08T05:00:00.000Z"}`
	}
	other := func(line string) string { return strings.ReplaceAll(line, of, strings.Replace(of, "8", "9", 1)) }
	file := of + ".jsonl"
	return program{
		source: claudecode.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: other(file), text: lines(other(say("good", "", fine)))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", "world"), says: "no transcript"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "", "a")), says: "JSON", line: 1},
			{kind: "half a line", file: file, text: say("1", "", "a") + "\n" + `{"type":"us`},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(say("1", "", "a"), `{"torn":`, say("2", "1", "b")),
				says: "JSON", line: 2,
			},
			{kind: "invalid UTF-8", file: file, text: lines(say("1", "", "a"),
				strings.Replace(say("2", "1", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(say("1", "", wide), say("2", "1", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(say("1", "", huge), say("2", "1", "after")), says: "64 MiB",
				line: 1,
			},
			{
				kind: "10,001 levels", file: file, text: lines(say("1", "", "a"),
					strings.Replace(say("2", "1", "b"), `"cwd":`, `"x":`+deep+`,"cwd":`, 1), say("3", "2", "c")), says: "kept raw",
				line: 2,
			},
			{kind: "a cycle", file: file, text: lines(say("1", "2", "a"), say("2", "1", "b"))},
			{kind: "an orphan", file: file, text: lines(say("1", "", "a"), say("2", "gone", "b"))},
			{kind: "a name twice", file: file, text: lines(say("1", "", "a"), say("1", "", "another"), say("2", "1", "b"))},
			{kind: "no end of the last line", file: file, text: say("1", "", "a") + "\n" + say("2", "1", "b")},
			{
				kind: "two objects on a line", file: file, text: lines(say("1", "", "a")+say("2", "1", "b"), `{"torn":`),
				says: "JSON", line: 2,
			},
			{kind: "an unknown type", file: file, text: lines(say("1", "", "a"),
				`{"type":"dream","uuid":"2","parentUuid":"1","sessionId":"`+of+`"}`)},
			{kind: "an unknown version", file: file, text: lines(strings.Replace(say("1", "", "a"), "2.1.120", "99.0", 1))},
		},
		none: noDatabase,
		lines: lined{
			file: file, says: func(i int, text string) string { return say(strconv.Itoa(i), parent(i), text) },
			odd: func(i int) string {
				return fmt.Sprintf(`{"type":"dream %d","uuid":"%d","parentUuid":%q,"sessionId":%q}`, i, i, parent(i), of)
			},
		},
	}
}

func ofCodex() program {
	head := func(more string) string {
		return `{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"wrong","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/proj","cli_version":"0.106.0","source":"cli"` + more + `}}`
	}
	say := func(text string) string {
		return `{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":` + quote(text) + `}]}}`
	}
	const file, mirror = "rollout-wrong.jsonl", "state_5.sqlite"
	const threads = `CREATE TABLE threads (id TEXT, name TEXT); INSERT INTO threads (id, name) VALUES ('good', 'Named');`
	return program{
		source: codex.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: "rollout-good.jsonl", text: lines(strings.Replace(head(""), "wrong", "good", 1), say(fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "an empty file", file: mirror, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("a")), says: "first line"},
			{kind: "half a line", file: file, text: lines(head(""), say("a")) + `{"timestamp":`},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head(""), say("a"), `{"torn":`, say("b")), says: "JSON",
				line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: lines(head(""), strings.Replace(say("X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head(""), say(wide), say("after"))},
			{kind: "a record of 65 MiB", file: file, text: lines(head(""), say(huge), say("after")), says: "64 MiB", line: 2},
			{kind: "10,001 levels", file: file, text: lines(head(""), say("a"), `{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":`+deep+`}`, say("b")), says: "kept raw", line: 3},
			{kind: "a cycle", file: file, text: lines(head(`,"forked_from_id":"wrong"`), say("a"))},
			{kind: "a cycle", file: mirror, text: threads + `CREATE TABLE thread_spawn_edges (parent_thread_id, child_thread_id); INSERT INTO thread_spawn_edges VALUES ('good', 'good');`, says: "would be among those that it comes from"},
			{kind: "an orphan", file: file, text: lines(head(`,"forked_from_id":"gone"`), say("a"))},
			{kind: "a name twice", file: file, text: lines(head(""), head(""), say("a"), say("a"))},
			{kind: "no end of the last line", file: file, text: lines(head(""), say("a")) + say("b")},
			{
				kind: "two objects on a line", file: file, text: lines(head("")+say("a"), say("b")+say("c"), `{"torn":`),
				says: "JSON", line: 3,
			},
			{kind: "an unknown type", file: file, text: lines(head(""), `{"type":"dream","payload":{"type":"x"}}`, say("a"))},
			{kind: "an unknown version", file: file, text: lines(head(`,"history_mode":"novel"`), say("a"))},
			{
				kind: "a newer database", file: "state_99.sqlite",
				text: strings.Replace(threads, "CREATE TABLE threads (id TEXT, name TEXT)",
					"CREATE TABLE threads (id TEXT, name TEXT, mood TEXT DEFAULT 1)", 1) + `CREATE TABLE dreams (x);`, says: "",
			},
			{kind: "a corrupt database", file: mirror, text: threads, cut: 4000, says: "damaged"},
			{kind: "a locked database", file: mirror, text: threads, says: "writing"},
			{kind: "a table missing", file: mirror, text: `CREATE TABLE jobs (id TEXT);`, says: "table"},
			{kind: "a column missing", file: mirror, text: `CREATE TABLE threads (name TEXT); INSERT INTO threads VALUES ('Named');`, says: "no table threads with ids"},
			{kind: "a column missing", file: mirror, text: `CREATE TABLE threads (id TEXT); INSERT INTO threads VALUES ('good'); CREATE TABLE thread_spawn_edges (child_thread_id TEXT); INSERT INTO thread_spawn_edges VALUES ('good');`},
		},
		lines: lined{
			file: file, head: []string{head("")}, says: func(_ int, text string) string { return say(text) },
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream %d","payload":{"type":"x"}}`, i) },
		},
	}
}

func ofOpenClaw() program {
	const head = `{"type":"session","version":3,"id":"wrong","timestamp":"2026-01-02T09:00:00.000Z","cwd":"/home/dev"}`
	say := typed
	const file, db = "agents/main/sessions/wrong.jsonl", "agents/main/agent/openclaw-agent.sqlite"
	tables := `CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, reason TEXT, created_at INTEGER, closed_at INTEGER);
		CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq));
		INSERT INTO session_windows VALUES ('kept', 'agent:main:main', NULL, NULL, 1767344400000, NULL);
		INSERT INTO transcript_events VALUES ('kept', 0, '` + strings.Replace(head, "wrong", "kept", 1) + `', 1767344400000), ('kept', 1, '` + say("1", "", "a") + `', 1767344460000);`
	return program{
		source: openclaw.New(historytest.NoEnv),
		good: wrong{
			file: "agents/other/sessions/good.jsonl",
			text: lines(strings.Replace(head, "wrong", "good", 1), say("1", "", fine)),
		},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "an empty file", file: db, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "", "a")), says: "no session header"},
			{kind: "half a line", file: file, text: head + "\n" + say("1", "", "a") + "\n" + `{"type":"mess`},
			{
				kind: "invalid JSON in the middle", file: file,
				text: lines(head, say("1", "", "a"), `{"torn":`, say("2", "1", "b")), says: "JSON", line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, strings.Replace(say("1", "", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", "", wide), say("2", "1", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", "", huge), say("2", "1", "after")),
				says: "64 MiB", line: 2,
			},
			{kind: "10,001 levels", file: file, text: lines(head, say("1", "", "a"),
				`{"type":"message","id":"2","parentId":"1","x":`+deep+`}`, say("3", "1", "b")), says: "kept raw", line: 3},
			{kind: "a cycle", file: file, text: lines(head, say("1", "2", "a"), say("2", "1", "b")), says: "cycle", line: 2},
			{kind: "an orphan", file: file, text: lines(head, say("1", "", "a"), say("2", "gone", "b"))},
			{kind: "a name twice", file: file, text: lines(head, say("1", "", "a"), say("1", "", "another"),
				say("2", "1", "b"))},
			{kind: "no end of the last line", file: file, text: head + "\n" + say("1", "", "a") + "\n" + say("2", "1", "b")},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "", "a")+say("2", "1", "b"), `{"torn":`),
				says: "JSON", line: 3,
			},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "", "a"),
				`{"type":"dream","id":"2","parentId":"1"}`)},
			{kind: "an unknown version", file: file, text: lines(strings.Replace(head, `"version":3`, `"version":9`, 1),
				say("1", "", "a")), says: "version", line: 1},
			{kind: "a newer database", file: db, text: tables + `ALTER TABLE transcript_events ADD COLUMN mood TEXT; CREATE TABLE dreams (x);`},
			{kind: "a corrupt database", file: db, text: tables, cut: 5000, says: "damaged"},
			{kind: "a locked database", file: db, text: tables, says: "writing"},
			{
				kind: "a table missing", file: db, text: tables + `DROP TABLE transcript_events;`,
				says: "it holds no conversations",
			},
			{
				kind: "a column missing", file: db, text: tables + `ALTER TABLE transcript_events DROP COLUMN event_json;`,
				says: "column",
			},
			{kind: "a column missing", file: db, text: tables + `ALTER TABLE transcript_events DROP COLUMN created_at; ALTER TABLE session_windows DROP COLUMN created_at;`, new: 1},
			{kind: "a column missing", file: db, text: tables + `CREATE TABLE session_transcript_cold_archives (session_id TEXT, archive_name TEXT);`, says: "its table session_transcript_cold_archives lacks columns", new: 1},
			{kind: "a column missing", file: db, text: tables + `CREATE TABLE session_transcript_archives (session_id TEXT, archive_blob BLOB); INSERT INTO session_transcript_archives VALUES ('old', x'00');`, says: "its hash is not the stored one", new: 1},
			{
				kind: "a table missing", file: db, text: tables + `DROP TABLE session_windows;`,
				says: "only the transcripts are read", new: 1,
			},
		},
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string {
				return say(strconv.Itoa(i), parent(i), text)
			},
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream %d","id":"%d","parentId":%q}`, i, i, parent(i)) },
		},
	}
}

func ofGoose() program {
	const head, file, db = `{"working_dir":"/w","description":"d","message_count":2}`, "20250801_080000.jsonl",
		"sessions.db"
	say := func(text string) string {
		return `{"role":"user","created":1754035200,"content":[{"type":"text","text":` + quote(text) + `}]}`
	}
	tables := `CREATE TABLE schema_version (version INTEGER PRIMARY KEY); INSERT INTO schema_version VALUES (17);
		CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, created_at TIMESTAMP, parent_session_id TEXT);
		CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
		INSERT INTO sessions VALUES ('20260314_1', 'one', '', '/w', '2026-03-14 09:00:00', NULL), ('20260314_2', 'two', '', '/w', '2026-03-14 09:00:00', NULL);` +
		row("a", "user", `[{"type":"text","text":"a"}]`) + row("b", "assistant", `[{"type":"text","text":"b"}]`)
	return program{
		source: goose.New(historytest.NoEnv),
		good:   wrong{file: "20250801_070000.jsonl", text: lines(head, say(fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "an empty file", file: db, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("a")), says: "first line"},
			{kind: "half a line", file: file, text: lines(head, say("a")) + say("b")[:20]},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("a"), `{"torn":`, say("b")),
				says: "not a JSON object", line: 3,
			},
			{
				kind: "invalid JSON in the middle", file: db, text: tables + row("c", "user", `[{"torn":`),
				says: "message c#0: its content is no JSON",
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, strings.Replace(say("X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head, say(wide), say("after"))},
			{kind: "a record of 65 MiB", file: file, text: lines(head, say(huge), say("after")), says: "64 MiB", line: 2},
			{
				kind: "a record of 65 MiB", file: db, text: tables + row("c", "user", `[{"type":"text","text":"`+huge+`"}]`),
				says: "64 MiB",
			},
			{kind: "10,001 levels", file: file, text: lines(head, say("a"),
				`{"role":"user","created":1754035200,"content":`+deep+`}`, say("b")), says: "kept raw", line: 3},
			{
				kind: "10,001 levels", file: db, text: tables + row("c", "user", deep),
				says: "message c#0: its content is no JSON",
			},
			{kind: "a cycle", file: db, text: tables + `UPDATE sessions SET parent_session_id = CASE id WHEN '20260314_1' THEN '20260314_2' ELSE '20260314_1' END;`},
			{kind: "an orphan", file: db, text: tables + `UPDATE sessions SET parent_session_id = 'gone'; INSERT INTO messages (session_id, role, content_json) VALUES ('gone', 'user', '[]');`},
			{kind: "a name twice", file: db, text: tables + row("a", "user", `[{"type":"text","text":"a"}]`) +
				row("a", "user", `[{"type":"text","text":"another"}]`)},
			{kind: "no end of the last line", file: file, text: lines(head, say("a")) + say("b")},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("a")+say("b"), `{"torn":`),
				says: "not a JSON object", line: 3,
			},
			{kind: "an unknown type", file: db, text: tables + row("c", "user", `[{"type":"dream","of":"sheep"}]`)},
			{kind: "an unknown version", file: db, text: tables + `UPDATE schema_version SET version = 99;`},
			{kind: "a newer database", file: db, text: tables + `ALTER TABLE messages ADD COLUMN mood TEXT; CREATE TABLE dreams (x); ALTER TABLE sessions DROP COLUMN description;`},
			{kind: "a corrupt database", file: db, text: tables, cut: 9000, says: "damaged"},
			{kind: "a locked database", file: db, text: tables, says: "writing"},
			{kind: "a table missing", file: db, text: tables + `DROP TABLE messages;`, says: "table"},
			{
				kind: "a column missing", file: db, text: tables + `ALTER TABLE messages DROP COLUMN content_json;`,
				says: "no tables of sessions and messages as Goose makes them",
			},
			{kind: "a column missing", file: db, text: tables + `CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, input_tokens INTEGER);`, says: "its table usage_ledger has no column session_id and was left out", new: 2},
			{kind: "a column missing", file: db, text: tables + row("c", "user", "[]") + `ALTER TABLE messages DROP COLUMN created_timestamp; ALTER TABLE messages DROP COLUMN message_id;`, new: 2},
			{kind: "a column missing", file: db, text: tables + `CREATE TABLE threads (id TEXT); INSERT INTO threads VALUES ('t');
				CREATE TABLE thread_messages (id INTEGER PRIMARY KEY, thread_id TEXT, session_id TEXT, role TEXT, content_json TEXT); INSERT INTO thread_messages VALUES (1, 't', 'gone', 'user', '[]');`, new: 3},
			{kind: "a table missing", file: db, text: tables + `DROP TABLE schema_version;`, new: 2},
		},
		lines: lined{
			file: file, head: []string{head}, says: func(_ int, text string) string { return say(text) },
			odd: func(i int) string {
				return fmt.Sprintf(`{"role":"user","created":1754035200,"content":[{"type":"dream %d"}]}`, i)
			},
		},
	}
}

func row(id, role, content string) string {
	return fmt.Sprintf(`INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES ('%s', '20260314_1', '%s', '%s', 1773478800);`, id, role, content)
}

func ofOpencode() program {
	const file, db, info = "wrong.json", "opencode.db", `{"id":"ses_1","title":"t","time":{"created":1770109200000}}`
	export := func(messages ...string) string {
		return `{"info":` + info + `,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	say := func(id, text string) string {
		return `{"info":{"id":"` + id + `","role":"user","time":{"created":1770109200000}},"parts":[{"id":"p` + id + `","type":"text","text":` + quote(text) + `}]}`
	}
	tables := `CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
		CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
		CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
		INSERT INTO session VALUES ('ses_1', 'p', NULL, '/w', 'one', 1770109200000, 1770109200000), ('ses_2', 'p', NULL, '/w', 'two', 1770109200000, 1770109200000);
		INSERT INTO message VALUES ('a', 'ses_1', 1770109200000, 1770109200000, '{"role":"user"}'); INSERT INTO part VALUES ('pa', 'a', 'ses_1', 1, 1, '{"type":"text","text":"a"}');`
	// Rows as versions of April to June 2026 wrote them, which had no column seq.
	const version2 = `CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
		INSERT INTO session_message VALUES ('c', 'ses_2', 'user', 1770109200000, 1770109200000, '{"text":"c"}');`
	return program{
		source: opencode.New(historytest.NoEnv, func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }),
		good:   wrong{file: "good.json", text: strings.Replace(export(say("g", fine)), "ses_1", "ses_9", 1)},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "an empty file", file: db, says: "empty"},
			{kind: "a wrong first line", file: file, text: "hello", says: "no"},
			{kind: "half a line", file: file, text: export(say("a", "a"))[:90], says: "cannot be read"},
			{kind: "invalid JSON in the middle", file: db, text: tables + `INSERT INTO message VALUES ('b', 'ses_1', 2, 2, '{"torn":');`, says: "message b"},
			{kind: "invalid UTF-8", file: file, text: strings.Replace(export(say("a", "X")), "X", "\xff\xfe", 1)},
			{kind: "a line of 50 MB", file: file, text: export(say("a", wide), say("b", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: export(say("a", huge), say("b", "after")),
				says: "message a is larger than 64 MiB and was left out",
			},
			{kind: "a record of 65 MiB", file: db, text: tables + `INSERT INTO part VALUES ('pb', 'a', 'ses_1', 2, 2, '{"type":"text","text":"` + huge + `"}');`, says: "message a is larger than 64 MiB and was left out"},
			{kind: "10,001 levels", file: file, text: export(say("a", "a"),
				strings.Replace(say("b", "b"), `"role":`, `"x":`+deep+`,"role":`, 1), say("c", "c")), says: "max depth"},
			{kind: "10,001 levels", file: db, text: tables + `INSERT INTO part VALUES ('pb', 'a', 'ses_1', 2, 2, '{"type":"text","x":` + deep + `}');`},
			{kind: "a cycle", file: db, text: tables + `UPDATE session SET parent_id = CASE id WHEN 'ses_1' THEN 'ses_2' ELSE 'ses_1' END;`},
			{kind: "an orphan", file: db, text: tables + `UPDATE session SET parent_id = 'gone'; INSERT INTO message VALUES ('b', 'ses_1', 2, 2, '{"role":"assistant","parentID":"gone","time":{"created":1,"completed":2}}');`},
			{kind: "a name twice", file: file, text: export(say("a", "a"), say("a", "another"))},
			{kind: "a file that vanishes", file: file, text: export(say("a", "a")), says: "no such file"},
			{kind: "an unknown type", file: db, text: tables + `INSERT INTO part VALUES ('pb', 'a', 'ses_1', 2, 2, '{"type":"dream"}');`},
			{kind: "an unknown version", file: db, text: tables + `PRAGMA user_version = 99;`},
			{kind: "a newer database", file: db, text: tables + `ALTER TABLE session ADD COLUMN mood TEXT; CREATE TABLE dreams (x);`},
			{kind: "a corrupt database", file: db, text: tables, cut: 9000, says: "damaged"},
			{kind: "a locked database", file: db, text: tables, says: "writing"},
			{kind: "a table missing", file: db, text: tables + `DROP TABLE part;`, says: "table"},
			{
				kind: "a column missing", file: db, text: tables + `ALTER TABLE message DROP COLUMN data;`,
				says: "no tables of sessions, messages and parts as",
			},
			{
				kind: "a table missing", file: db, text: tables + `DROP TABLE session;`,
				says: "no tables of sessions, messages and parts as",
			},
			{kind: "a column missing", file: db, text: tables + version2, new: 2},
			{
				kind: "a column missing", file: db, text: tables + version2 + `ALTER TABLE part DROP COLUMN data;`,
				says: "its table part has no column data and was left out", new: 2,
			},
			{
				kind: "a column missing", file: db, text: tables + version2 + `ALTER TABLE session_message DROP COLUMN type;`,
				says: "its table session_message has no column type and was left out", new: 2,
			},
			{kind: "a column missing", file: db, text: tables + version2 + `ALTER TABLE message DROP COLUMN time_created; ALTER TABLE session_message DROP COLUMN time_created; ALTER TABLE part DROP COLUMN time_updated;`, new: 2},
			{kind: "a column missing", file: db, text: tables + `CREATE TABLE project (id TEXT); CREATE TABLE todo (session_id TEXT, content TEXT); INSERT INTO todo VALUES ('ses_1', 'rest');`, says: "its table project has no column worktree", new: 2},
			{kind: "a table missing", file: db, text: tables + version2 + `DROP TABLE message; DROP TABLE part;`, new: 2},
			{
				kind: "a table missing", file: db, text: tables + version2 + `DROP TABLE message;`,
				says: "its message is gone; kept raw", new: 2,
			},
			{
				kind: "a column missing", file: db, text: tables + version2 + `ALTER TABLE message RENAME COLUMN id TO name;`,
				says: "its table message has no column id and was left out", new: 2,
			},
		},
		none: []string{
			"no end of the last line", "two objects on a line", "a record after garbage", "NULs", "a record over lines",
			"unknown kinds by the thousand",
		},
	}
}

func ofGeminiCLI() program {
	const head = `{"sessionId":"22222222-0000-4000-8000-000000000001","projectHash":"334c","startTime":"2026-08-01T09:00:00.000Z","lastUpdated":"2026-08-01T09:00:00.000Z","kind":"main"}`
	const file, old = "session-2026-08-01T09-00-22222222.jsonl", "session-2026-08-01T09-00-22222222.json"
	const agent = "chats/22222222-0000-4000-8000-000000000001/22222222-0000-4000-8000-000000000001.jsonl"
	say := func(id, text string) string {
		return `{"id":"` + id + `","timestamp":"2026-08-01T09:00:01.000Z","type":"user","content":[{"text":` + quote(text) + `}]}`
	}
	document := func(messages ...string) string {
		return strings.TrimSuffix(head, "}") + `,"messages":[` + strings.Join(messages, ",") + `]}`
	}
	return program{
		source: geminicli.New(historytest.NoEnv, historytest.Later),
		good: wrong{
			file: "session-2026-08-01T08-00-33333333.jsonl",
			text: lines(strings.Replace(head, "22222222", "33333333", 1), say("1", fine)),
		},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "a")), says: "no session of Gemini CLI"},
			{kind: "half a line", file: file, text: lines(head, say("1", "a")) + `{"id":`},
			{kind: "half a line", file: old, text: document(say("1", "a"))[:200], says: "no session of Gemini CLI"},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("1", "a"), `{"torn":`, say("2", "b")),
				says: "JSON", line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", wide), say("2", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", huge), say("2", "after")), says: "64 MiB",
				line: 2,
			},
			{kind: "a record of 65 MiB", file: old, text: document(say("1", huge)), says: "64 MiB"},
			{kind: "10,001 levels", file: file, text: lines(head, say("1", "a"), `{"id":"2","type":"user","content":`+deep+`}`,
				say("3", "b")), says: "JSON", line: 3},
			{kind: "a cycle", file: agent, text: lines(strings.Replace(head, "main", "subagent", 1), say("1", "a"))},
			{
				kind: "an orphan", file: strings.Replace(agent, "2222", "4444", 1),
				text: lines(strings.Replace(head, "main", "subagent", 1), say("1", "a")),
			},
			{kind: "a name twice", file: file, text: lines(head, say("1", "a"), say("1", "another"), say("2", "b"))},
			{kind: "no end of the last line", file: file, text: lines(head, say("1", "a")) + say("2", "b")},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "a")+say("2", "b"), `{"torn":`), says: "JSON",
				line: 3,
			},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "b"), `"user"`, `"dream"`, 1), `{"$dream":1}`), says: "not a line of Gemini CLI", line: 4},
			{
				kind: "an unknown version", file: file,
				text: lines(strings.Replace(head, `"kind"`, `"version":9,"kind"`, 1), say("1", "a")),
			},
		},
		none: noDatabase,
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string { return say(strconv.Itoa(i), text) },
			odd: func(i int) string {
				return strings.Replace(say(strconv.Itoa(i), "b"), `"user"`, fmt.Sprintf(`"dream %d"`, i), 1)
			},
		},
	}
}

func ofCopilotCLI() program {
	const head = `{"type":"session.start","data":{"sessionId":"wrong","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"2026-08-01T09:00:00.000Z","context":{"cwd":"/proj"}},"id":"0","timestamp":"2026-08-01T09:00:00.000Z","parentId":null}`
	const file = "session-state/wrong/events.jsonl"
	say := func(id, text string) string {
		return `{"type":"user.message","data":{"content":` + quote(text) + `},"id":"` + id +
			`","timestamp":"2026-08-01T09:00:01.000Z","parentId":"0"}`
	}
	return program{
		source: copilotcli.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: "good/events.jsonl", text: lines(strings.Replace(head, "wrong", "good", 1), say("1", fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "a")), says: "no session of Copilot CLI"},
			{kind: "a wrong first line", file: file, text: lines("hello", head, say("1", "a")), says: "JSON", line: 1},
			{kind: "half a line", file: file, text: lines(head, say("1", "a")) + `{"type":`},
			{kind: "no end of the last line", file: file, text: lines(head, say("1", "a")) + say("2", "b")},
			{kind: "two objects on a line", file: file, text: lines(head, say("1", "a")+say("2", "b"))},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("1", "a"), `{"torn":`, say("2", "b")),
				says: "JSON", line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", wide), say("2", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", huge), say("2", "after")), says: "64 MiB",
				line: 2,
			},
			{kind: "10,001 levels", file: file, text: lines(head, say("1", "a"),
				`{"type":"user.message","data":{"content":`+deep+`},"id":"2"}`, say("3", "b")), says: "JSON", line: 3},
			{kind: "a cycle", file: file, text: lines(strings.Replace(head, `"version"`,
				`"detachedFromSpawningParentSessionId":"wrong","version"`, 1), say("1", "a"))},
			{kind: "an orphan", file: file, text: lines(strings.Replace(head, `"version"`,
				`"detachedFromSpawningParentSessionId":"gone","version"`, 1), say("1", "a"),
				strings.Replace(say("2", "b"), `"id"`, `"agentId":"gone","id"`, 1))},
			{kind: "a name twice", file: file, text: lines(head, say("1", "a"), say("1", "another"), say("2", "b"))},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "b"), "user.message", "dream", 1))},
			{
				kind: "an unknown version", file: file,
				text: lines(strings.Replace(head, `"version":1`, `"version":9`, 1), say("1", "a")),
			},
		},
		none: noDatabase,
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string { return say(strconv.Itoa(i), text) },
			odd: func(i int) string {
				return strings.Replace(say(strconv.Itoa(i), "b"), "user.message", fmt.Sprintf("dream.%d", i), 1)
			},
		},
	}
}

func ofQwenCode() program {
	const id, file = "22222222-0000-4000-8000-000000000001", "chats/22222222-0000-4000-8000-000000000001.jsonl"
	say := func(uuid, parent, text string) string {
		link := "null"
		if parent != "" {
			link = quote(parent)
		}
		return `{"uuid":"` + uuid + `","parentUuid":` + link + `,"sessionId":"` + id + `","timestamp":"2026-08-01T09:00:01.000Z","type":"user","provenance":"real_user","cwd":"/proj","version":"0.21.6","message":{"role":"user","parts":[{"text":` + quote(text) + `}]}}`
	}
	other := func(text string) string { return strings.ReplaceAll(text, "22222222", "33333333") }
	return program{
		source: qwencode.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: other(file), text: lines(other(say("good", "", fine)))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", "world"), says: "no session of Qwen Code"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "", "a")), says: "JSON", line: 1},
			{kind: "half a line", file: file, text: lines(say("1", "", "a")) + `{"uuid":`},
			{kind: "no end of the last line", file: file, text: lines(say("1", "", "a")) + say("2", "1", "b")},
			{kind: "two objects on a line", file: file, text: lines(say("1", "", "a") + say("2", "1", "b"))},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(say("1", "", "a"), `{"torn":`, say("2", "1", "b")),
				says: "JSON", line: 2,
			},
			{kind: "invalid UTF-8", file: file, text: lines(say("1", "", "a"),
				strings.Replace(say("2", "1", "X"), "X", "\xff\xfe", 1))},
			{kind: "a line of 50 MB", file: file, text: lines(say("1", "", wide), say("2", "1", "after"))},
			{
				kind: "a record of 65 MiB", file: file, text: lines(say("1", "", huge), say("2", "1", "after")), says: "64 MiB",
				line: 1,
			},
			{
				kind: "10,001 levels", file: file, text: lines(say("1", "", "a"),
					strings.Replace(say("2", "1", "b"), `"cwd":`, `"x":`+deep+`,"cwd":`, 1), say("3", "2", "c")), says: "JSON",
				line: 2,
			},
			{kind: "a cycle", file: file, text: lines(say("1", "2", "a"), say("2", "1", "b"))},
			{kind: "an orphan", file: file, text: lines(strings.Replace(say("1", "", "a"), `"cwd"`,
				`"forkedFrom":{"sessionId":"gone"},"cwd"`, 1), say("2", "gone", "b"))},
			{kind: "a name twice", file: file, text: lines(say("1", "", "a"), say("1", "", "another"), say("2", "1", "b"))},
			{kind: "an unknown type", file: file, text: lines(say("1", "", "a"),
				strings.Replace(say("2", "1", "b"), `"type":"user"`, `"type":"dream"`, 1))},
			{kind: "an unknown version", file: file, text: lines(strings.Replace(say("1", "", "a"), "0.21.6", "99.0", 1))},
		},
		none: noDatabase,
		lines: lined{
			file: file, says: func(i int, text string) string { return say(strconv.Itoa(i), parent(i), text) },
			odd: func(i int) string {
				return strings.Replace(say(strconv.Itoa(i), parent(i), "b"), `"type":"user"`, fmt.Sprintf(`"type":"dream %d"`, i),
					1)
			},
		},
	}
}

func ofSessiond(t *testing.T) program {
	t.Helper()
	export := func(texts ...string) string {
		s := testkit.Must(store.Open(t.Context(), storetest.New(t, filepath.Join(t.TempDir(), "there.db")),
			store.Options{Zone: time.UTC}))(t)
		defer s.Close()
		for _, text := range texts {
			made, err := s.CreateSession(t.Context(), store.NewSession{Title: "t"})
			if err == nil {
				_, err = s.Append(t.Context(), store.Append{Session: made.ID, Messages: []session.Message{
					{Role: session.User, InContext: true, Display: true, Parts: []session.Part{session.TextPart(text)}},
					{Role: session.User, InContext: true, Display: true, Parts: []session.Part{session.TextPart("more")}},
				}})
			}
			testkit.Check(t, err)
		}
		var out bytes.Buffer
		ids := testkit.Must(own.Order(t.Context(), s, nil))(t)
		w := own.NewWriter(&out, s, nil)
		for _, id := range ids {
			testkit.Check(t, w.Session(t.Context(), id))
		}
		testkit.Check(t, w.Close())
		return out.String()
	}
	// The good file's session has another name, so that both can be here.
	elsewhere := func(text string) string { return strings.ReplaceAll(text, "_001", "_777") }
	const file = "export.jsonl"
	one := export("a")
	all := strings.SplitAfter(one, "\n") // export, session, message, message, end
	with := func(old, new string) string { return strings.Replace(one, old, new, 1) }
	day := one[strings.Index(one, `"id":"`)+6:][:8]
	return program{
		source: &own.Source{},
		good:   wrong{file: "good.jsonl", text: elsewhere(export(fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: "hello\n" + one, says: "first line"},
			{kind: "half a line", file: file, text: one[:len(one)-len(all[4])-30], says: "is not imported", line: 4},
			{
				kind: "invalid JSON in the middle", file: file, text: all[0] + all[1] + "{\"torn\":\n" + all[2] + all[3] + all[4],
				says: "no JSON object", line: 3,
			},
			{kind: "invalid UTF-8", file: file, text: with(`"text":"a"`, "\"text\":\"\xff\xfe\"")},
			{kind: "a line of 50 MB", file: file, text: export(wide)},
			{kind: "a record of 65 MiB", file: file, text: export(huge), says: "over 67108864 bytes", line: 3},
			{kind: "10,001 levels", file: file, text: with(`"text":"a"`, `"text":"a","x":`+deep), says: "max depth", line: 3},
			{
				kind: "a cycle", file: file, text: with(`"parent":null`, `"parent":"`+day+`_001.2"`), says: "which comes later",
				line: 3,
			},
			{
				kind: "an orphan", file: file, text: with(`"parent":null`, `"parent":"20200101_001.9"`),
				says: "neither in the file before it nor here", line: 5,
			},
			{kind: "a name twice", file: file, text: strings.Replace(one, all[3], all[2], 1), says: "is not imported", line: 4},
			{kind: "no end of the last line", file: file, text: strings.TrimSuffix(one, "\n")},
			{kind: "a file that vanishes", file: file, text: one, says: "no such file"},
			{
				kind: "unknown kinds by the thousand", file: file,
				text: all[0] + all[1] + all[2] + strings.Repeat("{\"type\":\"dream\"}\n", 3000) + all[3] + all[4],
			},
			{kind: "an unknown type", file: file, text: all[0] + all[1] + all[2] + "{\"type\":\"dream\"}\n" + all[3] + all[4]},
			{kind: "an unknown version", file: file, text: with(`"version":1`, `"version":9`), says: "update"},
		},
		none: append([]string{"two objects on a line", "a record after garbage", "NULs", "a record over lines"},
			noDatabase...),
	}
}
