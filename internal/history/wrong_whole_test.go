package history_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"sessiond/internal/history/chatgpt"
	"sessiond/internal/history/claudeai"
	"sessiond/internal/history/cline"
	"sessiond/internal/history/continuedev"
	"sessiond/internal/history/cursor"
	"sessiond/internal/history/droid"
	"sessiond/internal/history/generic"
	"sessiond/internal/history/kimicode"
	"sessiond/internal/history/vscodecopilot"
	"sessiond/internal/history/windsurf"
	"sessiond/internal/testkit/historytest"
)

// document is what a file of one JSON object or list looks like.
type document struct {
	file       string
	begin, end string
	says       func(i int, text string) string // the i-th entry, from 1
	odd        string                          // one of a kind that nobody knows
	broken     string                          // what is said of a file that is no whole JSON
	other      string                          // and of another program's
	huge       string                          // and of an entry that is too large
	saysOdd    string                          // and of an odd entry
	newer      [2]string                       // what in it is what in a newer version
	goodName   [2]string                       // and what in the one that has nothing wrong
	keeps      bool                            // what stands before the break comes in
}

func (d *document) of(entries ...string) string { return d.begin + strings.Join(entries, ",") + d.end }

func (d *document) good() wrong {
	named := strings.NewReplacer(d.goodName[0], d.goodName[1])
	return wrong{file: named.Replace(d.file), text: named.Replace(d.of(d.says(1, fine)))}
}

// noLines are the kinds that only a file of lines has.
var noLines = append([]string{
	"no end of the last line", "two objects on a line", "a record after garbage", "NULs", "a record over lines",
}, noDatabase...)

// rows are the wrong inputs that every document can be.
func (d *document) rows() []wrong {
	one, two := d.says(1, "one"), d.says(2, "two")
	half := wrong{kind: "half a line", file: d.file, text: d.of(one, two), says: d.broken}
	half.text = half.text[:len(half.text)-len(d.end)-len(two)/2]
	broken := wrong{
		kind: "invalid JSON in the middle", file: d.file, text: d.of(one, `{"torn":`, two), says: d.broken,
	}
	if d.keeps {
		half.has = "one"
	}
	return []wrong{
		half, broken,
		{kind: "an empty file", file: d.file, says: "empty"},
		{kind: "a wrong first line", file: d.file, text: `{"hello":"world"}`, says: d.other},
		{kind: "invalid UTF-8", file: d.file, text: d.of(one, d.says(2, "\xff\xfe")), has: "one"},
		{kind: "a line of 50 MB", file: d.file, text: d.of(d.says(1, wide), d.says(2, "after")), has: "after"},
		{kind: "a record of 65 MiB", file: d.file, text: d.of(one, d.says(2, huge)), says: d.huge},
		{kind: "10,001 levels", file: d.file, text: d.of(one, deep), says: d.broken},
		{kind: "a name twice", file: d.file, text: d.of(one, d.says(1, "another"), two), has: "one"},
		{
			kind: "unknown kinds by the thousand", file: d.file,
			text: d.of(one, strings.Repeat(d.odd+",", 2999)+d.odd), says: d.saysOdd, has: "one",
		},
		{kind: "a file that vanishes", file: d.file, text: d.of(one), says: "no such file"},
		{kind: "an unknown type", file: d.file, text: d.of(one, d.odd), says: d.saysOdd, has: "one"},
		{kind: "an unknown version", file: d.file, text: strings.Replace(d.of(one), d.newer[0], d.newer[1], 1), has: "one"},
	}
}

func ofContinue() program {
	const id = "5d4ce000-0000-4000-8000-000000000001"
	d := document{
		file: id + ".json", end: `]}`,
		begin: `{"sessionId":"` + id + `","title":"t","workspaceDirectory":"/w","history":[`,
		says: func(_ int, text string) string {
			return `{"message":{"role":"user","content":"` + text + `"},"contextItems":[]}`
		},
		odd: `{"message":{"role":"dream","content":"of sheep"}}`, saysOdd: "whose role is not known",
		broken: "no session of Continue, or cut off", other: "no list `history`", huge: "over 64 MiB; left out",
		newer: [2]string{`"title"`, `"version":9,"title"`}, goodName: [2]string{"5d4ce000", "5d4ce001"},
	}
	return program{
		source: continuedev.New(historytest.NoEnv, historytest.Later), good: d.good(), wrong: d.rows(),
		none: append([]string{"a cycle", "an orphan"}, noLines...),
	}
}

