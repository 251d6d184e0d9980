package connect

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"sessiond/internal/folders"
)

const serverName = "sessiond"

// Host finds the programs by its system and its environment.
type Host struct {
	System string // as in runtime.GOOS; "": this one
	Getenv func(string) string
}

// Program is an agent program with the files that connect edits.
type Program struct {
	Name   string // as on sessiond's command line, and of its histories
	Folder string // with its configuration
	Files  []File
	binary string
	client string // the beginning of the name that it gives an MCP server; "": that of Name
	root   string // no empty folder is removed but below this one
}

// Part is what a file is for.
type Part string

const (
	MCP   Part = "MCP"
	Hooks Part = "hooks"
	Skill Part = "skill"
)

// File is one file of a program's configuration. A file with two parts is there twice.
type File struct {
	Part Part
	Path string
	form form
}

// paths returns the paths of the program's files, each once.
func (p Program) paths() (paths []string) {
	for _, f := range p.Files {
		if !slices.Contains(paths, f.Path) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// in returns what the program has in a file.
func (p Program) in(path string) (parts []Part, forms []form) {
	for _, f := range p.Files {
		if f.Path == path {
			parts, forms = append(parts, f.Part), append(forms, f.form)
		}
	}
	return parts, forms
}

// command is the common form of an MCP server.
type command struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func commandOfEntry(binary string) command { return command{binary, []string{"mcp"}} }

func commandEntry(binary string) any { return commandOfEntry(binary) }

// server is an MCP server in a JSON file, named sessiond in the object of a path.
func server(file string, entry func(binary string) any, names ...string) File {
	return File{MCP, file, jsonServer{append(names, serverName), entry}}
}

func mcpServers(file string) File { return server(file, commandEntry, "mcpServers") }

func skill(dir string) File {
	return File{Skill, filepath.Join(dir, "skills", serverName, "SKILL.md"), whole{text: skillText}}
}

// Programs returns the programs that sessiond can connect, in the folders that the environment gives them.
// docs/connect.md has the sources. A new one is a line here and a row there.
func (h Host) Programs() []Program {
	p := places{h, h.user().Home(), ""}
	p.config = p.moved("XDG_CONFIG_HOME", p.under(".config"))
	claude, codex, pi := p.moved("CLAUDE_CONFIG_DIR", p.under(".claude")), p.moved("CODEX_HOME", p.under(".codex")),
		p.moved("PI_CODING_AGENT_DIR", p.under(".pi", "agent"))
	opencode, kilo, goose := p.config+"/opencode", p.config+"/kilo", p.goose()
	gemini, qwen := p.moved("GEMINI_CLI_HOME", p.home)+"/.gemini", p.moved("QWEN_HOME", p.under(".qwen"))
	copilot, kimi := p.moved("COPILOT_HOME", p.under(".copilot")), p.moved("KIMI_CODE_HOME", p.under(".kimi-code"))
	cline, continues := p.moved("CLINE_DIR", p.under(".cline")), p.moved("CONTINUE_GLOBAL_DIR", p.under(".continue"))
	cursor, code, zed := p.under(".cursor"), p.user().Config()+"/Code", p.config+"/zed"
	if p.user().IsOn("windows") {
		zed = p.user().Config() + "/Zed"
	}
	factory, crush := p.moved("FACTORY_HOME_OVERRIDE", p.home)+"/.factory", p.config+"/crush"
	hermes, devin := p.moved("HERMES_HOME", p.under(".hermes")), p.config+"/devin"
	if p.user().IsOn("windows") {
		hermes, devin = p.moved("HERMES_HOME", p.user().Data()+"/hermes"), p.user().Config()+"/devin"
	}
	openclaw := p.moved("OPENCLAW_STATE_DIR", p.moved("OPENCLAW_HOME", p.home)+"/.openclaw")

	programs := []Program{
		{Name: "claude-code", binary: "claude", Folder: claude, Files: []File{
			mcpServers(p.claudeServers(claude)), hooks(claude+"/settings.json", claudeHooks("claude-code")), skill(claude),
		}},
		{Name: "codex", binary: "codex", Folder: codex, Files: []File{
			{MCP, codex + "/config.toml", tomlServer{}}, hooks(codex+"/hooks.json", claudeHooks("codex")), skill(codex),
		}},
		{Name: "opencode", binary: "opencode", Folder: opencode, Files: []File{
			server(firstThere(opencode+"/opencode.jsonc", opencode+"/opencode.json"), opencodeEntry, "mcp"),
			plugin(opencode+"/plugins/sessiond.js", opencodeText, "opencode"), skill(opencode),
		}},
		{Name: "kilo", binary: "kilo", Folder: kilo, Files: []File{
			server(firstThere(kilo+"/kilo.jsonc", kilo+"/kilo.json"), opencodeEntry, "mcp"),
			plugin(kilo+"/plugin/sessiond.js", opencodeText, "kilo"), skill(kilo),
		}},
		{Name: "pi", binary: "pi", Folder: pi, Files: []File{
			server(pi+"/mcp.json", piEntry, "mcpServers"), plugin(pi+"/extensions/sessiond.ts", piText, "pi"), skill(pi),
		}},
		{Name: "gemini-cli", binary: "gemini", Folder: gemini, Files: []File{
			mcpServers(gemini + "/settings.json"), hooks(gemini+"/settings.json", geminiHooks), skill(gemini),
		}},
		{Name: "qwen-code", binary: "qwen", Folder: qwen, Files: []File{
			mcpServers(qwen + "/settings.json"), hooks(qwen+"/settings.json", qwenHooks), skill(qwen),
		}},
		{Name: "copilot-cli", binary: "copilot", Folder: copilot, Files: []File{
			server(copilot+"/mcp-config.json", copilotEntry, "mcpServers"),
			hooks(copilot+"/hooks/sessiond.json", copilotHooks), skill(copilot),
		}},
		{Name: "kimi-code", binary: "kimi", Folder: kimi, Files: []File{mcpServers(kimi + "/mcp.json"), skill(kimi)}},
		{Name: "cline", binary: "cline", Folder: cline, Files: p.cline(cline, code)},
		{Name: "continue", binary: "cn", Folder: continues, Files: []File{
			{MCP, continues + "/config.yaml", yamlServer{}},
		}},
		{Name: "goose", binary: "goose", Folder: goose, Files: []File{
			{MCP, goose + "/config.yaml", gooseExtension}, skill(goose),
		}},
		{Name: "cursor", binary: "cursor", Folder: cursor, Files: []File{mcpServers(cursor + "/mcp.json"), skill(cursor)}},
		{Name: "vscode-copilot", binary: "code", Folder: code, Files: []File{
			server(code+"/User/mcp.json", stdioEntry, "servers"),
		}},
		{Name: "zed", binary: "zed", Folder: zed, Files: []File{
			server(zed+"/settings.json", zedEntry, "context_servers"),
		}},
		{Name: "droid", binary: "droid", Folder: factory, Files: append([]File{
			server(factory+"/mcp.json", stdioEntry, "mcpServers"), skill(factory),
		}, droidHookFiles(factory)...)},
		{Name: "crush", binary: "crush", Folder: crush, Files: []File{
			server(p.moved("CRUSH_GLOBAL_CONFIG", crush)+"/crush.json", stdioEntry, "mcp"), skill(crush),
		}},
		{Name: "hermes", binary: "hermes", Folder: hermes, Files: []File{{MCP, hermes + "/config.yaml", hermesServer}}},
		{Name: "devin", binary: "devin", Folder: devin, Files: []File{mcpServers(devin + "/config.json")}},
		{Name: "antigravity", binary: "agy", Folder: p.under(".gemini", "antigravity-cli"), Files: p.antigravity()},
		{Name: "openclaw", binary: "openclaw", Folder: openclaw, Files: []File{
			p.openclawServer(openclaw), skill(openclaw),
		}},
	}
	for i := range programs {
		programs[i].root = p.root(programs[i].Folder)
	}
	return programs
}

// places are where the programs of a host keep their configurations, as the environment says.
type places struct {
	Host
	home, config string
}

// under returns a path in the home folder.
func (p places) under(names ...string) string {
	return filepath.Join(append([]string{p.home}, names...)...)
}

// moved returns the folder that a variable names, else the usual one.
func (p places) moved(variable, usual string) string {
	dir := p.Getenv(variable)
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		dir = p.under(rest)
	}
	return cmp.Or(dir, usual)
}

// root returns the folder in which the folders of configurations lie.
func (p places) root(folder string) string {
	for _, root := range []string{p.config, p.home} {
		if folder != root && folders.Within(folders.Clean(folder), folders.Clean(root)) {
			return root
		}
	}
	return filepath.Dir(folder)
}

// firstThere returns the first of some paths that exists, else the last.
func firstThere(paths ...string) string {
	for _, path := range paths {
		if exists(path) {
			return path
		}
	}
	return paths[len(paths)-1]
}

// opencodeEntry is an MCP server of opencode and Kilo.
func opencodeEntry(binary string) any {
	return struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}{"local", []string{binary, "mcp"}, true}
}

