package history_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/antigravity"
	"sessiond/internal/history/chatgpt"
	"sessiond/internal/history/claudeai"
	"sessiond/internal/history/cline"
	"sessiond/internal/history/continuedev"
	"sessiond/internal/history/cursor"
	"sessiond/internal/history/droid"
	"sessiond/internal/history/geminitakeout"
	"sessiond/internal/history/generic"
	"sessiond/internal/history/kimicode"
	"sessiond/internal/history/vscodecopilot"
	"sessiond/internal/history/windsurf"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// Programs that write a session's file anew, at least at times. A document's first line is its beginning, the others
// are its entries.

func wholeWriters() []*writer {
	return []*writer{
		writesCline(), writesRoo(), writesContinue(), writesChatGPT(), writesClaudeAI(), writesGeneric(), writesKimiCode(),
		writesDroid(), writesWindsurf(), writesVSCodeCopilot(), writesCursor(), writesZed(), writesCrush(), writesHermes(),
		writesDevin(), writesAntigravity(), writesGeminiTakeout(),
	}
}

// talks is what a program writes of a prompt and of a reply, each under a name that no other one has.
func (w *writing) talks(f *file, says func(role, id, text string) string) {
	for _, role := range []string{"user", "assistant"} {
		id := fmt.Sprintf("m%06d", w.fresh())
		f.lines = append(f.lines, line{id: id, text: says(role, id, w.says())})
		w.now = w.now.Add(time.Second)
	}
}

// beside writes a file beside those that change.
func (w *writing) beside(path, text string) {
	testkit.Check(w, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(w, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, w.now, w.now)))
}

// copied returns the lines of some whole turns behind a file's first line.
func (w *writing) copied(from *file) []line {
	return append([]line(nil), from.lines[1:w.whole(from)]...)
}

func writesCline() *writer {
	begin := func(w *writing, f *file, more string) {
		f.path = filepath.Join(w.dir, "sessions", f.id, f.id+".messages.json")
		f.add("", `{"version":1,"sessionId":%q,"messages":[`, f.id)
		w.beside(filepath.Join(w.dir, "sessions", f.id, f.id+".json"),
			fmt.Sprintf(`{"version":1,"session_id":%q,"cwd":"/w","metadata":{"title":%q%s}}`, f.id, w.says(), more))
	}
	return &writer{
		name: "cline", joins: ",\n", ends: func(*file) string { return "]}" },
		source: func(now func() time.Time) history.Source { return cline.New(historytest.NoUser, now) },
		begin:  func(w *writing, f *file) { begin(w, f, "") }, change: changeWords,
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				used := ""
				if role == "assistant" {
					used = fmt.Sprintf(`,"metrics":{"inputTokens":%d,"outputTokens":5}`, w.fresh())
				}
				return fmt.Sprintf(`{"id":%q,"role":%q,"content":[{"type":"text","text":%q}],"ts":%d%s}`, id, role, text,
					w.now.UnixMilli(), used)
			})
		},
		fork: func(w *writing, f, from *file) {
			begin(w, f, fmt.Sprintf(`,"fork":{"forkedFromSessionId":%q}`, from.id))
			f.lines = append(f.lines, w.copied(from)...)
			w.say(f)
		},
	}
}