func ofCline() program {
	d := document{
		file: "sessions/s1/s1.messages.json", end: `]}`, begin: `{"version":1,"sessionId":"s1","messages":[`,
		says: func(i int, text string) string {
			return fmt.Sprintf(`{"id":"m%d","role":"user","content":[{"type":"text","text":"%s"}],"ts":1795752991683}`, i, text)
		},
		odd:    `{"id":"m9","role":"dream","content":[{"type":"dream"}],"ts":1795752991683}`,
		broken: "no JSON, or cut off", huge: "over 64 MiB",
		newer: [2]string{`"version":1`, `"version":9`}, goodName: [2]string{"s1", "s2"},
	}
	rows := d.rows()
	rows = append(rows, wrong{kind: "an orphan", file: d.file, text: strings.Replace(d.of(d.says(1, "a")), `"messages"`,
		`"metadata":{"fork":{"forkedFromSessionId":"gone"}},"messages"`, 1), has: "a"})
	return program{
		source: cline.New(historytest.NoUser, historytest.Later), good: d.good(),
		wrong: without(rows, "a file that vanishes"),
		none:  append([]string{"a cycle", "a file that vanishes"}, noLines...),
	}
}

func ofRoo() program {
	d := document{
		file: "rooveterinaryinc.roo-cline/tasks/t1/api_conversation_history.json", begin: `[`, end: `]`,
		says: func(i int, text string) string {
			return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"<task>%s</task>"}],"ts":%d}`, text,
				1795752991683+i)
		},
		odd:    `{"role":"dream","content":[{"type":"dream"}],"ts":1795752991699}`,
		broken: "no JSON, or cut off", huge: "over 64 MiB", newer: [2]string{`"role"`, `"version":9,"role"`},
		goodName: [2]string{"t1", "t2"},
	}
	return program{ // of a folder, whose files may vanish one by one
		source: cline.NewRoo(historytest.NoUser, historytest.Later), good: d.good(),
		wrong: without(d.rows(), "a file that vanishes", "a wrong first line"),
		none:  append([]string{"a cycle", "an orphan", "a file that vanishes", "a wrong first line"}, noLines...),
	}
}

// without removes kinds that there are not.
func without(rows []wrong, kinds ...string) (rest []wrong) {
	for _, w := range rows {
		if !strings.Contains(strings.Join(kinds, "\n"), w.kind) {
			rest = append(rest, w)
		}
	}
	return rest
}

func ofChatGPT() program {
	says := func(id, parent, text string) string {
		return `{"id":"` + id + `","mapping":{"u":{"id":"u","parent":` + parent + `,"message":{"id":"u","author":{"role":"user"},` +
			`"create_time":1767225610.25,"content":{"content_type":"text","parts":["` + text + `"]}}}}}`
	}
	d := document{
		file: "conversations.json", begin: `[`, end: `]`,
		says: func(i int, text string) string { return says(strconv.Itoa(i), "null", text) },
		odd:  `{"dream":"of sheep"}`, keeps: true, broken: "what stands before is imported", other: "no export of ChatGPT",
		huge: "over 64 MiB; left out", newer: [2]string{`"mapping"`, `"version":9,"mapping"`},
		goodName: [2]string{`"id":"1"`, `"id":"7"`},
	}
	rows := append(d.rows(),
		wrong{kind: "a cycle", file: d.file, text: d.of(says("1", `"u"`, "a")), has: "a"},
		wrong{kind: "an orphan", file: d.file, text: d.of(says("1", `"gone"`, "a")), has: "a"})
	return program{
		source: chatgpt.New(historytest.Later), good: d.good(), wrong: rows, none: noLines,
	}
}

func ofClaudeAI() program {
	says := func(id, more, text string) string {
		return `{"uuid":"` + id + `","chat_messages":[{"uuid":"m` + id + `"` + more + `,"sender":"human","content":` +
			`[{"type":"text","text":"` + text + `"}],"created_at":"2026-03-29T07:00:01Z"}]}`
	}
	d := document{
		file: "conversations.json", begin: `[`, end: `]`,
		says: func(i int, text string) string { return says(strconv.Itoa(i), "", text) },
		odd:  `{"dream":"of sheep"}`, keeps: true, broken: "what stands before is imported", other: "no export of Claude.ai",
		huge: "over 64 MiB; left out", newer: [2]string{`"chat_messages"`, `"version":9,"chat_messages"`},
		goodName: [2]string{`"uuid":"1"`, `"uuid":"7"`},
	}
	rows := append(d.rows(),
		wrong{kind: "a cycle", file: d.file, text: d.of(says("1", `,"parent_message_uuid":"m1"`, "a")), has: "a"},
		wrong{kind: "an orphan", file: d.file, text: d.of(says("1", `,"parent_message_uuid":"gone"`, "a")), has: "a"})
	return program{
		source: claudeai.New(historytest.Later), good: d.good(), wrong: rows, none: noLines,
	}
}

func ofGeneric() program {
	say := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	const file, list, db = "a.jsonl", "a.json", "a.db"
	tables := `CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT); INSERT INTO messages VALUES ('1', 'user', 'a');`
	return program{
		source: generic.New(historytest.Later),
		good:   wrong{file: "good.jsonl", text: lines(say(fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("a")), says: "not a JSON object", line: 1},
			{kind: "half a line", file: file, text: lines(say("a")) + `{"role":`, has: "a"},
			{kind: "half a line", file: list, text: "[" + say("a") + ",", says: "cut off"},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(say("a"), `{"torn":`, say("b")),
				says: "not a JSON object", line: 2, has: "b",
			},
			{kind: "invalid UTF-8", file: file, text: lines(say("a"), say("\xff\xfe")), has: "a"},
			{kind: "a line of 50 MB", file: file, text: lines(say(wide), say("after")), has: "after"},
			{kind: "a record of 65 MiB", file: file, text: lines(say(huge), say("after")), says: "64 MiB", line: 1},
			{
				kind: "10,001 levels", file: file, text: lines(say("a"), `{"role":"user","content":`+deep+`}`, say("b")),
				says: "nested too deep", line: 2, has: "b",
			},
			{kind: "a name twice", file: file, text: lines(`{"id":"1","role":"user","content":"a"}`,
				`{"id":"1","role":"user","content":"another"}`), has: "another"},
			{kind: "no end of the last line", file: file, text: lines(say("a")) + say("b"), has: "b"},
			{
				kind: "two objects on a line", file: file, text: lines(say("a")+say("b"), `{"torn":`),
				says: "not a JSON object", line: 2, has: "b",
			},
			{
				kind: "an unknown type", file: file, text: lines(say("a"), `{"role":"dream","content":"b"}`), says: "kept raw",
				line: 2, has: "a",
			},
			{kind: "an unknown version", file: file, text: lines(`{"version":9,"role":"user","content":"a"}`), has: "a"},
			{kind: "a newer database", file: db, text: tables + `ALTER TABLE messages ADD COLUMN mood TEXT;`, has: "a"},
			{
				kind: "a corrupt database", file: db, says: "damaged", cut: 9000, text: tables +
					`INSERT INTO messages WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
					SELECT '1', 'user', 'many words ' || i FROM n;`,
			},
			{kind: "a locked database", file: db, text: tables, says: "writing"},
			{kind: "a table missing", file: db, text: `CREATE TABLE dreams (x);`, says: "table"},
			{kind: "a column missing", file: db, text: tables + `ALTER TABLE messages DROP COLUMN content;`, says: "content"},
		},
		none: []string{"a cycle", "an orphan"},
		lines: lined{
			file: file, says: func(_ int, text string) string { return `{"role":"user","content":` + quote(text) + `}` },
			odd:  func(i int) string { return fmt.Sprintf(`{"role":"dream %d","content":"x"}`, i) },
			told: "without a role and a content",
		},
	}
}

func ofKimiCode() program {
	const head = `{"type":"metadata","protocol_version":"1.5","created_at":1795752985482}`
	const file = "sessions/wd_x/session_1/agents/main/wire.jsonl"
	say := func(id, text string) string {
		return `{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":` + quote(text) +
			`}],"id":"` + id + `","origin":{"kind":"user"}},"time":1795752985547}`
	}
	return program{
		source: kimicode.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: strings.Replace(file, "_1", "_2", 1), text: lines(head, say("1", fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", "world"), says: "no log of Kimi Code"},
			{kind: "half a line", file: file, text: lines(head, say("1", "a")) + `{"type":`, has: "a"},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("1", "a"), `{"torn":`, say("2", "b")),
				says: "JSON", line: 3, has: "b",
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "X"), "X", "\xff\xfe", 1)), has: "a"},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", wide), say("2", "after")), has: "after"},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", huge), say("2", "after")), says: "64 MiB",
				line: 2,
			},
			{
				kind: "10,001 levels", file: file, text: lines(head, say("1", "a"), `{"type":"x.y","z":`+deep+`}`, say("3", "b")),
				says: "kept raw", line: 3, has: "b",
			},
			{
				kind: "an orphan", file: strings.Replace(file, "main", "agent-0", 1), text: lines(head, say("1", "a")), has: "a",
			},
			{kind: "a name twice", file: file, text: lines(head, say("1", "a"), say("1", "another"), say("2", "b")), has: "b"},
			{kind: "no end of the last line", file: file, text: lines(head, say("1", "a")) + say("2", "b"), has: "b"},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "a")+say("2", "b"), `{"torn":`),
				says: "JSON", line: 3, has: "b",
			},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "a"), `{"type":"dream.begun"}`), has: "a"},
			{
				kind: "an unknown version", file: file, text: lines(strings.Replace(head, "1.5", "9.0", 1), say("1", "a")),
				has: "a",
			},
		},
		none: append([]string{"a cycle"}, noDatabase...),
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string { return say(strconv.Itoa(i), text) },
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream.%d"}`, i) },
		},
	}
}