// piEntry asks pi to show the tools themselves, not a tool that finds them.
func piEntry(binary string) any {
	return struct {
		command
		Exposure string `json:"exposure"`
	}{commandOfEntry(binary), "direct"}
}

// copilotEntry allows all tools, as `copilot mcp add` does.
func copilotEntry(binary string) any {
	return struct {
		Type string `json:"type"`
		command
		Tools []string `json:"tools"`
	}{"local", commandOfEntry(binary), []string{"*"}}
}

// stdioEntry is a server of VS Code, Droid and Crush.
func stdioEntry(binary string) any {
	return struct {
		Type string `json:"type"`
		command
	}{"stdio", commandOfEntry(binary)}
}

// zedEntry has the source that Zed needed until 2025.
func zedEntry(binary string) any {
	return struct {
		Source string `json:"source"`
		command
	}{"custom", commandOfEntry(binary)}
}

func (p places) claudeServers(claude string) string {
	if old := claude + "/.config.json"; exists(old) { // of early versions; Claude Code prefers it
		return old
	}
	return p.moved("CLAUDE_CONFIG_DIR", p.home) + "/.claude.json"
}

func (p places) goose() string {
	if root := p.Getenv("GOOSE_PATH_ROOT"); filepath.IsAbs(root) {
		return filepath.Join(root, "config")
	}
	if p.user().IsOn("windows") {
		return p.user().Config() + "/Block/goose/config"
	}
	return p.config + "/goose"
}

