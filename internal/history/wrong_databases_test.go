package history_test

import (
	"fmt"
	"strings"

	"sessiond/internal/history/antigravity"
	"sessiond/internal/history/crush"
	"sessiond/internal/history/devin"
	"sessiond/internal/history/geminitakeout"
	"sessiond/internal/history/hermes"
	"sessiond/internal/history/zed"
	"sessiond/internal/testkit/historytest"
)

// base is what a database of sessions looks like: scripts of SQL.
type base struct {
	file  string
	begin string                          // the tables, and the session 's'
	says  func(i int, text string) string // its i-th message, from 1
	holds func(i int, raw string) string  // one with JSON as it is
	odd   string                          // one of a kind that nobody knows
	more  string                          // what adds a column
	lacks string                          // tables without a column that is needed
	other string                          // what is said of another database
	raw   string                          // and of JSON that is broken, or too deep
	huge  string                          // and of a message that is too large
	told  string                          // and of the odd one
}

// noFile are the kinds that no database can be.
var noFile = []string{
	"half a line", "no end of the last line", "two objects on a line", "a record after garbage", "NULs",
	"a record over lines", "unknown kinds by the thousand", "a file that vanishes",
}

func (b *base) good() wrong {
	return wrong{file: b.file, text: strings.ReplaceAll(b.begin+b.says(1, fine), "'s'", "'s2'")}
}

// rows are the wrong inputs that every database can be.
func (b *base) rows() []wrong {
	one := b.begin + b.says(1, "a")
	bytes := strings.Replace(b.says(2, "XX"), "XX", "' || CAST(X'FFFE' AS TEXT) || '", 1)
	return []wrong{
		{kind: "an empty file", file: b.file, says: "empty"},
		{kind: "a wrong first line", file: b.file, text: "hello", says: "no SQLite database"},
		{kind: "invalid JSON in the middle", file: b.file, text: one + b.holds(2, `{"torn":`) + b.says(3, "b"), says: b.raw, has: "b"},
		{kind: "invalid UTF-8", file: b.file, text: one + bytes, has: "a"},
		{kind: "a line of 50 MB", file: b.file, text: b.begin + b.says(1, wide) + b.says(2, "after"), has: "after"},
		{kind: "a record of 65 MiB", file: b.file, text: one + b.says(2, huge), says: b.huge},
		{kind: "10,001 levels", file: b.file, text: one + b.holds(2, deep) + b.says(3, "b"), says: b.raw, has: "b"},
		{kind: "an unknown type", file: b.file, text: one + b.odd, says: b.told, has: "a"},
		{kind: "a newer database", file: b.file, text: one + b.more, has: "a"},
		{kind: "a corrupt database", file: b.file, text: one, cut: 9000, says: "damaged"},
		{kind: "a locked database", file: b.file, text: one, says: "writing"},
		{kind: "a table missing", file: b.file, text: `CREATE TABLE dreams (x);`, says: b.other},
		{kind: "a column missing", file: b.file, text: b.lacks, says: b.other},
	}
}

func ofCrush() program {
	holds := func(i int, parts string) string {
		return fmt.Sprintf(`INSERT INTO messages VALUES ('m%d', 's', 'user', '%s', %d, 1787314111);`, i, parts, 1787314111+i)
	}
	says := func(i int, text string) string { return holds(i, `[{"type":"text","data":{"text":"`+text+`"}}]`) }
	b := base{
		file: "crush.db", says: says, holds: holds, odd: holds(2, `[{"type":"dream","data":{"of":"sheep"}}]`),
		begin: `CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, updated_at INTEGER);
			CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER, updated_at INTEGER);
			INSERT INTO sessions VALUES ('s', NULL, 1787314111);`,
		more:  `ALTER TABLE messages ADD COLUMN mood TEXT;`,
		lacks: `CREATE TABLE sessions (id TEXT); CREATE TABLE messages (id TEXT, session_id TEXT);`,
		other: "no sessions of Crush", raw: "kept raw", huge: "64 MiB",
	}
	rows := append(b.rows(),
		wrong{kind: "a cycle", file: b.file, text: strings.Replace(b.begin, "NULL", "'s'", 1) + says(1, "a"), has: "a"},
		wrong{
			kind: "an orphan", file: b.file, has: "b", text: strings.Replace(b.begin, "NULL", "'gone'", 1) + says(1, "a") +
				strings.Replace(says(2, "b"), "'user'", "'assistant'", 1),
		},
		wrong{kind: "a name twice", file: b.file, text: b.begin + says(1, "a") + says(1, "another"), has: "a"})
	return program{
		source: crush.New(historytest.NoUser, historytest.Later), good: b.good(), wrong: rows,
		none: append([]string{"an unknown version"}, noFile...),
	}
}