func writesRoo() *writer {
	return &writer{
		name: "roo-code", joins: ",\n", ends: func(*file) string { return "]" },
		source: func(now func() time.Time) history.Source { return cline.NewRoo(historytest.NoUser, now) },
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, "rooveterinaryinc.roo-cline", "tasks", f.id, "api_conversation_history.json")
			f.add("", `[`)
		},
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, _, text string) string {
				if role == "user" {
					text = "<user_message>" + text + "</user_message>"
				}
				return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"ts":%d}`, role, text, w.now.UnixMilli())
			})
		},
	}
}

func writesContinue() *writer {
	return &writer{
		name: "continue", either: true, joins: ",\n", ends: func(*file) string { return "]}" },
		source: func(now func() time.Time) history.Source { return continuedev.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, "sessions", f.id+".json")
			f.add("", `{"sessionId":%q,"title":%q,"workspaceDirectory":"/w","history":[`, f.id, w.says())
		},
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				return fmt.Sprintf(`{"message":{"role":%q,"content":%q,"id":%q},"contextItems":[]}`, role, text, id)
			})
		},
	}
}

func writesChatGPT() *writer {
	return &writer{
		name: "chatgpt", joins: ",\n", ends: func(f *file) string { return `},"current_node":"` + f.last() + `"}]` },
		source: func(now func() time.Time) history.Source { return chatgpt.New(now) },
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, f.id, "conversations.json")
			f.add("", `[{"id":%q,"title":%q,"create_time":%d,"mapping":{`, f.id, w.says(), w.now.Unix())
			f.add("", `"root":{"id":"root","parent":null}`)
		},
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				parent := f.last()
				if parent == "" {
					parent = "root"
				}
				return fmt.Sprintf(`%[1]q:{"id":%[1]q,"parent":%[2]q,"message":{"id":%[1]q,"author":{"role":%[3]q},"create_time":%[4]d,"content":{"content_type":"text","parts":[%[5]q]}}}`, id, parent, role, w.now.Unix(), text)
			})
		},
	}
}

func writesClaudeAI() *writer {
	return &writer{
		name: "claude-ai", joins: ",\n", ends: func(*file) string { return "]}]" },
		source: func(now func() time.Time) history.Source { return claudeai.New(now) },
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, f.id, "conversations.json")
			f.add("", `[{"uuid":%q,"name":%q,"created_at":%q,"chat_messages":[`, f.id, w.says(), w.at())
		},
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				if role == "user" {
					role = "human"
				}
				return fmt.Sprintf(`{"uuid":%q,"sender":%q,"content":[{"type":"text","text":%q}],"created_at":%q}`, id, role, text,
					w.at())
			})
		},
	}
}

func writesGeneric() *writer {
	return &writer{
		name: "generic", source: func(now func() time.Time) history.Source { return generic.New(now) }, change: changeWords,
		begin: func(w *writing, f *file) { f.path = filepath.Join(w.dir, f.id+".jsonl") },
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				used := ""
				if role == "assistant" {
					used = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":5}`, w.fresh())
				}
				return fmt.Sprintf(`{"id":%q,"session_id":%q,"role":%q,"content":%q,"timestamp":%q%s}`, id, f.id, role, text, w.at(),
					used)
			})
		},
	}
}

func writesKimiCode() *writer {
	begin := func(w *writing, f *file, more string) {
		folder := filepath.Join(w.dir, "sessions", "wd_x", "session_"+f.id)
		f.path = filepath.Join(folder, "agents", "main", "wire.jsonl")
		f.add("", `{"type":"metadata","protocol_version":"1.5","created_at":%d}`, w.now.UnixMilli())
		w.beside(filepath.Join(folder, "state.json"), fmt.Sprintf(`{"title":%q,"isCustomTitle":true,"workDir":"/w"%s}`,
			w.says(), more))
	}
	return &writer{
		name: "kimi-code", source: func(now func() time.Time) history.Source { return kimicode.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) { begin(w, f, "") },
		turn: func(w *writing, f *file) {
			put := func(id, format string, args ...any) {
				w.now = w.now.Add(time.Second)
				f.add(id, `{`+format+`,"time":%d}`, append(args, w.now.UnixMilli())...)
			}
			id, step := fmt.Sprintf("m%d", w.fresh()), fmt.Sprintf("s%d", w.fresh())
			put(id, `"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":%q}],"id":%q,"origin":{"kind":"user"}}`, w.says(), id)
			put("", `"type":"context.append_loop_event","event":{"type":"step.begin","uuid":%q,"step":1}`, step)
			put("", `"type":"usage.record","model":"m","usage":{"inputOther":%d,"output":5,"inputCacheRead":1,"inputCacheCreation":0},"usageScope":"turn"`, w.fresh())
			put("", `"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p%s","stepUuid":%q,"part":{"type":"text","text":%q}}`, step, step, w.says())
			put(step, `"type":"context.append_loop_event","event":{"type":"step.end","uuid":%q,"finishReason":"end_turn"}`, step)
		},
		fork: func(w *writing, f, from *file) {
			begin(w, f, fmt.Sprintf(`,"forkedFrom":"session_%s"`, from.id))
			f.lines[0].text = from.lines[0].text
			f.lines = append(f.lines, w.copied(from)...)
			f.add("", `{"type":"forked","time":%d}`, w.now.UnixMilli())
			w.say(f)
		},
	}
}