func ofVSCodeCopilot() program {
	const head = `{"kind":0,"v":{"version":3,"creationDate":1790000000000,"sessionId":"s1","requests":[]}}`
	file := filepath.Join("chatSessions", "s1.jsonl")
	old := filepath.Join("chatSessions", "s1.json")
	request := func(id, text string) string {
		return `{"requestId":"` + id + `","timestamp":1790000100000,"message":{"text":"` + text +
			`"},"response":[],"modelState":{"value":1}}`
	}
	say := func(id, text string) string { return `{"kind":2,"k":["requests"],"v":[` + request(id, text) + `]}` }
	d := document{
		file: old, begin: `{"version":3,"sessionId":"s1","requests":[`, end: `]}`,
		says: func(i int, text string) string { return request(strconv.Itoa(i), text) }, odd: `{"dream":1}`,
		broken: "no chat of VS Code", other: "no chat of VS Code", huge: "over 64 MiB",
		newer: [2]string{`"version":3`, `"version":9`}, goodName: [2]string{"s1", "s2"},
	}
	wrongLine := "no operation of a chat"
	return program{
		source: vscodecopilot.New(historytest.NoUser, historytest.Later), good: d.good(),
		wrong: append(d.rows(),
			wrong{kind: "an empty file", file: file, says: "empty"},
			wrong{kind: "half a line", file: file, text: lines(head, say("1", "a")) + `{"kind":`, has: "a"},
			wrong{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("1", "a"), `{"torn":`, say("2", "b")),
				says: wrongLine, line: 3, has: "a",
			},
			wrong{kind: "no end of the last line", file: file, text: lines(head, say("1", "a")) + say("2", "b"), has: "b"},
			wrong{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "a"), say("2", "b")+say("3", "c")),
				says: wrongLine, line: 3, has: "a",
			},
			wrong{
				kind: "a record after garbage", file: file, text: lines(head, say("1", "a"), `{"ki`+say("2", "b")),
				says: wrongLine, line: 3, has: "a",
			},
			wrong{
				kind: "NULs", file: file, text: lines(head, say("1", "a"), "\x00\x00"+say("2", "b")), says: wrongLine, line: 3,
				has: "a",
			},
			wrong{
				kind: "a record over lines", file: file, text: lines(head, say("1", "a"), say("2", "b\nc")), says: wrongLine,
				line: 3, has: "a",
			},
			wrong{
				kind: "an unknown type", file: file, text: lines(head, say("1", "a"), `{"kind":9,"k":["x"]}`), says: wrongLine,
				line: 3, has: "a",
			},
		),
		none: append([]string{"a cycle", "an orphan"}, noDatabase...),
	}
}

