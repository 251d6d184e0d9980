package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// A program as it comes from npm, and how it is told to ask the model on loopback.
type npmProgram struct {
	name, pack string
	files      map[string]string // below the home, before it is connected; MODEL is the model's address
	env        []string
	args       []string // without the prompt, which is the last one
	bin        string
	hooks      bool // its hooks run in this mode
	noMCP      bool // this version has no MCP
}

const askedPrompt = "Which port has the staging database behind pgbouncer?"

var npmPrograms = []npmProgram{
	{
		name: "claude-code", pack: "@anthropic-ai/claude-code@2.1.197", bin: "claude", hooks: true,
		env: []string{
			"ANTHROPIC_BASE_URL=MODEL", "ANTHROPIC_API_KEY=fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
		},
		args: []string{"--allowedTools", "mcp__sessiond__search", "-p"},
	},
	{
		name: "codex", pack: "@openai/codex@0.169.0", bin: "codex", hooks: true,
		files: map[string]string{".codex/config.toml": "model = \"fake\"\nmodel_provider = \"fake\"\n" +
			"approval_policy = \"never\"\n\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"MODEL/v1\"\n" +
			"wire_api = \"responses\"\n"},
		// no person trusts the hooks here
		args: []string{
			"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"--dangerously-bypass-hook-trust",
		},
	},
	{
		name: "opencode", pack: "opencode-ai@1.18.33", bin: "opencode", hooks: true,
		files: map[string]string{".config/opencode/opencode.json": `{
  // the model on loopback
  "autoupdate": false, "share": "disabled",
  "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "MODEL/v1", "apiKey": "fake"}, "models": {"m": {"name": "m", "tool_call": true}}}}
}
`},
		args: []string{"run", "--model", "fake/m"},
	},
	{
		name: "pi", pack: "@mariozechner/pi-coding-agent@0.73.1", bin: "pi", hooks: true, noMCP: true,
		files: map[string]string{".pi/agent/models.json": `{"providers": {"fake": {"baseUrl": "MODEL/v1", "apiKey": "fake", "api": "openai-completions", "models": [{"id": "m", "name": "m", "reasoning": false, "input": ["text"], "contextWindow": 100000, "maxTokens": 4000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}` + "\n"},
		args:  []string{"--provider", "fake", "--model", "m", "-p"},
	},
	{
		name: "gemini-cli", pack: "@google/gemini-cli@0.61.0", bin: "gemini",
		files: map[string]string{".gemini/settings.json": "{\n" +
			"  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}, \"telemetry\": {\"enabled\": false}, " +
			"\"privacy\": {\"usageStatisticsEnabled\": false}\n}\n"},
		env:  []string{"GOOGLE_GEMINI_BASE_URL=MODEL", "GEMINI_API_KEY=fake"},
		args: []string{"--yolo", "--skip-trust", "-p"},
	},
}

// fakeModel answers in the forms of four providers: first with a call of sessiond's tool search, then with a text.
type fakeModel struct {
	mu    sync.Mutex
	asked []string // bodies
}

// toolName returns the name under which a program offers sessiond's tool search; "": it does not.
func toolName(body []byte) string {
	for _, name := range []string{"mcp__sessiond__search", "sessiond_search", "mcp_sessiond_search", "sessiond__search"} {
		if bytes.Contains(body, []byte(`"`+name+`"`)) {
			return name
		}
	}
	return ""
}

const foundByTool = "pgbouncer listens" // stands in what the tool finds