// cline returns the files of Cline's command, and of its extension of VS Code where that is installed.
func (p places) cline(cline, code string) []File {
	data := p.moved("CLINE_DATA_DIR", cline+"/data")
	files := []File{
		mcpServers(p.moved("CLINE_MCP_SETTINGS_PATH", data+"/settings/cline_mcp_settings.json")), skill(cline),
	}
	if extension := code + "/User/globalStorage/saoudrizwan.claude-dev"; exists(extension) {
		files = append(files, mcpServers(extension+"/settings/cline_mcp_settings.json"))
	}
	return files
}

// antigravity returns the file that all of Antigravity's programs share, and those of their own where these are there.
func (p places) antigravity() []File {
	files := []File{mcpServers(p.under(".gemini", "config", "mcp_config.json"))}
	for _, program := range []string{"antigravity-cli", "antigravity"} {
		if own := p.under(".gemini", program, "mcp_config.json"); exists(own) {
			files = append(files, mcpServers(own))
		}
	}
	return files
}

// openclawServer works in the agents' workspace: the gateway, which starts it, runs anywhere.
func (p places) openclawServer(state string) File {
	config := p.moved("OPENCLAW_CONFIG_PATH", state+"/openclaw.json")
	return server(config, func(binary string) any {
		return struct {
			command
			Folder string `json:"cwd,omitempty"`
		}{commandOfEntry(binary), p.openclawWorkspace(config, state)}
	}, "mcp", "servers")
}