func ofCursor() program {
	const db = "globalStorage/state.vscdb"
	talk := func(id, bubbles string) string {
		return `('composerData:` + id + `', '{"createdAt":1790000000000,"fullConversationHeadersOnly":[` + bubbles + `]}'),`
	}
	bubble := func(id, text string) string {
		return `('bubbleId:` + id + `', '{"type":1,"text":"` + text + `"}')`
	}
	tables := `CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
		CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB); INSERT INTO cursorDiskKV VALUES `
	one := tables + talk("c1", `{"bubbleId":"b1"},{"bubbleId":"b2"}`) + bubble("c1:b1", "a")
	text := "agent-transcripts/0a1b2c3d-0000-4000-8000-000000000001/0a1b2c3d-0000-4000-8000-000000000001.jsonl"
	say := func(said string) string {
		return `{"role":"user","message":{"content":[{"type":"text","text":` + quote(said) + `}]}}`
	}
	return program{
		source: cursor.New(historytest.NoUser, historytest.Later),
		good:   wrong{file: db, text: tables + talk("good", `{"bubbleId":"b1"}`) + bubble("good:b1", fine)},
		wrong: []wrong{
			{kind: "an empty file", file: db, says: "empty"},
			{kind: "an empty file", file: text, says: "empty"},
			{kind: "a wrong first line", file: text, text: lines("hello", "world"), says: "no transcript of Cursor"},
			{kind: "half a line", file: text, text: lines(say("a")) + `{"role":`, has: "a"},
			{
				kind: "invalid JSON in the middle", file: text, text: lines(say("a"), `{"torn":`, say("b")), says: "JSON", line: 2,
				has: "b",
			},
			{
				kind: "invalid JSON in the middle", file: db, text: one + `, ('bubbleId:c1:b2', '{"torn":')`, says: "kept raw",
				has: "a",
			},
			{kind: "invalid UTF-8", file: db, text: one + `, ('bubbleId:c1:b2', CAST(X'7b2274797065223a312c2274657874223a22fffe227d' AS TEXT))`, has: "a"},
			{kind: "a line of 50 MB", file: text, text: lines(say(wide), say("after")), has: "after"},
			{kind: "a record of 65 MiB", file: text, text: lines(say(huge), say("after")), says: "64 MiB", line: 1},
			{kind: "a record of 65 MiB", file: db, text: one + "," + bubble("c1:b2", huge), says: "64 MiB"},
			{
				kind: "10,001 levels", file: db, text: one + `, ('bubbleId:c1:b2', '{"type":1,"x":` + deep + `}')`,
				says: "kept raw", has: "a",
			},
			{kind: "a cycle", file: db, text: one + `, ('composerData:x', '{"subagentInfo":{"parentComposerId":"x"},"fullConversationHeadersOnly":[]}')`, has: "a"},
			{kind: "an orphan", file: db, text: one + "," + bubble("gone:b1", "b"), has: "a"},
			{kind: "a name twice", file: db, text: tables + talk("c1", `{"bubbleId":"b1"},{"bubbleId":"b1"}`) +
				bubble("c1:b1", "a"), has: "a"},
			{kind: "no end of the last line", file: text, text: lines(say("a")) + say("b"), has: "b"},
			{
				kind: "two objects on a line", file: text, text: lines(say("a")+say("b"), `{"torn":`), says: "JSON", line: 2,
				has: "b",
			},
			{kind: "an unknown type", file: db, text: one + `, ('bubbleId:c1:b2', '{"type":9,"text":"x"}')`, has: "a"},
			{
				kind: "an unknown version", file: db, text: strings.Replace(one, `{"createdAt"`, `{"_v":99,"createdAt"`, 1),
				has: "a",
			},
			{kind: "a newer database", file: db, text: one + `; ALTER TABLE cursorDiskKV ADD COLUMN mood TEXT;`, has: "a"},
			{kind: "a corrupt database", file: db, text: one, cut: 9000, says: "damaged"},
			{kind: "a locked database", file: db, text: one, says: "writing"},
			{kind: "a table missing", file: db, text: `CREATE TABLE dreams (x);`, says: "no database of Cursor"},
			{kind: "a column missing", file: db, text: `CREATE TABLE ItemTable (key TEXT, value BLOB);
				CREATE TABLE cursorDiskKV (key TEXT);`, says: "no column value"},
		},
		lines: lined{
			file: text, says: func(_ int, text string) string { return say(text) },
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream %d"}`, i) },
		},
	}
}

