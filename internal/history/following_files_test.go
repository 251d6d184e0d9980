package history_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/copilotcli"
	"sessiond/internal/history/geminicli"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/opencode"
	"sessiond/internal/history/pi"
	"sessiond/internal/history/qwencode"
	"sessiond/internal/testkit/historytest"
)

func writers() []*writer {
	omp, kilo := writesPi(), writesOpencode() // forks that write the same form
	kilo.base = "kilo.db"
	omp.name, omp.source = "omp", func(func() time.Time) history.Source { return pi.NewOmp(historytest.NoEnv) }
	kilo.name, kilo.source = "kilo", func(now func() time.Time) history.Source {
		return opencode.NewKilo(historytest.NoEnv, now)
	}
	return append([]*writer{
		writesPi(), writesOpenClaw(), writesClaudeCode(), writesCodex(), writesGoose(), writesOpencode(),
		writesCopilotCLI(), writesQwenCode(), writesGeminiCLI(), omp, kilo,
	}, wholeWriters()...)
}

// says returns a text that is different each time.
func (w *writing) says() string { return fmt.Sprintf("said %d", w.fresh()) }

var words = regexp.MustCompile(`said \d+`)

// changeWords makes a line say something else.
func changeWords(w *writing, f *file, at int) {
	f.lines[at].text = words.ReplaceAllString(f.lines[at].text, w.says())
}

