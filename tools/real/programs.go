//go:build unix

package main

// program is an agent program: how it is installed, pointed at the model and run.
type program struct {
	name, title string // name is sessiond's
	pack, bin   string
	files       map[string]string // below the home; LOOPBACK is the model's address
	env         []string
	first       []string // arguments before a prompt, which begins a conversation
	next        []string // and one that continues ID
	compact     []string // arguments that compact ID; nil: it compacts when a reply reports fill tokens
	fill        int64
	fillsInRun  bool   // it counts the tokens of its own run alone
	shown       bool   // the page has its requests
	noAgents    string // why it has no sub-agents
	noMCP       string
	noPrompts   string // why no hook answers its prompts
	noLost      string // why no hook answers its compactions
}

// price is what a model costs, in dollars for a million tokens.
type price struct{ input, read, write, output float64 }

// prices are those of the models that programs ask for here, as their makers publish them, and of m in configurations.
var prices = map[string]price{
	"claude-opus-4-5": {5, 0.5, 6.25, 25},
	"claude-opus-5-5": {4, 0.2, 5, 20},
	"gpt-5":           {1.25, 0.125, 0, 10},
	"gemini-2.5-pro":  {1.25, 0.125, 0, 10},
	"m":               {1.25, 0.125, 0, 10},
}

var programs = []*program{
	{
		name: "claude-code", title: "Claude Code", pack: "@anthropic-ai/claude-code", bin: "claude",
		env: []string{
			"ANTHROPIC_BASE_URL=LOOPBACK", "ANTHROPIC_API_KEY=fake", "ANTHROPIC_MODEL=claude-opus-4-5",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
		},
		first:   []string{"--dangerously-skip-permissions", "-p"},
		next:    []string{"--dangerously-skip-permissions", "--resume", "ID", "-p"},
		compact: []string{"--resume", "ID", "-p", "/compact"},
		shown:   true,
	},
	{
		name: "codex", title: "Codex", pack: "@openai/codex", bin: "codex",
		files: map[string]string{".codex/config.toml": `model = "gpt-5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_auto_compact_token_limit = 100000

[model_providers.fake]
name = "fake"
base_url = "LOOPBACK/v1"
wire_api = "responses"
`},
		first: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"},
		next:  []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "resume", "ID"},
		fill:  150_000,
		shown: true,
	},
	{
		name: "gemini-cli", title: "Gemini CLI", pack: "@google/gemini-cli", bin: "gemini",
		files: map[string]string{".gemini/settings.json": `{
  // the model on loopback
  "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false},
  "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false, "sessionRetention": {"enabled": false}},
  "model": {"name": "gemini-2.5-pro", "compressionThreshold": 0.1}
}
`},
		env:   []string{"GOOGLE_GEMINI_BASE_URL=LOOPBACK", "GEMINI_API_KEY=fake"},
		first: []string{"--yolo", "--skip-trust", "-p"},
		next:  []string{"--yolo", "--skip-trust", "--resume", "ID", "-p"},
		fill:  150_000, fillsInRun: true,
	},
	{
		name: "opencode", title: "opencode", pack: "opencode-ai", bin: "opencode",
		files: map[string]string{".config/opencode/opencode.json": openCodeConfig},
		env:   []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		first: []string{"run", "--model", "fake/m"},
		next:  []string{"run", "--model", "fake/m", "--session", "ID"},
		fill:  195_000,
	},
	{
		name: "pi", title: "pi", pack: "@earendil-works/pi-coding-agent", bin: "pi",
		files: map[string]string{
			".pi/agent/models.json": `{"providers": {"fake": {"baseUrl": "LOOPBACK/v1", "apiKey": "fake", "api": "openai-completions", "models": [{
  "id": "m", "name": "m", "reasoning": false, "input": ["text"], "contextWindow": 200000, "maxTokens": 4000,
  "cost": {"input": 1.25, "output": 10, "cacheRead": 0.125, "cacheWrite": 0}
}]}}}
`,
			".pi/agent/settings.json": `{"compaction": {"enabled": true, "reserveTokens": 16384, "keepRecentTokens": 50}}` + "\n",
		},
		env:      []string{"PI_OFFLINE=1"},
		first:    []string{"--provider", "fake", "--model", "m", "-p"},
		next:     []string{"--provider", "fake", "--model", "m", "--session", "ID", "-p"},
		fill:     190_000,
		noAgents: "pi has no sub-agents",
	},
	{
		name: "qwen-code", title: "Qwen Code", pack: "@qwen-code/qwen-code", bin: "qwen",
		files: map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": false},
  "privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true}
}
`},
		env:     []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL=LOOPBACK/v1", "OPENAI_MODEL=gpt-5"},
		first:   []string{"-y", "-p"},
		next:    []string{"-y", "--resume", "ID", "-p"},
		compact: []string{"-y", "--resume", "ID", "-p", "/compress"},
	},
	{
		name: "copilot-cli", title: "Copilot CLI", pack: "@github/copilot", bin: "copilot",
		env: []string{
			"COPILOT_PROVIDER_BASE_URL=LOOPBACK/v1", "COPILOT_PROVIDER_API_KEY=fake", "COPILOT_MODEL=gpt-5",
			"COPILOT_AUTO_UPDATE=false", "COPILOT_OFFLINE=true",
		},
		first:   []string{"--allow-all-tools", "-p"},
		next:    []string{"--allow-all-tools", "--resume", "ID", "-p"},
		compact: []string{"--allow-all-tools", "--resume", "ID", "-p", "/compact"},
	},
	{
		name: "kilo", title: "Kilo", pack: "@kilocode/cli", bin: "kilo",
		files: map[string]string{".config/kilo/kilo.json": openCodeConfig},
		first: []string{"run", "--model", "fake/m"},
		next:  []string{"run", "--model", "fake/m", "--session", "ID"},
		fill:  195_000,
	},
}

// openCodeConfig is the configuration of opencode and its forks.
const openCodeConfig = `{
  // the model on loopback
  "autoupdate": false, "share": "disabled", "permission": {"*": "allow"},
  "provider": {"fake": {
    "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "LOOPBACK/v1", "apiKey": "fake"},
    "models": {"m": {
      "name": "m", "tool_call": true, "limit": {"context": 200000, "output": 8000},
      "cost": {"input": 1.25, "output": 10, "cache_read": 0.125}
    }}
  }}
}
`
