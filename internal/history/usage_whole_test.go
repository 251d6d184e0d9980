package history_test

import (
	"fmt"
	"strings"

	"sessiond/internal/history/antigravity"
	"sessiond/internal/history/chatgpt"
	"sessiond/internal/history/claudeai"
	"sessiond/internal/history/cline"
	"sessiond/internal/history/continuedev"
	"sessiond/internal/history/crush"
	"sessiond/internal/history/cursor"
	"sessiond/internal/history/devin"
	"sessiond/internal/history/droid"
	"sessiond/internal/history/geminitakeout"
	"sessiond/internal/history/generic"
	"sessiond/internal/history/hermes"
	"sessiond/internal/history/kimicode"
	"sessiond/internal/history/vscodecopilot"
	"sessiond/internal/history/windsurf"
	"sessiond/internal/history/zed"
	"sessiond/internal/testkit/historytest"
)

// wholeTalks are the talks of programs that write a session anew.
func wholeTalks() []talk {
	last := func(outputs []int64) int64 { return outputs[len(outputs)-1] }
	uuid := func(session string) string { return "0000000" + session + "-0000-4000-8000-000000000001" }
	classic := func(session, said string, _ ...int64) string {
		return fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":"<task>asked in %s</task>"}],"ts":1767344460000},
			{"role":"assistant","content":[{"type":"text","text":%q}],"ts":1767344461000}]`, session, said)
	}
	events := func(_ string, outputs ...int64) string {
		return fmt.Sprintf(`[{"ts":1767344460500,"type":"say","say":"api_req_started","text":"{\"tokensIn\":3,\"tokensOut\":%d}"}]`,
			last(outputs))
	}
	return []talk{
		{
			source: cursor.New(historytest.NoUser, historytest.Later), file: "globalStorage/state.vscdb",
			grows: true, latest: true, global: true,
			tables: `CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
				CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO cursorDiskKV VALUES ('composerData:%[1]s', '{"createdAt":1767344460000,"lastUpdatedAt":%[4]d,
						"fullConversationHeadersOnly":[{"bubbleId":"b1"},{"bubbleId":"b2"}]}'),
					('bubbleId:%[1]s:b1', '{"type":1,"text":"asked in %[2]s"}'),
					('bubbleId:%[1]s:b2', '{"type":2,"text":"%[3]s","tokenCount":{"inputTokens":3,"outputTokens":%[4]d}}');`,
					uuid(session), session, said, last(outputs))
			},
		},
		{
			source: vscodecopilot.New(historytest.NoUser, historytest.Later), file: "chatSessions/*.jsonl",
			grows: true, latest: true, global: true,
			text: func(session, said string, outputs ...int64) string {
				all := []string{
					fmt.Sprintf(`{"kind":0,"v":{"version":3,"creationDate":1767344460000,"sessionId":%q,"requests":[]}}`, uuid(session)),
					fmt.Sprintf(`{"kind":2,"k":["requests"],"v":[{"requestId":"r1","timestamp":1767344461000,"message":{"text":"asked in %s"},"response":[{"value":%q}],"modelState":{"value":1}}]}`, session, said),
				}
				for _, n := range outputs {
					all = append(all, `{"kind":1,"k":["requests",0,"promptTokens"],"v":3}`,
						fmt.Sprintf(`{"kind":1,"k":["requests",0,"completionTokens"],"v":%d}`, n))
				}
				return lines(all...)
			},
		},
		{
			source: cline.New(historytest.NoUser, historytest.Later), file: "sessions/*/*.messages.json", global: true,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`{"version":1,"sessionId":%q,"messages":[{"id":"m1","role":"user","content":[{"type":"text","text":"asked in %s"}],"ts":1767344460000},
					{"id":"m2","role":"assistant","content":[{"type":"text","text":%q}],"ts":1767344461000,"metrics":{"inputTokens":3,"outputTokens":%d}}]}`, session, session, said, last(outputs))
			},
		},
		{
			source: cline.NewRoo(historytest.NoUser, historytest.Later), grows: true, latest: true,
			file: "rooveterinaryinc.roo-cline/tasks/*/api_conversation_history.json", text: classic,
			beside: "rooveterinaryinc.roo-cline/tasks/*/ui_messages.json", usage: events,
		},
		{
			source: kimicode.New(historytest.NoEnv, historytest.Later), global: true,
			file: "sessions/wd_x/session_*/agents/main/wire.jsonl",
			text: func(session, said string, outputs ...int64) string {
				return lines(`{"type":"metadata","protocol_version":"1.5","created_at":1767344460000}`,
					fmt.Sprintf(`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"asked in %s"}],"id":"m1","origin":{"kind":"user"}},"time":1767344461000}`, session),
					`{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1","step":1},"time":1767344462000}`,
					fmt.Sprintf(`{"type":"usage.record","model":"m","usage":{"inputOther":3,"output":%d,"inputCacheRead":0,"inputCacheCreation":0},"usageScope":"turn","time":1767344463000}`, last(outputs)),
					fmt.Sprintf(`{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p1","stepUuid":"s1","part":{"type":"text","text":%q}},"time":1767344464000}`, said),
					`{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s1","finishReason":"end_turn"},"time":1767344465000}`)
			},
		},
		{
			source: chatgpt.New(historytest.Later), file: "*/conversations.json", silent: true,
			text: func(session, said string, _ ...int64) string {
				return fmt.Sprintf(`[{"id":%q,"current_node":"b","mapping":{
					"a":{"id":"a","parent":null,"message":{"id":"a","author":{"role":"user"},"create_time":1767344460,"content":{"content_type":"text","parts":["asked in %s"]}}},
					"b":{"id":"b","parent":"a","message":{"id":"b","author":{"role":"assistant"},"create_time":1767344461,"content":{"content_type":"text","parts":[%q]}}}}}]`, uuid(session), session, said)
			},
		},
		{
			source: claudeai.New(historytest.Later), file: "*/conversations.json", silent: true,
			text: func(session, said string, _ ...int64) string {
				return fmt.Sprintf(`[{"uuid":%q,"chat_messages":[
					{"uuid":"a","sender":"human","content":[{"type":"text","text":"asked in %s"}],"created_at":"2026-01-02T09:00:00Z"},
					{"uuid":"b","sender":"assistant","content":[{"type":"text","text":%q}],"created_at":"2026-01-02T09:00:01Z"}]}]`, uuid(session), session, said)
			},
		},
		{
			source: generic.New(historytest.Later), file: "*.jsonl",
			text: func(session, said string, outputs ...int64) string {
				return lines(
					fmt.Sprintf(`{"id":"1","session_id":%q,"role":"user","content":"asked in %s","timestamp":1767344460}`, session, session),
					fmt.Sprintf(`{"id":"2","session_id":%q,"role":"assistant","content":%q,"timestamp":1767344461,"usage":{"prompt_tokens":3,"completion_tokens":%d}}`, session, said, last(outputs)))
			},
		},
		{
			source: continuedev.New(historytest.NoEnv, historytest.Later), file: "0000000*-0000-4000-8000-000000000001.json",
			text: func(session, said string, outputs ...int64) string {
				n := last(outputs)
				return fmt.Sprintf(`{"sessionId":%q,"title":"t","workspaceDirectory":"/w","history":[
					{"message":{"role":"user","content":"asked in %s"},"contextItems":[]},
					{"message":{"role":"assistant","content":%q,"usage":{"prompt_tokens":3,"completion_tokens":%d,"model":"m"}},"contextItems":[]}],
					"usage":{"promptTokens":3,"completionTokens":%d}}`, uuid(session), session, said, n, n)
			},
		},
		{
			source: droid.New(historytest.NoEnv, historytest.Later), file: "-w/*.jsonl", beside: "-w/*.settings.json",
			grows: true, latest: true,
			text: func(session, said string, _ ...int64) string {
				return lines(fmt.Sprintf(`{"type":"session_start","id":%q,"title":"t","cwd":"/w"}`, session),
					fmt.Sprintf(`{"type":"message","id":"m1","timestamp":"2026-01-02T09:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"asked in %s"}]}}`, session),
					fmt.Sprintf(`{"type":"message","id":"m2","timestamp":"2026-01-02T09:00:01.000Z","parentId":"m1","message":{"role":"assistant","content":[{"type":"text","text":%q}]}}`, said))
			},
			usage: func(_ string, outputs ...int64) string {
				return fmt.Sprintf(`{"model":"m","tokenUsage":{"inputTokens":3,"outputTokens":%d}}`, last(outputs))
			},
		},
		{
			source: crush.New(historytest.NoUser, historytest.Later), file: "crush.db", silent: true, // of tokens
			tables: `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, prompt_tokens INTEGER, completion_tokens INTEGER, updated_at INTEGER);
				CREATE TABLE IF NOT EXISTS messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER, updated_at INTEGER);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO sessions VALUES ('%[1]s', 3, %[3]d, 1767344461);
					INSERT INTO messages VALUES
					('a%[1]s', '%[1]s', 'user', '[{"type":"text","data":{"text":"asked in %[1]s"}}]', 1767344460, 1767344460),
					('b%[1]s', '%[1]s', 'assistant', '[{"type":"text","data":{"text":"%[2]s"}}]', 1767344461, 1767344461);`,
					session, said, last(outputs))
			},
		},
		{
			source: zed.New(historytest.NoUser, historytest.Later), file: "threads.db", grows: true, latest: true,
			tables: `CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO threads VALUES ('%[1]s', 't', '2026-01-02T09:00:00+00:00', 'json',
					'{"version":"0.3.0","cumulative_token_usage":{"input_tokens":3,"output_tokens":%[3]d},"messages":[
					{"User":{"id":"u","content":[{"Text":"asked in %[1]s"}]}},{"Agent":{"content":[{"Text":"%[2]s"}]}}]}');`,
					session, said, last(outputs))
			},
		},
		{
			source: hermes.New(historytest.NoUser, historytest.Later), file: "state.db", grows: true, latest: true,
			tables: `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL, input_tokens INTEGER, output_tokens INTEGER);
				CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
				CREATE TABLE IF NOT EXISTS session_model_usage (session_id TEXT, model TEXT, task TEXT, input_tokens INTEGER, output_tokens INTEGER);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO sessions VALUES ('%[1]s', 'cli', 1767344460, 3, %[3]d);
					INSERT INTO session_model_usage VALUES ('%[1]s', 'm', '', 3, %[3]d);
					INSERT INTO messages (session_id, role, content, timestamp) VALUES ('%[1]s', 'user', 'asked in %[1]s', 1767344460),
					('%[1]s', 'assistant', '%[2]s', 1767344461);`, session, said, last(outputs))
			},
		},
		{
			source: devin.New(historytest.NoUser, historytest.Later), file: "sessions.db",
			tables: `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, created_at INTEGER, main_chain_id INTEGER);
				CREATE TABLE IF NOT EXISTS message_nodes (session_id TEXT, node_id INTEGER, parent_node_id INTEGER, chat_message TEXT);`,
			text: func(session, said string, outputs ...int64) string {
				return fmt.Sprintf(`INSERT INTO sessions VALUES ('%[1]s', 1767344460, 2);
					INSERT INTO message_nodes VALUES ('%[1]s', 1, NULL, '{"message_id":"a","role":"user","content":"asked in %[1]s"}'),
					('%[1]s', 2, 1, '{"message_id":"b","role":"assistant","content":"%[2]s","metadata":{"metrics":{"input_tokens":3,"output_tokens":%[3]d}}}');`,
					session, said, last(outputs))
			},
		},
		{
			source: antigravity.New(historytest.NoEnv, historytest.Later), silent: true, // beside its database
			file: "brain/*/.system_generated/logs/transcript_full.jsonl",
			text: func(session, said string, _ ...int64) string {
				return lines(fmt.Sprintf(`{"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","content":"<USER_REQUEST>asked in %s</USER_REQUEST>","created_at":"2026-01-02T09:00:00Z"}`, session),
					fmt.Sprintf(`{"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","content":%q,"created_at":"2026-01-02T09:00:01Z"}`, said))
			},
		},
		{
			source: geminitakeout.New(historytest.Later), file: "*/MyActivity.json", silent: true,
			text: func(session, said string, _ ...int64) string {
				return fmt.Sprintf(`[{"header":"Gemini Apps","title":"Prompted asked in %[1]s","time":"2026-01-02T09:00:00Z","safeHtmlItem":[{"html":%[2]q}],`+
					`"details":[{"url":"https://gemini.google.com/app/0123456789abcde%[1]s"}]}]`, session, said)
			},
		},
		{
			source: windsurf.New(historytest.NoEnv, historytest.Later), file: "transcripts/*.jsonl", silent: true,
			text: func(session, said string, _ ...int64) string {
				return lines(fmt.Sprintf(`{"type":"user_input","status":"done","user_input":{"user_response":"asked in %s"}}`, session),
					fmt.Sprintf(`{"type":"planner_response","status":"done","planner_response":{"response":%q}}`, strings.TrimSpace(said)))
			},
		},
	}
}
