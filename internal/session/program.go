package session

import (
	"slices"
	"strings"
)

// Source is the program of a conversation's origin, by its name on the command line.
type Source string

// The programs that code has special cases for.
const (
	SourceSessiond   Source = "sessiond"
	SourceGoose      Source = "goose"
	SourceCodex      Source = "codex"
	SourcePi         Source = "pi"
	SourceOpencode   Source = "opencode"
	SourceClaudeCode Source = "claude-code"
	SourceOpenClaw   Source = "openclaw"
	SourceGeminiCLI  Source = "gemini-cli"
	SourceCopilotCLI Source = "copilot-cli"
	SourceQwenCode   Source = "qwen-code"
	SourceKilo       Source = "kilo"
	SourceOmp        Source = "omp"
	SourceCursor     Source = "cursor"
	SourceCline      Source = "cline"
	SourceRoo        Source = "roo-code"
	SourceKimiCode   Source = "kimi-code"
	SourceChatGPT    Source = "chatgpt"
	SourceClaudeAI   Source = "claude-ai"
	SourceGeneric    Source = "generic"

	SourceVSCodeCopilot Source = "vscode-copilot"
	SourceContinue      Source = "continue"
	SourceDroid         Source = "droid"
	SourceWindsurf      Source = "windsurf"
	SourceZed           Source = "zed"
	SourceCrush         Source = "crush"
	SourceHermes        Source = "hermes"
	SourceDevin         Source = "devin"
	SourceAntigravity   Source = "antigravity"
	SourceGeminiTakeout Source = "gemini-takeout"
)

// ProgramInfo describes a program whose sessions are stored.
type ProgramInfo struct {
	Name    Source
	Title   string   // as people call it
	Aliases []string // other names on the command line, in small letters
	Resume  string   // the beginning of the command that resumes a session, whose id is its last word; "": there is none

	// Prompt is what follows the id before a first prompt; TEXT: the prompt alone; "": none can be given.
	Prompt string

	Target bool // sessiond writes sessions of it, in which conversations go on
}

// Programs are all programs. A new one is a line here and one in the list of readers, cmd/sessiond/import.go.
var Programs = []ProgramInfo{
	{Name: SourceSessiond, Title: "sessiond"},
	{Name: SourceGoose, Title: "Goose", Resume: "goose session --resume --session-id"},
	{
		Name: SourceCodex, Title: "Codex", Aliases: []string{"codex-cli"},
		Resume: "codex resume", Prompt: "TEXT", Target: true,
	},
	{Name: SourcePi, Title: "pi", Resume: "pi --session", Prompt: "TEXT", Target: true},
	{Name: SourceOpencode, Title: "OpenCode", Resume: "opencode --session", Prompt: "--prompt", Target: true},
	{
		Name: SourceClaudeCode, Title: "Claude Code", Aliases: []string{"claude"},
		Resume: "claude --resume", Prompt: "TEXT", Target: true,
	},
	{Name: SourceOpenClaw, Title: "OpenClaw", Aliases: []string{"clawdbot", "moltbot"}, Resume: "openclaw tui --session"},
	{
		Name: SourceGeminiCLI, Title: "Gemini CLI", Aliases: []string{"gemini"},
		Resume: "gemini --resume", Prompt: "-i", Target: true,
	},
	{
		Name: SourceCopilotCLI, Title: "Copilot CLI", Aliases: []string{"copilot"},
		Resume: "copilot --resume", Prompt: "-i", Target: true,
	},
	{
		Name: SourceQwenCode, Title: "Qwen Code", Aliases: []string{"qwen"},
		Resume: "qwen --resume", Prompt: "-i", Target: true,
	},
	{
		Name: SourceKilo, Title: "Kilo Code", Aliases: []string{"kilocode", "kilo-code"},
		Resume: "kilo --session", Prompt: "--prompt",
	},
	{Name: SourceOmp, Title: "Oh My Pi", Aliases: []string{"oh-my-pi"}, Resume: "omp --resume"},
	{Name: SourceCursor, Title: "Cursor", Aliases: []string{"cursor-agent"}, Resume: "cursor-agent --resume"},
	{Name: SourceCline, Title: "Cline", Resume: "cline --id"},
	{Name: SourceRoo, Title: "Roo Code", Aliases: []string{"roo"}},
	{Name: SourceKimiCode, Title: "Kimi Code", Aliases: []string{"kimi", "kimi-cli"}, Resume: "kimi --session"},
	{Name: SourceChatGPT, Title: "ChatGPT", Aliases: []string{"chatgpt-export"}},
	{Name: SourceClaudeAI, Title: "Claude.ai", Aliases: []string{"claude-ai-export"}},
	{Name: SourceGeneric, Title: "Generic"},
	{Name: SourceVSCodeCopilot, Title: "VS Code Copilot Chat", Aliases: []string{"vscode", "copilot-chat"}},
	{Name: SourceContinue, Title: "Continue", Aliases: []string{"cn"}, Resume: "cn --fork"},
	{Name: SourceDroid, Title: "Droid", Aliases: []string{"factory"}, Resume: "droid --resume"},
	{Name: SourceWindsurf, Title: "Windsurf", Aliases: []string{"devin-desktop", "cascade"}},
	{Name: SourceZed, Title: "Zed"},
	{Name: SourceCrush, Title: "Crush", Resume: "crush --session"},
	{Name: SourceHermes, Title: "Hermes", Aliases: []string{"hermes-agent"}, Resume: "hermes --resume"},
	{Name: SourceDevin, Title: "Devin", Aliases: []string{"devin-cli"}, Resume: "devin --resume"},
	{Name: SourceAntigravity, Title: "Antigravity", Aliases: []string{"agy"}, Resume: "agy --conversation"},
	{Name: SourceGeminiTakeout, Title: "Gemini Takeout", Aliases: []string{"takeout", "gemini-apps"}},
}

// ProgramNamed returns the program of a name, a title or an alias, in any case.
func ProgramNamed(text string) (ProgramInfo, bool) {
	text = strings.ToLower(text)
	at := slices.IndexFunc(Programs, func(p ProgramInfo) bool {
		return string(p.Name) == text || strings.ToLower(p.Title) == text || slices.Contains(p.Aliases, text)
	})
	if at < 0 {
		return ProgramInfo{}, false
	}
	return Programs[at], true
}

// ProgramNames are the names of all programs.
func ProgramNames() (names []string) {
	for _, p := range Programs {
		names = append(names, string(p.Name))
	}
	return names
}
