package connect

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	Name   string // as on sessiond's command line
	Folder string // with its configuration
	Files  []File
	binary string
}

// Part is what a file is for.
type Part string

const (
	MCP   Part = "MCP"
	Hooks Part = "hooks"
	Skill Part = "skill"
)

// File is one file of a program's configuration.
type File struct {
	Part Part
	Path string
	form form
}

// command is the common form of an MCP server.
type command struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// Programs returns the programs that sessiond knows, each with the folders that the environment gives it.
// docs/connect.md has the sources.
func (h Host) Programs() []Program {
	home := h.user().Home()
	under := func(names ...string) string { return filepath.Join(append([]string{home}, names...)...) }
	moved := func(name, usual string) string { // by an environment variable
		dir := h.Getenv(name)
		if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
			dir = under(rest)
		}
		return cmp.Or(dir, usual)
	}
	server := func(path string, names ...string) File {
		return File{MCP, path, jsonServer{append(names, serverName), func(binary string) any {
			return command{binary, []string{"mcp"}}
		}}}
	}
	skill := func(dir string) File {
		return File{Skill, filepath.Join(dir, "skills", serverName, "SKILL.md"), whole{skillText}}
	}
	config := moved("XDG_CONFIG_HOME", under(".config"))

	claude := moved("CLAUDE_CONFIG_DIR", under(".claude"))
	claudeServers := filepath.Join(moved("CLAUDE_CONFIG_DIR", home), ".claude.json")
	if old := filepath.Join(claude, ".config.json"); exists(old) { // of early versions; Claude Code prefers it
		claudeServers = old
	}
	codex := moved("CODEX_HOME", under(".codex"))
	opencode := filepath.Join(config, "opencode")
	opencodeServers := filepath.Join(opencode, "opencode.json")
	if with := opencodeServers + "c"; exists(with) {
		opencodeServers = with
	}
	opencodeEntry := func(binary string) any {
		return struct {
			Type    string   `json:"type"`
			Command []string `json:"command"`
			Enabled bool     `json:"enabled"`
		}{"local", []string{binary, "mcp"}, true}
	}
	pi := moved("PI_CODING_AGENT_DIR", under(".pi", "agent"))
	piEntry := func(binary string) any {
		return struct {
			command
			Exposure string `json:"exposure"`
		}{command{binary, []string{"mcp"}}, "direct"}
	}
	goose := filepath.Join(config, "goose")
	if h.user().IsOn("windows") {
		goose = filepath.Join(h.user().Config(), "Block", "goose", "config")
	}
	if root := h.Getenv("GOOSE_PATH_ROOT"); filepath.IsAbs(root) {
		goose = filepath.Join(root, "config")
	}
	gemini := filepath.Join(moved("GEMINI_CLI_HOME", home), ".gemini")
	cursor := under(".cursor")
	openclaw := moved("OPENCLAW_STATE_DIR", filepath.Join(moved("OPENCLAW_HOME", home), ".openclaw"))
	openclawConfig := moved("OPENCLAW_CONFIG_PATH", filepath.Join(openclaw, "openclaw.json"))
	openclawEntry := func(binary string) any { // its gateway runs anywhere: the agents work in the workspace
		return struct {
			command
			Folder string `json:"cwd,omitempty"`
		}{command{binary, []string{"mcp"}}, openclawWorkspace(openclawConfig, openclaw, home)}
	}

	return []Program{
		{Name: "claude-code", binary: "claude", Folder: claude, Files: []File{
			server(claudeServers, "mcpServers"),
			{Hooks, filepath.Join(claude, "settings.json"), jsonHooks{"claude-code"}},
			skill(claude),
		}},
		{Name: "codex", binary: "codex", Folder: codex, Files: []File{
			{MCP, filepath.Join(codex, "config.toml"), tomlServer{}},
			{Hooks, filepath.Join(codex, "hooks.json"), jsonHooks{"codex"}},
			skill(codex),
		}},
		{Name: "opencode", binary: "opencode", Folder: opencode, Files: []File{
			{MCP, opencodeServers, jsonServer{[]string{"mcp", serverName}, opencodeEntry}},
			{Hooks, filepath.Join(opencode, "plugins", "sessiond.js"), whole{opencodeText}},
			skill(opencode),
		}},
		{Name: "pi", binary: "pi", Folder: pi, Files: []File{
			{MCP, filepath.Join(pi, "mcp.json"), jsonServer{[]string{"mcpServers", serverName}, piEntry}},
			{Hooks, filepath.Join(pi, "extensions", "sessiond.ts"), whole{piText}},
			skill(pi),
		}},
		{
			Name: "goose", binary: "goose", Folder: goose,
			Files: []File{{MCP, filepath.Join(goose, "config.yaml"), yamlExtension{}}, skill(goose)},
		},
		{
			Name: "gemini-cli", binary: "gemini", Folder: gemini,
			Files: []File{server(filepath.Join(gemini, "settings.json"), "mcpServers"), skill(gemini)},
		},
		{
			Name: "cursor", binary: "cursor", Folder: cursor,
			Files: []File{server(filepath.Join(cursor, "mcp.json"), "mcpServers"), skill(cursor)},
		},
		{Name: "openclaw", binary: "openclaw", Folder: openclaw, Files: []File{
			{MCP, openclawConfig, jsonServer{[]string{"mcp", "servers", serverName}, openclawEntry}},
			skill(openclaw),
		}},
	}
}

// openclawWorkspace returns the folder in which OpenClaw's agents work, as its configuration says; "" if it is not
// there.
func openclawWorkspace(config, state, home string) string {
	folder := filepath.Join(state, "workspace")
	text, _ := os.ReadFile(config) // without one the default counts
	if root, err := parseJSON(text); err == nil {
		if set := lookup(root, "agents", "defaults", "workspace"); set != nil && set.Value.Kind() == '"' {
			folder = set.Value.(hujson.Literal).String()
		}
	}
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		folder = filepath.Join(home, rest)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() || !filepath.IsAbs(folder) {
		return ""
	}
	return folder
}

// ProgramOf returns the program of an MCP client, whose name begins with the program's.
func (h Host) ProgramOf(client string) (Program, bool) {
	for _, p := range h.Programs() {
		if strings.HasPrefix(strings.ToLower(client), p.Name) {
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
			var have Wanted
			texts[f.Part] = text
			have, s.Parts[f.Part], err = f.form.find(text)
			if s.Parts[f.Part] && filepath.IsAbs(have.Binary) && !exists(have.Binary) {
				s.Gone = have.Binary
			}
		}
		if err != nil {
			return s, fileError(f.Path, err)
		}
	}
	if p.Name == "codex" && s.Parts[Hooks] {
		var err error
		if s.Pending, err = (jsonHooks{p.Name}).untrusted(texts[Hooks], texts[MCP]); err != nil {
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