func ofDroid() program {
	const head = `{"type":"session_start","id":"s1","title":"t","version":2,"cwd":"/w"}`
	const file = "s1.jsonl"
	say := func(id, text string) string {
		return `{"type":"message","id":"` + id + `","timestamp":"2026-09-29T01:00:00.000Z","message":{"role":"user",` +
			`"content":[{"type":"text","text":` + quote(text) + `}]}}`
	}
	return program{
		source: droid.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: "s2.jsonl", text: lines(strings.Replace(head, "s1", "s2", 1), say("1", fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", say("1", "a")), says: "no session_start"},
			{kind: "half a line", file: file, text: lines(head, say("1", "a")) + `{"type":`, has: "a"},
			{kind: "half a line", file: "s1.settings.json", text: `{"tokenUsage":`, says: "cut off"},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(head, say("1", "a"), `{"torn":`, say("2", "b")),
				says: "JSON", line: 3, has: "b",
			},
			{kind: "invalid UTF-8", file: file, text: lines(head, say("1", "a"),
				strings.Replace(say("2", "X"), "X", "\xff\xfe", 1)), has: "a"},
			{kind: "a line of 50 MB", file: file, text: lines(head, say("1", wide), say("2", "after")), has: "after"},
			{
				kind: "a record of 65 MiB", file: file, text: lines(head, say("1", huge), say("2", "after")), says: "64 MiB",
				line: 2,
			},
			{
				kind: "10,001 levels", file: file, text: lines(head, say("1", "a"), `{"type":"x","z":`+deep+`}`, say("3", "b")),
				says: "kept raw", line: 3, has: "b",
			},
			{
				kind: "a cycle", file: file, has: "a",
				text: lines(strings.Replace(head, `"cwd"`, `"parent":"s1","cwd"`, 1), say("1", "a")),
			},
			{
				kind: "an orphan", file: file, has: "a",
				text: lines(strings.Replace(head, `"cwd"`, `"parent":"gone","cwd"`, 1), say("1", "a")),
			},
			{kind: "a name twice", file: file, text: lines(head, say("1", "a"), say("1", "another"), say("2", "b")), has: "b"},
			{kind: "no end of the last line", file: file, text: lines(head, say("1", "a")) + say("2", "b"), has: "b"},
			{
				kind: "two objects on a line", file: file, text: lines(head, say("1", "a")+say("2", "b"), `{"torn":`),
				says: "JSON", line: 3, has: "b",
			},
			{kind: "an unknown type", file: file, text: lines(head, say("1", "a"), `{"type":"dream"}`), has: "a"},
			{
				kind: "an unknown version", file: file, has: "a",
				text: lines(strings.Replace(head, `"version":2`, `"version":9`, 1), say("1", "a")),
			},
		},
		none: noDatabase,
		lines: lined{
			file: file, head: []string{head}, says: func(i int, text string) string { return say(strconv.Itoa(i), text) },
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream %d"}`, i) },
		},
	}
}