// openclawWorkspace returns the folder in which OpenClaw's agents work, as its configuration says; "" if it is not
// there.
func (p places) openclawWorkspace(config, state string) string {
	folder := filepath.Join(state, "workspace")
	text, _ := os.ReadFile(config) // without one the default counts
	if root, err := parseJSON(text); err == nil {
		if set := lookup(root, "agents", "defaults", "workspace"); set != nil && set.Value.Kind() == '"' {
			folder = set.Value.(hujson.Literal).String()
		}
	}
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		folder = p.under(rest)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() || !filepath.IsAbs(folder) {
		return ""
	}
	return folder
}

// ProgramOf returns the program of an MCP client, whose name begins with the program's.
func (h Host) ProgramOf(client string) (Program, bool) {
	for _, p := range h.Programs() {
		if strings.HasPrefix(strings.ToLower(client), cmp.Or(p.client, p.Name)) {
			return p, true
		}
	}
	return Program{}, false
}

// Found reports whether a program is on this host: its folder, a file of it, or the program itself in PATH.
func (h Host) Found(p Program) bool {
	if exists(p.Folder) {
		return true
	}
	for _, f := range p.Files {
		if exists(f.Path) {
			return true
		}
	}
	return h.LookPath(p.binary) != ""
}

func (h Host) user() folders.User { return folders.User{System: h.System, Getenv: h.Getenv} }

// LookPath finds a program as the caller's shell would, but in no relative folder; "" if it does not exist. On Windows
// it has one of the endings of $PATHEXT.
func (h Host) LookPath(name string) string {
	list, endings, executable := string(filepath.ListSeparator), []string{""}, fs.FileMode(0o111)
	if h.user().IsOn("windows") {
		list, executable = ";", 0 // a file's mode says nothing there
		endings = strings.Split(strings.ToLower(cmp.Or(h.Getenv("PATHEXT"), ".com;.exe;.bat;.cmd")), ";")
	}
	for _, dir := range strings.Split(h.Getenv("PATH"), list) {
		for _, ending := range endings {
			path := filepath.Join(dir, name+ending)
			if info, err := os.Stat(path); folders.IsAbs(dir) && err == nil && info.Mode().IsRegular() &&
				(executable == 0 || info.Mode()&executable != 0) {
				return path
			}
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// State says which parts of a program are connected.
type State struct {
	Parts   map[Part]bool
	Pending []string // events whose hooks Codex skips until its user trusts them
	Gone    string   // the path of a sessiond that a file names and that does not exist; "": none
}

// State reads the files of a program.
func (p Program) State() (State, error) {
	s := State{Parts: map[Part]bool{}}
	texts := map[Part][]byte{}
	for _, f := range p.Files {
		text, err := read(f.Path)
		if err == nil {
			text, _, err = decodeText(text)
		}
		if err == nil {
			var have Wanted
			texts[f.Part] = text
			var found bool
			have, found, err = f.form.find(text)
			s.Parts[f.Part] = s.Parts[f.Part] || found
			if found && filepath.IsAbs(have.Binary) && !exists(have.Binary) {
				s.Gone = have.Binary
			}
		}
		if err != nil {
			return s, fileError(f.Path, err)
		}
	}
	if p.Name == "codex" && s.Parts[Hooks] {
		var err error
		if s.Pending, err = claudeHooks(p.Name).untrusted(texts[Hooks], texts[MCP]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// String describes the state in a few words.
func (s State) String() string {
	var has []string
	for _, part := range []Part{MCP, Hooks, Skill} {
		if s.Parts[part] {
			has = append(has, string(part))
		}
	}
	switch {
	case len(has) == 0:
		return "not connected"
	case len(s.Pending) > 0:
		return "connected (" + strings.Join(has, ", ") + "), hooks pending trust"
	}
	return "connected (" + strings.Join(has, ", ") + ")"
}