func ofHermes() program {
	says := func(i int, text string) string {
		return fmt.Sprintf(`INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', '%s', %d);`, text, 1785015600+i)
	}
	b := base{
		file: "state.db", says: says, odd: strings.Replace(says(2, "of sheep"), "'user'", "'dream'", 1),
		holds: func(i int, raw string) string {
			return fmt.Sprintf(`INSERT INTO messages (session_id, role, tool_calls, timestamp) VALUES ('s', 'assistant', '%s', %d);`, raw, 1785015600+i)
		},
		begin: `CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, started_at REAL);
			CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, timestamp REAL);
			INSERT INTO sessions VALUES ('s', 'cli', NULL, 1785015600);`,
		more:  `ALTER TABLE messages ADD COLUMN mood TEXT;`,
		lacks: `CREATE TABLE sessions (id TEXT); CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT);`,
		other: "no sessions of Hermes", huge: "64 MiB",
	}
	rows := append(b.rows(),
		wrong{kind: "a cycle", file: b.file, text: strings.Replace(b.begin, "NULL", "'s'", 1) + says(1, "a"), has: "a"},
		wrong{kind: "an orphan", file: b.file, text: strings.Replace(b.begin, "NULL", "'gone'", 1) + says(1, "a"), has: "a"},
		wrong{kind: "a name twice", file: b.file, text: b.begin + says(1, "a") + says(1, "a") + says(2, "b"), has: "b"},
		wrong{kind: "an unknown version", file: b.file, text: b.begin + says(1, "a") + `CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (999);`, has: "a"})
	return program{
		source: hermes.New(historytest.NoUser, historytest.Later), good: b.good(), wrong: rows, none: noFile,
	}
}

func ofDevin() program {
	holds := func(i int, raw string) string {
		return fmt.Sprintf(`INSERT INTO message_nodes VALUES (%[1]d, 's', %[1]d, NULLIF(%[2]d, 0), '%[3]s', 1790000000);
			UPDATE sessions SET main_chain_id = %[1]d WHERE id = 's';`, i, i-1, raw)
	}
	says := func(i int, text string) string {
		return holds(i, fmt.Sprintf(`{"message_id":"m%d","role":"user","content":"%s"}`, i, text))
	}
	b := base{
		file: "sessions.db", says: says, holds: holds, odd: holds(2, `{"role":"dream","content":"of sheep"}`),
		begin: `CREATE TABLE sessions (id TEXT PRIMARY KEY, created_at INTEGER, main_chain_id INTEGER);
			CREATE TABLE message_nodes (row_id INTEGER PRIMARY KEY, session_id TEXT, node_id INTEGER, parent_node_id INTEGER, chat_message TEXT, created_at INTEGER);
			INSERT INTO sessions VALUES ('s', 1790000000, NULL);`,
		more:  `ALTER TABLE message_nodes ADD COLUMN mood TEXT;`,
		lacks: `CREATE TABLE sessions (id TEXT); CREATE TABLE message_nodes (session_id TEXT, node_id INTEGER);`,
		other: "no sessions of Devin", raw: "kept raw", huge: "64 MiB", told: "role is not known",
	}
	rows := append(b.rows(),
		wrong{kind: "half a line", file: "transcripts/s1.json", text: `{"steps":`, says: "no transcript of Devin"},
		wrong{kind: "a cycle", file: b.file, text: b.begin + says(1, "a") + says(2, "b") + `UPDATE message_nodes SET parent_node_id = 2 WHERE node_id = 1;`, has: "b"},
		wrong{kind: "an orphan", file: b.file, text: b.begin + says(1, "a") + says(3, "b"), has: "b"},
		wrong{
			kind: "a name twice", file: b.file, has: "a",
			text: b.begin + says(1, "a") + strings.Replace(says(2, "another"), "m2", "m1", 1),
		})
	return program{
		source: devin.New(historytest.NoUser, historytest.Later), good: b.good(), wrong: rows,
		none: append([]string{"an unknown version"}, noFile[1:]...),
	}
}