func ofWindsurf() program {
	const file = "transcripts/s1.jsonl"
	say := func(text string) string {
		return `{"type":"user_input","status":"done","user_input":{"user_response":` + quote(text) + `}}`
	}
	return program{
		source: windsurf.New(historytest.NoEnv, historytest.Later),
		good:   wrong{file: "transcripts/s2.jsonl", text: lines(say(fine))},
		wrong: []wrong{
			{kind: "an empty file", file: file, says: "empty"},
			{kind: "a wrong first line", file: file, text: lines("hello", "world"), says: "no transcript of Windsurf"},
			{kind: "half a line", file: file, text: lines(say("a")) + `{"type":`, has: "a"},
			{
				kind: "invalid JSON in the middle", file: file, text: lines(say("a"), `{"torn":`, say("b")), says: "JSON", line: 2,
				has: "b",
			},
			{kind: "invalid UTF-8", file: file, text: lines(say("a"), strings.Replace(say("X"), "X", "\xff\xfe", 1)), has: "a"},
			{kind: "a line of 50 MB", file: file, text: lines(say(wide), say("after")), has: "after"},
			{kind: "a record of 65 MiB", file: file, text: lines(say(huge), say("after")), says: "64 MiB", line: 1},
			{
				kind: "10,001 levels", file: file, text: lines(say("a"), `{"type":"x","x":`+deep+`}`, say("b")), says: "nested",
				line: 2, has: "b",
			},
			{kind: "no end of the last line", file: file, text: lines(say("a")) + say("b"), has: "b"},
			{
				kind: "two objects on a line", file: file, text: lines(say("a")+say("b"), `{"torn":`), says: "JSON", line: 2,
				has: "b",
			},
			{kind: "an unknown type", file: file, text: lines(say("a"), `{"type":"dream","dream":{"of":"sheep"}}`), has: "a"},
		},
		none: append([]string{"a cycle", "an orphan", "a name twice", "an unknown version"}, noDatabase...),
		lines: lined{
			file: file, says: func(_ int, text string) string { return say(text) },
			odd: func(i int) string { return fmt.Sprintf(`{"type":"dream","status":"%d"}`, i) }, told: "no step",
		},
	}
}
