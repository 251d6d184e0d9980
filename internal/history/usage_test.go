package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/goose"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/historytest"
)

// talk is a history of one prompt and one reply in a program's form.
type talk struct {
	source history.Source
	file   string // * is the session; a database holds all sessions
	tables string // of a database
	text   func(session, said string, outputs ...int64) string
	grows  bool // a reply's usage is written while the reply is; elsewhere once, with the whole reply
	global bool // a reply's id names one reply, wherever it lies: a row elsewhere counts for the same call
	totals bool // a count is a total: a smaller one begins anew
	silent bool // the program records no usage
	latest bool // its files have the latest count alone

	// A file of the session that has its usage, "" where that stands in the talk.
	beside string
	usage  func(session string, outputs ...int64) string
}

// outputs write a row of the reply for each report of its output tokens, where the program writes
// several; elsewhere the last report counts.
func talks() []talk {
	last := func(outputs []int64) int64 { return outputs[len(outputs)-1] }
	of := func(session string) string { return strings.Repeat("0", 7) + session + "-0000-4000-8000-000000000001" }
	piTalk := func(before string) func(string, string, ...int64) string {
		return func(session, said string, outputs ...int64) string {
			return lines(before+fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-02T09:00:00.000Z","cwd":"/w"}`, of(session)), typed("1", "", "asked in "+session),
				fmt.Sprintf(`{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-02T09:01:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":%q}],"provider":"anthropic","model":"m","stopReason":"stop","usage":{"input":3,"output":%d,"cacheRead":0,"cacheWrite":0,"totalTokens":9},"timestamp":1767344461000}}`, said, last(outputs)))
		}
	}
	opencodeTables := `CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
		CREATE TABLE IF NOT EXISTS message (id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
		CREATE TABLE IF NOT EXISTS part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);`
	opencodeTalk := func(session, said string, outputs ...int64) string {
		at := 1770109200000 + last(outputs)
		return fmt.Sprintf(`INSERT INTO session VALUES ('ses_%[1]s', 'p', NULL, '/w', 'one', 1770109200000, %[2]d);
			INSERT INTO message VALUES ('a%[1]s', 'ses_%[1]s', 1770109200000, %[2]d, '{"role":"user","time":{"created":1770109200000}}'), ('b%[1]s', 'ses_%[1]s', 1770109200001, %[2]d,
				'{"role":"assistant","time":{"created":1770109200001,"completed":1770109200002},"modelID":"m","providerID":"p","finish":"stop","tokens":{"input":3,"output":%[4]d}}');
			INSERT INTO part VALUES ('pa%[1]s', 'a%[1]s', 'ses_%[1]s', 1, %[2]d, '{"type":"text","text":"asked in %[1]s"}'), ('pb%[1]s', 'b%[1]s', 'ses_%[1]s', 1, %[2]d, '{"type":"text","text":"%[3]s"}');`,
			session, at, said, last(outputs))
	}
	later := func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
	return append(wholeTalks(), []talk{
		{source: pi.New(historytest.NoEnv), file: "2026-01-02_*.jsonl", text: piTalk("")},
		{
			source: pi.NewOmp(historytest.NoEnv), file: "2026-01-02_*.jsonl",
			text: piTalk(`{"type":"title","title":"a title"}` + "\n"),
		},
		{source: openclaw.New(historytest.NoEnv), file: "agents/main/sessions/*.jsonl", text: piTalk("")},
		{
			source: claudecode.New(historytest.NoEnv, historytest.Later), file: "*.jsonl", grows: true, global: true,
			text: func(session, said string, outputs ...int64) string {
				row := func(id, parent, kind, message string) string {
					return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"cwd":"/w","sessionId":%q,"version":"2.1.120","type":%q,"message":%s,"uuid":%q,"timestamp":"2026-02-08T05:00:0%s.000Z"}`, orNull(parent), of(session), kind, message, session+id, id)
				}
				all := []string{row("1", "", "user", fmt.Sprintf(`{"role":"user","content":%q}`, "asked in "+session))}
				for i, n := range outputs {
					all = append(all, row(fmt.Sprint(i+2), fmt.Sprint(session, i+1), "assistant", fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"%s%d"}],"usage":{"input_tokens":3,"output_tokens":%d}}`, said, i, n)))
				}
				return lines(all...)
			},
		},
		{
			source: codex.New(historytest.NoEnv, historytest.Later), file: "rollout-*.jsonl", grows: true, totals: true,
			text: func(session, said string, outputs ...int64) string {
				all := []string{
					fmt.Sprintf(`{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":%q,"timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w","cli_version":"0.106.0","source":"cli"}}`, of(session)),
					fmt.Sprintf(`{"timestamp":"2026-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, "asked in "+session),
					fmt.Sprintf(`{"timestamp":"2026-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}`, said),
				}
				before := int64(0)
				for _, n := range outputs {
					all = append(all, fmt.Sprintf(`{"timestamp":"2026-03-01T10:00:03.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":3,"output_tokens":%d,"total_tokens":%d},"last_token_usage":{"input_tokens":3,"output_tokens":%d,"total_tokens":%d}}}}`, n, n+3, n-before, n-before+3))
					before = n
				}
				return lines(all...)
			},
		},
		{
			source: goose.New(historytest.NoEnv), file: "sessions.db", tables: `CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY); INSERT OR IGNORE INTO schema_version VALUES (17);
			CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT DEFAULT '', working_dir TEXT DEFAULT '/w', created_at TIMESTAMP, updated_at TIMESTAMP, parent_session_id TEXT);
			CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
			CREATE TABLE IF NOT EXISTS usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER, model TEXT, input_tokens INTEGER,
				output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO sessions (id, name, created_at, updated_at) VALUES ('20260301_%[1]s', 'n', '2026-03-01 09:00:00', '2026-03-01 09:00:%02[2]d');
					INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES ('m1', '20260301_%[1]s', 'user', '[{"type":"text","text":"asked in %[1]s"}]', 1772355600), ('m2', '20260301_%[1]s', 'assistant', '[{"type":"text","text":"%[3]s"}]', 1772355601);
					INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens) VALUES ('20260301_%[1]s', 1772355601, 'm', 3, %[4]d, %[4]d + 3);`, session, last(outputs)%60, said, last(outputs))
			},
		},
		{source: opencode.New(historytest.NoEnv, later), file: "opencode.db", tables: opencodeTables, text: opencodeTalk},
		{source: opencode.NewKilo(historytest.NoEnv, later), file: "kilo.db", tables: opencodeTables, text: opencodeTalk},
		{
			source: geminicli.New(historytest.NoEnv, historytest.Later), file: "session-2026-08-01T09-00-0000000*.jsonl",
			grows: true, global: true, text: func(session, said string, outputs ...int64) string {
				all := []string{
					fmt.Sprintf(`{"sessionId":%q,"projectHash":"334c","startTime":"2026-08-01T09:00:00.000Z","lastUpdated":"2026-08-01T09:00:00.000Z","kind":"main"}`, of(session)),
					fmt.Sprintf(`{"id":"1","timestamp":"2026-08-01T09:00:01.000Z","type":"user","content":[{"text":%q}]}`, "asked in "+session),
				}
				for _, n := range outputs {
					all = append(all, fmt.Sprintf(`{"id":"2","timestamp":"2026-08-01T09:00:02.000Z","type":"gemini","content":%q,"model":"gemini-2.5-pro","tokens":{"input":3,"output":%d,"cached":0,"thoughts":0,"tool":0,"total":%d}}`, said, n, n+3))
				}
				return lines(all...)
			},
		},
		{
			source: copilotcli.New(historytest.NoEnv, historytest.Later), file: "session-state/*/events.jsonl",
			text: func(session, said string, outputs ...int64) string {
				all := []string{
					fmt.Sprintf(`{"type":"session.start","data":{"sessionId":%q,"version":1,"copilotVersion":"1.0.102","startTime":"2026-08-01T09:00:00.000Z","context":{"cwd":"/w"}},"id":"0","timestamp":"2026-08-01T09:00:00.000Z","parentId":null}`, of(session)),
					fmt.Sprintf(`{"type":"user.message","data":{"content":%q},"id":"1","timestamp":"2026-08-01T09:00:01.000Z","parentId":"0"}`, "asked in "+session),
				}
				for i, n := range outputs {
					all = append(all, fmt.Sprintf(`{"type":"session.usage_record","data":{"usage":{"model":"m","inputTokens":3,"outputTokens":%d,"apiCallId":"api-1"}},"id":"u%d","timestamp":"2026-08-01T09:00:02.000Z","parentId":"1"}`, n, i))
				}
				return lines(append(all, fmt.Sprintf(`{"type":"assistant.message","data":{"messageId":"m1","model":"m","content":%q,"toolRequests":[],"apiCallId":"api-1"},"id":"2","timestamp":"2026-08-01T09:00:03.000Z","parentId":"1"}`, said))...)
			},
		},
		{
			source: qwencode.New(historytest.NoEnv, historytest.Later), file: "chats/0000000*-0000-4000-8000-000000000001.jsonl",
			global: true, text: func(session, said string, outputs ...int64) string {
				row := func(id, parent, kind, rest string) string {
					return fmt.Sprintf(`{"uuid":%q,"parentUuid":%s,"sessionId":%q,"timestamp":"2026-08-01T09:00:0%s.000Z","type":%q,"cwd":"/w","version":"0.21.6",%s}`, id, orNull(parent), of(session), id, kind, rest)
				}
				return lines(row("1", "", "user", fmt.Sprintf(`"provenance":"real_user","message":{"role":"user","parts":[{"text":%q}]}`, "asked in "+session)),
					row("2", "1", "assistant", fmt.Sprintf(`"model":"m","message":{"role":"model","parts":[{"text":%q}]},"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":%d}`, said, last(outputs))))
			},
		},
	}...)
}