func ofZed() program {
	const tables = `CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, parent_id TEXT, updated_at TEXT, data_type TEXT, data BLOB);`
	thread := func(id, document string) string {
		return `INSERT INTO threads VALUES ('` + id + `', 't', NULL, '2026-01-02T09:00:00+00:00', 'json', '` + document + `');`
	}
	of := func(messages ...string) string {
		return `{"version":"0.3.0","messages":[` + strings.Join(messages, ",") + `]}`
	}
	says := func(i int, text string) string {
		return fmt.Sprintf(`{"User":{"id":"u%d","content":[{"Text":"%s"}]}}`, i, text)
	}
	const file = "threads.db"
	one, beside := tables+thread("s", of(says(1, "a"))), thread("t", of(says(1, "b")))
	return program{
		source: zed.New(historytest.NoUser, historytest.Later),
		good:   wrong{file: file, text: tables + thread("good", of(says(1, fine)))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: "hello", says: "no SQLite database"},
			{kind: "invalid JSON in the middle", file: file, text: tables + thread("s", `{"torn":`) + beside, says: "broken", has: "b"},
			{
				kind: "invalid UTF-8", file: file, has: "a",
				text: tables + thread("s", of(says(1, "a"), says(2, "' || CAST(X'FFFE' AS TEXT) || '"))),
			},
			{kind: "a line of 50 MB", file: file, text: tables + thread("s", of(says(1, wide), says(2, "after"))), has: "after"},
			{
				kind: "a record of 65 MiB", file: file, text: tables + thread("s", of(says(1, huge))) + beside,
				says: "64 MiB", has: "b",
			},
			{
				kind: "10,001 levels", file: file, text: tables + thread("s", of(says(1, "a"), deep)) + beside,
				says: "too deep", has: "b",
			},
			{kind: "a cycle", file: file, text: one + `UPDATE threads SET parent_id = 's';`, has: "a"},
			{kind: "an orphan", file: file, text: one + `UPDATE threads SET parent_id = 'gone';`},
			{kind: "a name twice", file: file, text: tables + thread("s", of(says(1, "a"), says(1, "another"))), has: "a"},
			{kind: "an unknown type", file: file, text: tables + thread("s", of(says(1, "a"), `{"Dream":{"of":"sheep"}}`)), has: "a"},
			{kind: "an unknown version", file: file, text: strings.Replace(one, "0.3.0", "9.0.0", 1), has: "a"},
			{kind: "a newer database", file: file, text: one + `ALTER TABLE threads ADD COLUMN mood TEXT;`, has: "a"},
			{kind: "a corrupt database", file: file, text: one, cut: 5000, says: "damaged"},
			{kind: "a locked database", file: file, text: one, says: "writing"},
			{kind: "a table missing", file: file, text: `CREATE TABLE dreams (x);`, says: "no threads of Zed"},
			{kind: "a column missing", file: file, text: `CREATE TABLE threads (id TEXT, data BLOB);`, says: "no threads of Zed"},
		},
		none: noFile,
	}
}

func ofAntigravity() program {
	const file = "brain/s1/.system_generated/logs/transcript_full.jsonl"
	say := func(i int, text string) string {
		return fmt.Sprintf(`{"step_index":%d,"source":"USER_EXPLICIT","type":"USER_INPUT","created_at":"2026-09-21T13:33:20Z","content":%s}`, i,
			quote(text))
	}
	one, two := say(1, "a"), say(2, "b")
	return program{
		source: antigravity.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: strings.Replace(file, "s1", "s2", 1), text: lines(say(1, fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", "world"), says: "no transcript of Antigravity"},
			{kind: "half a line", file: file, text: lines(one) + `{"type":`, has: "a"},
			{kind: "invalid JSON in the middle", file: file, text: lines(one, `{"torn":`, two), says: "JSON", line: 2, has: "b"},
			{kind: "invalid UTF-8", file: file, text: lines(one, strings.Replace(say(2, "X"), "X", "\xff\xfe", 1)), has: "a"},
			{kind: "a line of 50 MB", file: file, text: lines(say(1, wide), say(2, "after")), has: "after"},
			{kind: "a record of 65 MiB", file: file, text: lines(say(1, huge), say(2, "after")), says: "64 MiB", line: 1},
			{kind: "10,001 levels", file: file, text: lines(one, `{"type":"x","x":`+deep+`}`, two), says: "nested", line: 2, has: "b"},
			{kind: "a name twice", file: file, text: lines(one, say(1, "another"), two), has: "b"},
			{kind: "no end of the last line", file: file, text: lines(one) + two, has: "b"},
			{kind: "two objects on a line", file: file, text: lines(one+two, `{"torn":`), says: "JSON", line: 2, has: "b"},
			{kind: "an unknown type", file: file, text: lines(one, `{"step_index":2,"source":"MODEL","type":"DREAM","content":"of sheep"}`), has: "a"},
			{kind: "a table missing", file: "3d1e0000-0000-4000-8000-0000000000e1.db", text: `CREATE TABLE dreams (x);`, says: "no conversation of Antigravity"},
			{kind: "a column missing", file: "3d1e0000-0000-4000-8000-0000000000e1.db", text: `CREATE TABLE gen_metadata (idx);`, says: "no conversation of Antigravity"},
		},
		none: append([]string{"a cycle", "an orphan", "an unknown version"}, noDatabase[:3]...), // of usage alone
		lines: lined{
			file: file, says: say,
			odd: func(i int) string { return fmt.Sprintf(`{"step_index":%d,"source":"SYSTEM","type":"dream %d"}`, i, i) },
		},
	}
}

func ofGeminiTakeout() program {
	d := document{
		file: "MyActivity.json", begin: `[`, end: `]`,
		says: func(i int, text string) string {
			return fmt.Sprintf(`{"header":"Gemini Apps","title":"Prompted %s","time":"2026-01-02T09:00:0%dZ",`+
				`"details":[{"url":"https://gemini.google.com/app/0123456789abcd0%d"}]}`, text, i, i)
		},
		odd: `{"dream":"of sheep"}`, keeps: true, broken: "what stands before is imported", other: "no activity of Gemini",
		huge: "over 64 MiB; left out", newer: [2]string{`"title"`, `"version":9,"title"`},
		goodName: [2]string{"0123456789abcd", "0123456789abce"},
	}
	return program{
		source: geminitakeout.New(historytest.Later), good: d.good(), wrong: d.rows(),
		none: append([]string{"a cycle", "an orphan"}, noLines...),
	}
}