func writesDroid() *writer {
	begin := func(w *writing, f *file, more string) {
		f.path = filepath.Join(w.dir, "-w", f.id+".jsonl")
		f.add("", `{"type":"session_start","id":%q,"title":%q,"version":2,"cwd":"/w"%s}`, f.id, w.says(), more)
	}
	return &writer{
		name: "droid", source: func(now func() time.Time) history.Source { return droid.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) { begin(w, f, "") }, change: changeWords,
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				return fmt.Sprintf(`{"type":"message","id":%q,"timestamp":%q,"message":{"role":%q,"content":[{"type":"text","text":%q}]}}`,
					id, w.at(), role, text)
			})
		},
		moved: func(w *writing, f *file) string { return filepath.Join(w.dir, "-other", filepath.Base(f.path)) },
		fork: func(w *writing, f, from *file) {
			lines := w.copied(from)
			at := ""
			if n := len(lines); n > 0 {
				at = lines[n-1].id
			}
			begin(w, f, fmt.Sprintf(`,"parent":%q,"forkedAtMessageId":%q`, from.id, at))
			f.lines = append(f.lines, lines...)
			w.say(f)
		},
		agent: func(w *writing, f, from *file) {
			begin(w, f, fmt.Sprintf(`,"callingSessionId":%q`, from.id))
			w.say(f)
		},
	}
}

func writesWindsurf() *writer {
	return &writer{
		name: "windsurf", source: func(now func() time.Time) history.Source { return windsurf.New(historytest.NoEnv, now) },
		begin: func(w *writing, f *file) { f.path = filepath.Join(w.dir, "transcripts", f.id+".jsonl") },
		turn: func(w *writing, f *file) {
			f.add("", `{"type":"user_input","status":"done","user_input":{"user_response":%q}}`, w.says())
			f.add("", `{"type":"view_file","status":"done","view_file":{"path":"file:///w/a.go","content":%q}}`, w.says())
			f.add("", `{"type":"planner_response","status":"done","planner_response":{"response":%q}}`, w.says())
		},
		change: changeWords,
	}
}

func writesAntigravity() *writer {
	return &writer{
		name: "antigravity", source: func(now func() time.Time) history.Source {
			return antigravity.New(historytest.NoEnv, now)
		},
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, "brain", f.id, ".system_generated", "logs", "transcript_full.jsonl")
		},
		turn: func(w *writing, f *file) {
			put := func(source, kind, more string) {
				f.add("", `{"step_index":%d,"source":%q,"type":%q,"status":"DONE","created_at":%q,%s}`, len(f.lines), source, kind, w.at(), more)
				w.now = w.now.Add(time.Second)
			}
			put("USER_EXPLICIT", "USER_INPUT", fmt.Sprintf(`"content":"<USER_REQUEST>%s</USER_REQUEST>"`, w.says()))
			put("MODEL", "PLANNER_RESPONSE", `"tool_calls":[{"name":"view_file","args":{"AbsolutePath":"/w/a.go"}}]`)
			put("MODEL", "VIEW_FILE", fmt.Sprintf(`"content":%q`, w.says()))
			put("MODEL", "PLANNER_RESPONSE", fmt.Sprintf(`"content":%q`, w.says()))
		},
		change: changeWords,
	}
}