// read writes the history anew, as its program does, and imports it. Of a database, others are
// the statements of its other sessions.
func (k *talk) read(h *historytest.House, dir, session, said string, outputs []int64, others ...string) {
	h.Helper()
	text := k.text(session, said, outputs...)
	path := filepath.Join(dir, strings.ReplaceAll(k.file, "*", session))
	if k.tables != "" {
		testkit.Check(h, os.MkdirAll(filepath.Dir(path), 0o700))
		h.Load(path, append([]string{k.tables, text}, others...)...)
	} else {
		h.Rewrite(path, strings.TrimSuffix(text, "\n"))
	}
	if k.beside != "" {
		h.Rewrite(filepath.Join(dir, strings.ReplaceAll(k.beside, "*", session)), k.usage(session, outputs...))
	}
	if done := h.Import(dir); len(done.Errors) > 0 {
		h.Errorf("told: %+v", done.Errors)
	}
	h.Examine()
}

// outputs returns the output tokens of all calls, and those of all sessions.
func outputs(h *historytest.House) (calls, sessions int64) {
	h.Helper()
	for _, s := range h.Sessions() {
		sessions += s.OutputTokens
		for _, c := range h.Calls(s.ID) {
			calls += c.OutputTokens
		}
	}
	return calls, sessions
}