func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.asked = append(m.asked, string(body))
	m.mu.Unlock()
	tool := toolName(body)
	if bytes.Contains(body, []byte("call_fake")) || bytes.Contains(body, []byte(`"functionResponse"`)) {
		tool = ""
	}
	const in = `{"query":"staging database pgbouncer"}`
	encoded, _ := json.Marshal(in)
	quoted := string(encoded)
	event := func(kind, data string) {
		if kind != "" {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":100}`)
	case strings.HasSuffix(path, "/messages"):
		w.Header().Set("Content-Type", "text/event-stream")
		event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
		block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"It is 6432."}`, "end_turn"
		if tool != "" {
			block, delta, stop = `{"type":"tool_use","id":"call_fake","name":"`+tool+`","input":{}}`,
				`{"type":"input_json_delta","partial_json":`+quoted+`}`, "tool_use"
		}
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
		event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		event("message_delta",
			`{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":9}}`)
		event("message_stop", `{"type":"message_stop"}`)
	case strings.HasSuffix(path, "/responses"):
		w.Header().Set("Content-Type", "text/event-stream")
		item := `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"It is 6432."}]}`
		if tool != "" {
			name := `"name":"` + tool + `"`
			item = `{"type":"function_call","id":"fc_1","call_id":"call_fake",` + name + `,"arguments":` + quoted + `}`
		} else if bytes.Contains(body, []byte(`"mcp__sessiond"`)) && !bytes.Contains(body, []byte("call_fake")) {
			// tools of a server as a name space
			item = `{"type":"function_call","id":"fc_1","call_id":"call_fake","namespace":"mcp__sessiond","name":"search","arguments":` + quoted + `}`
		}
		event("response.created", `{"type":"response.created","response":{"id":"resp_1"}}`)
		event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`)
		event("response.completed", `{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`)
	case strings.HasSuffix(path, "/chat/completions"):
		w.Header().Set("Content-Type", "text/event-stream")
		delta, stop := `{"role":"assistant","content":"It is 6432."}`, "stop"
		if tool != "" {
			delta, stop = `{"role":"assistant","tool_calls":[{"index":0,"id":"call_fake","type":"function","function":{"name":"`+tool+`","arguments":`+quoted+`}}]}`, "tool_calls"
		}
		event("", `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":`+delta+`}]}`)
		event("", `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"`+stop+`"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
		event("", "[DONE]")
	case strings.Contains(path, "enerateContent"):
		part := `{"text":"It is 6432."}`
		if tool != "" {
			part = `{"functionCall":{"name":"` + tool + `","args":` + in + `}}`
		}
		answer := `{"candidates":[{"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`
		if strings.Contains(path, "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			event("", answer)
		} else {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[]}`)
	}
}

// Programs as they come from npm, each in a home of its own, are connected, list and call the MCP server's tool, get
// the hook's text, and are as before when they are disconnected.
func TestConnectedPrograms(t *testing.T) {
	t.Parallel()
	if !effort.Long() {
		t.Skip("it installs five programs from npm: ./scripts/test --long runs it")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	for _, p := range npmPrograms {
		t.Run(p.name, func(t *testing.T) {
			dir := t.TempDir()
			awaitImports(t, dir)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // far more than it needs
			defer cancel()
			install := exec.CommandContext(ctx, npm, "install", "--prefix", filepath.Join(dir, "npm"), "--no-audit", "--no-fund",
				"--silent", p.pack)
			install.Env = append(os.Environ(), "TMPDIR="+dir)
			if out, err := install.CombinedOutput(); err != nil {
				t.Skipf("%s cannot be installed here: %v: %.300s", p.pack, err, out)
			}
			model := &fakeModel{}
			server := httptest.NewServer(model)
			defer server.Close()
			home, project := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
			testkit.Check(t, os.MkdirAll(project, 0o700))
			for path, text := range p.files {
				testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o700))
				testkit.Check(t, os.WriteFile(filepath.Join(home, path), []byte(strings.ReplaceAll(text, "MODEL", server.URL)),
					0o600))
			}
			env := []string{
				"HOME=" + home, "XDG_DATA_HOME=" + filepath.Join(home, ".local", "share"),
				"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "XDG_RUNTIME_DIR=", "TMPDIR=" + dir,
				"PATH=" + filepath.Join(dir, "npm", "node_modules", ".bin") + ":" + os.Getenv("PATH"), "TERM=dumb",
			}
			for _, e := range p.env {
				env = append(env, strings.ReplaceAll(e, "MODEL", server.URL))
			}
			run := func(name string, args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(ctx, name, args...)
				cmd.Dir, cmd.Env = project, env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %q: %v\n%.3000s", name, args, err, out)
				}
				return string(out)
			}
			program := filepath.Join(dir, "npm", "node_modules", ".bin", p.bin)
			t.Logf("%s %s", p.name, strings.TrimSpace(run(program, "--version")))
			run("sessiond", "append", "--new", "user", "On the staging database "+foundByTool+" on port 6432.")
			before := configurations(t, home)
			flags := []string{"connect", p.name, "--yes"}
			if p.hooks {
				flags = append(flags, "--for-prompts")
			}
			run("sessiond", flags...)
			said := run(program, append(slices.Clone(p.args), askedPrompt)...)
			model.mu.Lock()
			asked := slices.Clone(model.asked)
			model.mu.Unlock()
			if !strings.Contains(said, "6432") {
				t.Errorf("it said %.500s", said)
			}
			has := func(what, text string) {
				if !slices.ContainsFunc(asked, func(body string) bool { return strings.Contains(body, text) }) {
					t.Errorf("no request has %s (%q); %d requests, said %.1000s", what, text, len(asked), said)
				}
			}
			if !p.noMCP {
				has("what the tool found", "in this project (")
			}
			if p.hooks {
				has("the hook's text", "found for this prompt")
			}
			run("sessiond", "connect", p.name, "--remove", "--yes")
			after := configurations(t, home)
			for path, text := range before {
				if after[path] != text && strings.Contains(text+after[path], "sessiond") {
					t.Errorf("%s was\n%s\nand is\n%s", path, text, after[path])
				}
			}
			for _, path := range slices.Sorted(maps.Keys(after)) {
				if strings.Contains(path, "sessiond") {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

// configurations are the small files of a home, but for what sessiond and the program store.
func configurations(t *testing.T, home string) map[string]string {
	found := map[string]string{}
	for _, folder := range []string{
		".claude/settings.json", ".claude/skills", ".claude.json", ".codex/config.toml",
		".codex/hooks.json", ".codex/skills", ".config/opencode", ".pi/agent/models.json", ".pi/agent/mcp.json",
		".pi/agent/extensions", ".pi/agent/skills", ".gemini/settings.json",
	} {
		_ = filepath.WalkDir(filepath.Join(home, folder), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.Contains(path, "node_modules") {
				rel := testkit.Must(filepath.Rel(home, path))(t)
				found[rel] = string(testkit.Must(os.ReadFile(path))(t))
			}
			return nil
		})
	}
	return found
}