// before returns the name of one of the lines that have one.
func (w *writing) before(f *file) string {
	var ids []string
	for _, l := range f.lines {
		if l.id != "" {
			ids = append(ids, l.id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[w.pick(len(ids))]
}

func orNull(id string) string {
	if id == "" {
		return "null"
	}
	return quote(id)
}

func writesPi() *writer {
	path := func(w *writing, f *file, folder string) string {
		return filepath.Join(w.dir, folder, w.now.Format("2006-01-02T15-04-05-000Z")+"_"+f.id+".jsonl")
	}
	begin := func(w *writing, f *file) {
		f.path = path(w, f, "--home-dev--")
		f.add("", `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/home/dev"}`, f.id, w.at())
	}
	return &writer{
		name: "pi", source: func(func() time.Time) history.Source { return pi.New(historytest.NoEnv) },
		begin: begin, turn: piTurn,
		moved: func(w *writing, f *file) string {
			return filepath.Join(w.dir, "--home-other--", filepath.Base(f.path))
		},
		fork: func(w *writing, f, from *file) {
			f.path = path(w, f, "--home-dev--")
			f.add("", `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/home/dev","parentSession":%q}`, f.id, w.at(), from.path)
			f.lines = append(f.lines, from.lines[1:w.whole(from)]...)
			w.say(f)
		},
	}
}

// piTurn writes entries of pi's form, which is OpenClaw's as well.
func piTurn(w *writing, f *file) {
	entry := func(parent, format string, args ...any) {
		id := fmt.Sprintf("%08x", w.fresh())
		f.add(id, `{"type":"message","id":%q,"parentId":%s,"timestamp":%q,"message":`+format+`}`, append([]any{id, orNull(parent), w.at()}, args...)...)
	}
	user := func(parent string) {
		entry(parent, `{"role":"user","content":%q,"timestamp":%d}`, w.says(), w.now.UnixMilli())
	}
	reply := func(block, stop string) {
		entry(f.last(), `{"role":"assistant","content":[%s],"provider":"anthropic","model":"claude-sonnet-4-5","stopReason":%q,"usage":{"input":%d,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"total":0.001}},"timestamp":%d}`,
			block, stop, w.fresh(), w.now.UnixMilli())
	}
	text := func() string { return fmt.Sprintf(`{"type":"text","text":%q}`, w.says()) }
	other := func(format string, args ...any) {
		id := fmt.Sprintf("%08x", w.fresh())
		f.add(id, `{"id":%q,"parentId":%s,"timestamp":%q,`+format+`}`,
			append([]any{id, orNull(f.last()), w.at()}, args...)...)
	}
	switch last := f.last(); w.pick(7) {
	case 0, 1:
		user(last)
		reply(text(), "stop")
	case 2:
		call := fmt.Sprintf("call_%d", w.fresh())
		user(last)
		reply(fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"bash","arguments":{"command":"ls"}}`, call), "toolUse")
		entry(f.last(), `{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[%s],"isError":false,"timestamp":%d}`, call, text(), w.now.UnixMilli())
		reply(text(), "stop")
	case 3:
		other(`"type":"session_info","name":%q`, w.says())
	case 4:
		user(last)
		other(`"type":"compaction","summary":%q,"firstKeptEntryId":%q,"tokensBefore":1000`, w.says(), f.last())
	case 5: // a branch
		user(w.before(f))
		reply(text(), "stop")
	case 6:
		if last != "" {
			other(`"type":"label","targetId":%q,"label":%q`, w.before(f), w.says())
		}
		user(f.last())
	}
}

func writesOpenClaw() *writer {
	path := func(w *writing, f *file) string {
		return filepath.Join(w.dir, "agents", "main", "sessions", f.id+".jsonl")
	}
	return &writer{
		name: "openclaw", source: func(func() time.Time) history.Source { return openclaw.New(historytest.NoEnv) },
		turn: piTurn,
		begin: func(w *writing, f *file) {
			f.path = path(w, f)
			f.add("", `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/home/dev"}`, f.id, w.at())
		},
		moved: func(w *writing, f *file) string {
			return strings.TrimSuffix(f.path, ".jsonl") + ".jsonl.reset." + w.now.Format("2006-01-02T15-04-05.000Z")
		},
		fork: func(w *writing, f, from *file) {
			f.path = path(w, f)
			f.add("", `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":"/home/dev","parentSession":%q}`, f.id, w.at(), from.path)
			f.lines = append(f.lines, from.lines[1:w.whole(from)]...)
			w.say(f)
		},
	}
}

func writesClaudeCode() *writer {
	path := func(w *writing, f *file) string { return filepath.Join(w.dir, "projects", "-proj", f.id+".jsonl") }
	return &writer{
		name: "claude-code", either: true, source: func(now func() time.Time) history.Source {
			return claudecode.New(historytest.NoEnv, now)
		},
		begin: func(w *writing, f *file) { f.path = path(w, f) },
		turn:  claudeTurn,
		moved: func(w *writing, f *file) string {
			return filepath.Join(w.dir, "projects", "-other", filepath.Base(f.path))
		},
		fork: func(w *writing, f, from *file) {
			f.path = path(w, f)
			w.now = w.now.Add(11 * time.Minute) // a reply counts when it has ended
			w.look()
			for _, l := range from.lines[:w.whole(from)] {
				f.lines = append(f.lines, line{l.id, strings.ReplaceAll(l.text, from.id, f.id), l.ends})
			}
			w.say(f)
		},
		agent: func(w *writing, f, from *file) {
			f.id = from.id
			f.path = filepath.Join(filepath.Dir(from.path), from.id, "subagents", fmt.Sprintf("agent-%d.jsonl", w.fresh()))
			w.say(f)
		},
	}
}

func claudeTurn(w *writing, f *file) {
	row := func(parent, kind, format string, args ...any) {
		id := fmt.Sprintf("u%08d", w.fresh())
		f.add(id, `{"parentUuid":%s,"isSidechain":false,"cwd":"/proj","sessionId":%q,"version":"2.1.120","gitBranch":"main","type":%q,"uuid":%q,"timestamp":%q,`+format+`}`,
			append([]any{orNull(parent), f.id, kind, id, w.at()}, args...)...)
	}
	user := func(parent string) { row(parent, "user", `"message":{"role":"user","content":%q}`, w.says()) }
	piece := func(response, block, stop string) {
		row(f.last(), "assistant", `"message":{"id":%q,"type":"message","role":"assistant","model":"claude-opus-4-6","content":[%s],"stop_reason":%s,"usage":{"input_tokens":%d,"output_tokens":7}}`,
			response, block, orNull(stop), w.fresh())
	}
	text := func() string { return fmt.Sprintf(`{"type":"text","text":%q}`, w.says()) }
	ends := func() string { return []string{"", "end_turn"}[w.pick(2)] }
	response := fmt.Sprintf("msg_%d", w.fresh())
	switch last := f.last(); w.pick(8) {
	case 0, 1:
		user(last)
		piece(response, text(), ends())
	case 2, 3:
		call := fmt.Sprintf("toolu_%d", w.fresh())
		user(last)
		piece(response, fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":"c2ln"}`, w.says()), "")
		piece(response, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls"}}`, call), "")
		row(f.last(), "user", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, call, w.says())
		response += "b"
		piece(response, text(), "")
		piece(response, text(), ends())
	case 4:
		f.add("", `{"type":"custom-title","customTitle":%q,"sessionId":%q}`, w.says(), f.id)
	case 5: // rewound
		user(w.before(f))
		piece(response, text(), ends())
	case 6:
		if last == "" {
			user("")
			return
		}
		row("", "system", `"subtype":"compact_boundary","content":"Conversation compacted","logicalParentUuid":%q,"compactMetadata":{"trigger":"auto","preTokens":1000}`, last)
		row(f.last(), "user", `"isCompactSummary":true,"message":{"role":"user","content":%q}`, w.says())
	case 7:
		user(last)
		row(f.last(), "progress", `"data":{"type":"bash_progress","output":"x"}`)
		piece(response, text(), ends())
		row(f.last(), "system", `"subtype":"turn_duration","durationMs":100`)
	}
}

func writesCodex() *writer {
	path := func(w *writing, f *file) string {
		return filepath.Join(w.dir, "sessions", "2026", "03", "01",
			"rollout-"+w.now.Format("2006-01-02T15-04-05")+"-"+f.id+".jsonl")
	}
	head := func(w *writing, f *file, more string) {
		f.path = path(w, f)
		f.add("", `{"timestamp":%q,"type":"session_meta","payload":{"id":%q,"timestamp":%q,"cwd":"/proj","cli_version":"0.106.0","model_provider":"openai","git":{"branch":"main"},%s}}`, w.at(), f.id, w.at(), more)
	}
	return &writer{
		name: "codex", source: func(now func() time.Time) history.Source { return codex.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) { head(w, f, `"source":"cli"`) },
		turn:  codexTurn, change: changeWords,
		moved: func(w *writing, f *file) string {
			return filepath.Join(w.dir, "archived_sessions", filepath.Base(f.path))
		},
		fork: func(w *writing, f, from *file) {
			head(w, f, fmt.Sprintf(`"source":"cli","forked_from_id":%q`, from.id))
			for _, l := range from.lines[:w.whole(from)] {
				f.lines = append(f.lines, line{l.id, stamp.ReplaceAllString(l.text, `{"timestamp":"`+w.at()+`"`), l.ends})
			}
			w.now = w.now.Add(2 * time.Second)
			w.say(f)
		},
		agent: func(w *writing, f, from *file) {
			head(w, f, fmt.Sprintf(`"source":{"subagent":{"thread_spawn":{"parent_thread_id":%q,"depth":1}}}`, from.id))
			w.say(f)
		},
	}
}

var stamp = regexp.MustCompile(`^\{"timestamp":"[^"]*"`)

// codexTurn writes records of a rollout. The name of a count of tokens is the total so far.
func codexTurn(w *writing, f *file) {
	put := func(id, kind, format string, args ...any) {
		f.add(id, `{"timestamp":%q,"type":%q,"payload":{`+format+`}}`, append([]any{w.at(), kind}, args...)...)
	}
	count := func() {
		total := 0
		_, _ = fmt.Sscanf(f.last(), "total %d", &total) // none yet: 0
		used := 10 + w.fresh()
		total += used
		put(fmt.Sprintf("total %d", total), "event_msg", `"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":0,"total_tokens":%d}}`, total, total, used, used)
	}
	user := func() {
		text := w.says()
		put("", "event_msg", `"type":"task_started","turn_id":"turn-%d","model_context_window":258400`, w.fresh())
		put("", "turn_context", `"cwd":"/proj","model":"gpt-5.3-codex","effort":"medium"`)
		put("", "response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":%q}]`, text)
		put("", "event_msg", `"type":"user_message","message":%q`, text)
	}
	reply := func() {
		text := w.says()
		put("", "response_item", `"type":"reasoning","summary":[],"encrypted_content":"b3BhcXVl"`)
		put("", "event_msg", `"type":"agent_message","message":%q`, text)
		put("", "response_item", `"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]`, text)
		count()
	}
	switch w.pick(7) {
	case 0, 1:
		user()
		reply()
		put("", "event_msg", `"type":"task_complete","turn_id":"x"`)
	case 2, 3:
		call := fmt.Sprintf("call_%d", w.fresh())
		user()
		put("", "response_item", `"type":"function_call","name":"exec_command","arguments":"{}","call_id":%q`, call)
		put("", "response_item", `"type":"function_call_output","call_id":%q,"output":%q`, call, w.says())
		count()
		reply()
	case 4:
		put("", "event_msg", `"type":"thread_name_updated","thread_id":%q,"thread_name":%q`, f.id, w.says())
	case 5:
		put("", "event_msg", `"type":"thread_rolled_back","num_turns":1`)
		user()
		reply()
	case 6:
		text := w.says()
		put("", "compacted", `"message":%q,"replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}]`, text, text)
		user()
		reply()
	}
}

func writesCopilotCLI() *writer {
	path := func(w *writing, f *file, folder string) string {
		return filepath.Join(w.dir, folder, f.id, "events.jsonl")
	}
	return &writer{
		name: "copilot-cli", source: func(now func() time.Time) history.Source {
			return copilotcli.New(historytest.NoEnv, now)
		},
		begin: func(w *writing, f *file) {
			f.path = path(w, f, ".")
			f.add("", `{"type":"session.start","data":{"sessionId":%q,"copilotVersion":"1.0.102","startTime":%q,"context":{"cwd":"/proj","branch":"main"}},"id":"start","timestamp":%q,"parentId":null}`, f.id, w.at(), w.at())
		},
		turn:  copilotTurn,
		moved: func(w *writing, f *file) string { return filepath.Join(w.dir, f.id+".jsonl") },
	}
}

// copilotTurn writes events of a turn. What a sub-agent says may stand between those of a reply.
func copilotTurn(w *writing, f *file) {
	put := func(agent, kind, format string, args ...any) {
		id := fmt.Sprintf("e%08d", w.fresh())
		f.add(id, `{"type":%q,"data":{`+format+`},"id":%q,"timestamp":%q,"parentId":%s`+agent+`}`,
			append(append([]any{kind}, args...), id, w.at(), orNull(f.last()))...)
	}
	usage := func(agent string) string {
		call := fmt.Sprintf("api-%d", w.fresh())
		put(agent, "session.usage_record", `"usage":{"model":"m1","inputTokens":%d,"outputTokens":5,"apiCallId":%q}`, 10+w.fresh(), call)
		return call
	}
	reply := func(agent, calls string) {
		api := usage(agent)
		put(agent, "assistant.message", `"messageId":"m%d","model":"m1","content":%q,"toolRequests":[%s],"apiCallId":%q`, w.fresh(), w.says(), calls, api)
	}
	user := func() { put("", "user.message", `"content":%q`, w.says()) }
	call := fmt.Sprintf("call_%d", w.fresh())
	request := fmt.Sprintf(`{"toolCallId":%q,"name":"task","arguments":{"prompt":%q},"type":"function"}`, call, w.says())
	answer := func() {
		put("", "tool.execution_complete", `"toolCallId":%q,"success":true,"result":{"content":%q}`, call, w.says())
	}
	switch w.pick(6) {
	case 0, 1:
		user()
		reply("", "")
	case 2:
		user()
		reply("", request)
		put("", "tool.execution_start", `"toolCallId":%q,"toolName":"bash","arguments":{}`, call)
		answer()
		reply("", "")
	case 3: // a sub-agent
		user()
		reply("", request)
		agent := fmt.Sprintf(`,"agentId":"agent-%s"`, call)
		put(agent, "subagent.started", `"toolCallId":%q,"agentName":"explore"`, call)
		reply(agent, "")
		answer()
	case 4:
		user()
		put("", "session.compaction_start", ``)
		put("", "session.compaction_complete", `"success":true,"summaryContent":%q,"preCompactionTokens":1000`, w.says())
	case 5: // a reply in chunks
		user()
		for i := range 2 {
			put("", "assistant.message", `"messageId":"c-%s","model":"m1","content":%q,"toolRequests":[],"chunkIndex":%d,"chunkCount":2`, call, w.says(), i)
		}
	}
}

func writesGeminiCLI() *writer {
	return &writer{
		name: "gemini-cli", inOrder: true, source: func(now func() time.Time) history.Source {
			return geminicli.New(historytest.NoEnv, now)
		},
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, "tmp", "demo", "chats", "session-2026-03-01T10-00-"+f.id[:8]+".jsonl")
			f.add("", `{"sessionId":%q,"projectHash":"ab","startTime":%q,"kind":"main"}`, f.id, w.at())
		},
		turn: geminiTurn,
		moved: func(w *writing, f *file) string {
			return filepath.Join(w.dir, "tmp", "other", "chats", filepath.Base(f.path))
		},
	}
}

// geminiTurn writes a turn as Gemini CLI does: a reply comes without its calls first, and again with them.
func geminiTurn(w *writing, f *file) {
	message := func(id, kind, format string, args ...any) {
		f.add(id, `{"id":%q,"timestamp":%q,"type":%q,`+format+`}`, append([]any{id, w.at(), kind}, args...)...)
		f.add("", `{"$set":{"lastUpdated":%q}}`, w.at())
	}
	fresh := func() string { return fmt.Sprintf("g%08d", w.fresh()) }
	message(fresh(), "user", `"content":[{"text":%q}]`, w.says())
	if w.pick(3) == 0 {
		id, said, used, call := fresh(), w.says(), w.fresh(), fresh()
		reply := func(calls string) {
			message(id, "gemini", `"content":%q,"tokens":{"input":%d,"output":3},"model":"gemini-2.5-pro"`+calls, said, used)
		}
		reply("")
		said += " and more"
		reply("")
		reply(fmt.Sprintf(`,"toolCalls":[{"id":%q,"name":"ls","args":{},"status":"executing"}]`, call))
		reply(fmt.Sprintf(`,"toolCalls":[{"id":%q,"name":"ls","args":{},"status":"success",`+
			`"result":[{"functionResponse":{"id":%[1]q,"name":"ls","response":{"output":%[2]q}}}]}]`, call, w.says()))
	}
	message(fresh(), "gemini", `"content":%q,"tokens":{"input":%d,"output":5},"model":"gemini-2.5-pro"`, w.says(), w.fresh())
}

func writesQwenCode() *writer {
	path := func(w *writing, f *file, folder string) string {
		return filepath.Join(w.dir, "projects", folder, "chats",
			fmt.Sprintf("%08x-0000-4000-8000-000000000001.jsonl", len(f.path)+w.fresh()))
	}
	return &writer{
		name: "qwen-code", source: func(now func() time.Time) history.Source { return qwencode.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) { f.path = path(w, f, "-proj") },
		turn:  qwenTurn,
		moved: func(w *writing, f *file) string {
			return filepath.Join(w.dir, "projects", "-other", "chats", filepath.Base(f.path))
		},
	}
}

func qwenTurn(w *writing, f *file) {
	row := func(parent, kind, format string, args ...any) {
		id := fmt.Sprintf("q%08d", w.fresh())
		f.add(id, `{"uuid":%q,"parentUuid":%s,"sessionId":%q,"timestamp":%q,"type":%q,"cwd":"/proj","version":"0.21.6",`+format+`}`,
			append([]any{id, orNull(parent), f.id, w.at(), kind}, args...)...)
	}
	user := func(parent string) {
		row(parent, "user", `"provenance":"real_user","message":{"role":"user","parts":[{"text":%q}]}`, w.says())
	}
	response := func() {
		used := w.fresh()
		row(f.last(), "system", `"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response","model":"m","input_token_count":%d,"output_token_count":3,"auth_type":"openai"}}`, used)
		if w.pick(4) > 0 {
			row(f.last(), "assistant", `"model":"m","message":{"role":"model","parts":[{"text":%q}]},"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":3}`, w.says(), used)
		}
	}
	switch last := f.last(); w.pick(5) {
	case 0, 1:
		user(last)
		response()
	case 2: // rewound
		user(w.before(f))
		response()
	case 3:
		if last == "" {
			user("")
		}
		row(f.last(), "system", `"subtype":"custom_title","systemPayload":{"customTitle":%q}`, w.says())
	case 4:
		user(last)
		row(f.last(), "system", `"subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":100,"newTokenCount":10},"compressedHistory":[{"role":"user","parts":[{"text":%q}]}]}`, w.says())
	}
}