func (k *talk) name() string { return string(k.source.Name()) }

// A reply that was read while it was half-written counts what it used in the end, and a smaller count
// takes nothing back, in one reading and in two.
func TestReplyCountsItsGreatestUsageInEveryProgram(t *testing.T) {
	effort.NotShort(t, "one goroutine reads each file")
	for _, k := range talks() {
		for name, counts := range map[string][]int64{"grows": {1, 412}, "shrinks": {412, 1}} {
			if !k.grows || k.totals && name == "shrinks" {
				continue
			}
			t.Run(k.name()+"/"+name, func(t *testing.T) {
				h, dir := historytest.New(t, k.source), t.TempDir()
				k.read(h, dir, "1", "answered", counts[:1])
				k.read(h, dir, "1", "answered", counts)
				if calls, sessions := outputs(h); calls != 412 || sessions != 412 {
					t.Errorf("in two readings: %d tokens in calls, %d in sessions, not 412", calls, sessions)
				}
				if s := h.Sessions(); len(s) != 1 || strings.Count(h.Talk(s[0]), "asked in") != 1 {
					t.Errorf("%d sessions: %s", len(s), h.Talk(s[0]))
				}
				if k.latest && name == "shrinks" {
					return
				}
				once := historytest.New(t, k.source)
				k.read(once, t.TempDir(), "1", "answered", counts)
				if calls, sessions := outputs(once); calls != 412 || sessions != 412 {
					t.Errorf("in one reading: %d tokens in calls, %d in sessions, not 412", calls, sessions)
				}
			})
		}
	}
}

// Two sessions whose messages have the same ids are both whole. A reply counts once where its id
// names it everywhere.
func TestIDsThatRepeatOverFilesInEveryProgram(t *testing.T) {
	effort.NotShort(t, "one goroutine reads each file")
	for _, k := range talks() {
		t.Run(k.name(), func(t *testing.T) {
			h, dir := historytest.New(t, k.source), t.TempDir()
			k.read(h, dir, "1", "first", []int64{5})
			k.read(h, dir, "2", "second", []int64{7}, k.text("1", "first", 5))
			all := h.Sessions()
			if len(all) != 2 {
				t.Fatalf("%d sessions", len(all))
			}
			for i, said := range []string{"first", "second"} {
				if got := h.Talk(all[i]); !strings.Contains(got, said) || !strings.Contains(got, fmt.Sprint("asked in ", i+1)) {
					t.Errorf("session %d: %s", i+1, got)
				}
			}
			want := int64(12)
			switch {
			case k.silent:
				want = 0
			case k.global:
				want = 7
			}
			if calls, _ := outputs(h); calls != want {
				t.Errorf("%d output tokens, not %d", calls, want)
			}
		})
	}
}