func writesGeminiTakeout() *writer {
	return &writer{
		name: "gemini-takeout", joins: ",\n", ends: func(*file) string { return "]" }, union: true,
		source: func(now func() time.Time) history.Source { return geminitakeout.New(now) },
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, f.id, "MyActivity.json")
			f.add("", `[`)
		},
		turn: func(w *writing, f *file) {
			f.add("", `{"header":"Gemini Apps","title":"Prompted %s","time":%q,"safeHtmlItem":[{"html":"<p>%s</p>"}],"details":[{"url":"https://gemini.google.com/app/%s"}]}`, w.says(), w.at(), w.says(), f.id[:8])
			w.now = w.now.Add(time.Second)
		},
	}
}

func writesVSCodeCopilot() *writer {
	return &writer{
		name: "vscode-copilot", source: func(now func() time.Time) history.Source {
			return vscodecopilot.New(historytest.NoUser, now)
		},
		begin: func(w *writing, f *file) {
			f.path = filepath.Join(w.dir, "chatSessions", f.id+".jsonl")
			f.add("", `{"kind":0,"v":{"version":3,"creationDate":%d,"sessionId":%q,"customTitle":%q,"requests":[]}}`,
				w.now.UnixMilli(), f.id, w.says())
		},
		turn: func(w *writing, f *file) {
			n := 0
			for _, l := range f.lines {
				if l.id != "" {
					n++
				}
			}
			id, said := fmt.Sprintf("request_%d", w.fresh()), w.says()
			f.add(id, `{"kind":2,"k":["requests"],"v":[{"requestId":%q,"timestamp":%d,"message":{"text":%q},"response":[],"modelState":{"value":0}}]}`, id, w.now.UnixMilli(), w.says())
			f.add("", `{"kind":2,"k":["requests",%d,"response"],"v":[{"value":%q}],"i":0}`, n, said[:3])
			f.add("", `{"kind":2,"k":["requests",%d,"response"],"v":[{"value":%q}],"i":0}`, n, said)
			f.add("", `{"kind":1,"k":["requests",%d,"promptTokens"],"v":%d}`, n, w.fresh())
			f.add("", `{"kind":1,"k":["requests",%d,"modelState"],"v":{"value":1}}`, n)
		},
	}
}

func writesCursor() *writer {
	return &writer{
		name: "cursor", base: "globalStorage/state.vscdb",
		schema: `CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
			CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);`,
		source: func(now func() time.Time) history.Source { return cursor.New(historytest.NoUser, now) },
		begin: func(w *writing, f *file) {
			f.path = f.id
			f.lines = append(f.lines, line{text: fmt.Sprintf(`"name":%q,"createdAt":%d`, w.says(), w.now.UnixMilli())})
		},
		turn: func(w *writing, f *file) {
			w.talks(f, func(role, id, text string) string {
				kind, used := 1, ""
				if role == "assistant" {
					kind, used = 2, fmt.Sprintf(`,"tokenCount":{"inputTokens":%d,"outputTokens":5}`, w.fresh())
				}
				return fmt.Sprintf(`INSERT INTO cursorDiskKV VALUES ('bubbleId:%s:%s', '{"type":%d,"text":%q,"createdAt":%q%s}')`, f.id, id,
					kind, text, w.at(), used)
			})
		},
		change: changeWords,
		ends: func(f *file) string { // the row of the conversation
			var heads []string
			for _, l := range f.lines[1:] {
				heads = append(heads, fmt.Sprintf(`{"bubbleId":%q}`, l.id))
			}
			return fmt.Sprintf(`INSERT INTO cursorDiskKV VALUES ('composerData:%s', '{%s,"lastUpdatedAt":%s,"status":"completed","fullConversationHeadersOnly":[%s]}')`,
				f.id, f.lines[0].text, updated, strings.Join(heads, ","))
		},
	}
}
