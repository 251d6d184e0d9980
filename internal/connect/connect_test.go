package connect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"

	"sessiond/internal/folders"
	"sessiond/internal/testkit"
)

const binary = "/opt/my tools/it's \"here\"/sessiond"

var all = Wanted{Binary: binary, Events: events}

// before are configurations as users have them, by the file's name.
var before = map[string][]string{
	".claude.json": {
		"", "{}", "{}\n", "{\n}\n", `{"numStartups":3}`, "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}",
		"{\n  \"mcpServers\": {\n    \"github\": {\n      \"type\": \"stdio\",\n      \"command\": \"npx\",\n" +
			"      \"args\": []\n    }\n  },\n  \"oauthAccount\": {}\n}\n",
		"{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\": \"x\"}\r\n\t}\r\n}\r\n",
	},
	"opencode.jsonc": {
		"// mine\n{\n  \"$schema\": \"https://opencode.ai/config.json\", // the schema\n  /* none yet */\n}\n",
		"{\n    \"mcp\": {\n        \"docs\": { \"type\": \"remote\", \"url\": \"https://x\" }, // keep\n" +
			"        // the last one\n    },\n}\n",
		"{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"]}} /* end */ }",
	},
	"settings.json": {
		"", "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n",
		`{
  "hooks": {
    "PreCompact": [
      {
        "hooks": [
          { "type": "command", "command": "~/bin/note", "timeout": 5 }
        ]
      }
    ],
    "SessionStart": [],
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  }
}
`,
	},
	"config.toml": {
		"", "model = \"gpt-5\"", "model = \"gpt-5\"\n",
		"# mine\nmodel = \"gpt-5\" # best\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n]\n\n" +
			"# trust\n[projects.\"/a b\"]\ntrust_level = \"trusted\"\nnote = \"\"\"\n[mcp_servers.sessiond]\n\"\"\"\n",
		"[a]\nb = 1\r\n",
	},
	"config.yaml": {
		"", "GOOSE_MODEL: x", "extensions:\n", "extensions: {}\nGOOSE_MODEL: x # y\n",
		"# mine\nextensions:\n  # first\n  developer:\n    enabled: true\n    type: builtin\n\n# model\nGOOSE_MODEL: x\n",
		"extensions:\n    memory: {enabled: true}\n",
	},
	"continue.yaml": {
		"", "name: mine\nschema: v1", "mcpServers:\n", "# mine\nmcpServers: []\nname: x # y\n",
		"mcpServers:\n- name: a\n  command: b\n# end\nname: x\n",
		"mcpServers:\n    # first\n    - name: a\n      command: b\n",
	},
	"hermes.yaml": {
		"", "model: x", "mcp_servers:\n", "mcp_servers: {}\nmodel: x # y\n",
		"# mine\nmcp_servers:\n  # first\n  time:\n    command: uvx\n    args: [\"mcp-server-time\"]\n\nmodel: x\n",
	},
	"hooks.json": {
		"", "{}",
		"{\n  \"showHookOutput\": true,\n  \"PreCompact\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]\n}\n",
	},
	"SKILL.md": {""},
}

var forms = map[string]form{
	".claude.json": jsonServer{[]string{"mcpServers", serverName}, func(b string) any {
		return command{b, []string{"mcp"}}
	}},
	"opencode.jsonc": jsonServer{[]string{"mcp", serverName}, func(b string) any {
		return map[string]any{"command": []string{b, "mcp"}}
	}},
	"settings.json": claudeHooks("claude-code"),
	"config.toml":   tomlServer{},
	"config.yaml":   gooseExtension,
	"continue.yaml": yamlServer{},
	"hermes.yaml":   hermesServer,
	"hooks.json":    bareHooks(),
	"SKILL.md":      whole{opencodeText, "opencode"},
}

// bareHooks are Droid's in a file of their own.
func bareHooks() jsonHooks {
	f := droidHooks
	f.bare = true
	return f
}

// For each kind of file: connect twice is connect once, a removal gives back the same bytes, and without the
// backup a removal leaves what others wrote.
func TestRemovalGivesBackTheSameBytes(t *testing.T) {
	for name, texts := range before {
		f := forms[name]
		for _, text := range texts {
			old := []byte(text)
			if text == "" {
				old = nil
			}
			file := configFile{forms: []form{f}, text: old}
			connected, err := file.edit(file.forms, all, false)
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, text)
				continue
			}
			added := connected.text
			file = configFile{forms: file.forms, text: added, backup: old}
			found := testkit.Must(file.found(added))(t)
			if have, ours := found[f.place()]; !ours || have.Binary != binary {
				t.Errorf("%s: found %v in\n%s", name, found, added)
			}
			if again := testkit.Must(file.edit(file.forms, all, false))(t); !bytes.Equal(again.text, added) {
				t.Errorf("%s: connected twice is\n%s", name, diff.Diff("once", added, "twice", again.text))
			}
			back := testkit.Must(file.edit(file.forms, Wanted{}, true))(t).text
			if !bytes.Equal(back, old) || (back == nil) != (old == nil) {
				t.Errorf("%s: removed is\n%s", name, diff.Diff("before", old, "after", back))
			}
			cut := testkit.Must(file.without(added, file.forms))(t)
			if found := testkit.Must(file.found(cut))(t); len(found) > 0 {
				t.Errorf("%s: still found in\n%s", name, cut)
			}
			// Every line of others is still there, but for space, braces and lists that were empty.
			dense := func(s string) string { return strings.Join(strings.Fields(s), "") }
			for line := range strings.Lines(text) {
				line = strings.TrimRight(dense(line), ",{}[]")
				if !strings.Contains(dense(string(cut)), line) && !slices.Contains([]string{`"mcpServers":`, `"SessionStart":`, "mcpServers:", "extensions:", "mcp_servers:"}, line) {
					t.Errorf("%s: %q is lost in\n%s\nfrom\n%s", name, line, cut, added)
				}
			}
			// The place of sessiond changes, and the text says only that.
			moved := all
			moved.Binary = "/usr/bin/sessiond"
			again := testkit.Must(file.edit(file.forms, moved, false))(t).text
			if have := testkit.Must(file.found(again))(t)[f.place()]; have.Binary != moved.Binary ||
				bytes.Contains(again, []byte("my tools")) {
				t.Errorf("%s: moved, but %v\n%s", name, have, again)
			}
		}
	}
}

// The texts of each kind of file are as their program's documentation shows them.
func TestTextIsAsTheProgramReadsIt(t *testing.T) {
	w := Wanted{Binary: "/usr/bin/sessiond", Events: Events(false, false, false)}
	for name, c := range map[string]struct{ before, after string }{
		"opencode.jsonc": {
			before["opencode.jsonc"][1],
			"{\n    \"mcp\": {\n        \"docs\": { \"type\": \"remote\", \"url\": \"https://x\" }, // keep\n" +
				"        // the last one\n        \"sessiond\": {\n            \"command\": [\n" +
				"                \"/usr/bin/sessiond\",\n                \"mcp\"\n            ]\n        },\n    },\n}\n",
		},
		".claude.json": {
			"{}\n",
			"{\n  \"mcpServers\": {\n    \"sessiond\": {\n      \"command\": \"/usr/bin/sessiond\",\n      \"args\": [\n" +
				"        \"mcp\"\n      ]\n    }\n  }\n}\n",
		},
		"config.toml": {"a = 1\n", "a = 1\n\n[mcp_servers.sessiond]\ncommand = \"/usr/bin/sessiond\"\nargs = [\"mcp\"]\n"},
		"config.yaml": {"extensions:\n  # first\n  developer:\n    enabled: true\n", `extensions:
  sessiond:
    enabled: true
    type: stdio
    name: sessiond
    description: Search and read earlier sessions of every agent on this host
    cmd: "/usr/bin/sessiond"
    args:
      - mcp
    timeout: 300
  # first
  developer:
    enabled: true
`},
		"settings.json": {
			"{\n  \"hooks\": {\n    \"PreCompact\": [{\"hooks\": []}]\n  }\n}\n",
			`{
  "hooks": {
    "PreCompact": [{"hooks": []},
      {
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/sessiond hook claude-code",
            "timeout": 10
          }
        ]
      }
    ],
    "SessionStart": [
      {
        "matcher": "compact",
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/sessiond hook claude-code",
            "timeout": 10
          }
        ]
      }
    ],
    "PostCompact": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/sessiond hook claude-code",
            "timeout": 10
          }
        ]
      }
    ],
    "SessionEnd": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "/usr/bin/sessiond hook claude-code",
            "timeout": 3
          }
        ]
      }
    ]
  }
}
`,
		},
	} {
		got := testkit.Must(forms[name].add([]byte(c.before), w))(t)
		if string(got) != c.after {
			t.Errorf("%s:\n%s", name, diff.Diff("want", []byte(c.after), "got", got))
		}
	}
}

// A file that does not parse is refused with the place; so is one whose form leaves no place for sessiond.
func TestBrokenFileIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{".claude.json", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3"},
		{".claude.json", "{\n  name: 1}", "line 2, column 3"},
		{".claude.json", "[]", "not an object"},
		{".claude.json", "{\n\"mcpServers\": []}", "line 2: mcpServers is not an object"},
		{".claude.json", "{\"mcpServers\": null}", "line 1: mcpServers is not an object"},
		{
			".claude.json", "{\"mcpServers\": {\n\"sessiond\": {\"url\": \"x\"}}}",
			"line 2: mcpServers.sessiond has no command",
		},
		{"settings.json", "{\"hooks\": []}", "line 1: hooks is not an object"},
		{"settings.json", "{\n\"hooks\": {\n\"PreCompact\": {}}}", "line 3: hooks.PreCompact is not a list"},
		{"config.toml", "a = 1\nb = = 2\n", "line 2, column 5"},
		{"config.toml", "mcp_servers = {a = {command = \"x\"}}\n", "inline table"},
		{"config.yaml", "a: 1\nb: [\n", "line "},
		{"config.yaml", "extensions: [a]\n", "line 1: extensions is not a list of names"},
		{"SKILL.md", "mine\n", "not sessiond's"},
	} {
		if _, err := forms[c.name].add([]byte(c.text), all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %s", c.name, c.text, err, c.want)
		}
	}
}

// A later change of someone else stays when sessiond is removed.
func TestRemovalKeepsLaterChanges(t *testing.T) {
	for name, change := range map[string][2]string{
		".claude.json":  {"\"numStartups\": 3", "\"numStartups\": 4"},
		"settings.json": {"\"model\": \"opus\"", "\"model\": \"sonnet\""},
		"config.toml": {
			"args = [\"mcp\"]\n",
			"args = [\"mcp\"]\n\n[mcp_servers.sessiond.tools.search]\napproval_mode = \"approve\"\n\n# new\n[tui]\nx = 1\n",
		},
		"config.yaml": {"GOOSE_MODEL: x", "GOOSE_MODEL: z"},
	} {
		old := map[string]string{
			".claude.json": "{\n  \"numStartups\": 3\n}\n", "settings.json": "{\n  \"model\": \"opus\"\n}\n",
			"config.toml": "a = 1\n", "config.yaml": "extensions:\n  a:\n    enabled: true\nGOOSE_MODEL: x\n",
		}[name]
		want := strings.Replace(old, change[0], change[1], 1)
		if name == "config.toml" {
			want = old + "\n# new\n[tui]\nx = 1\n"
		}
		added := testkit.Must(forms[name].add([]byte(old), all))(t)
		changed := bytes.Replace(added, []byte(change[0]), []byte(change[1]), 1)
		file := configFile{forms: []form{forms[name]}, text: changed, backup: []byte(old)}
		got := testkit.Must(file.edit(file.forms, Wanted{}, true))(t).text
		if string(got) != want {
			t.Errorf("%s:\n%s", name, diff.Diff("want", []byte(want), "got", got))
		}
	}
}

// Any object, array or comment around it: connect and a removal without the backup leave the same values, and
// connect is idempotent.
func TestAnyJSONSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", " // c\n", "/* , } */", "\t\r\n"})
		var value func(depth int) string
		value = func(depth int) string {
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			if depth > 2 || kind < 2 {
				return rapid.SampledFrom([]string{"1", "true", `"}{,\" //"`, `"x hook claude-code"`}).Draw(t, "leaf")
			}
			open, end := "{", "}"
			if kind == 3 {
				open, end = "[", "]"
			}
			out := open + space.Draw(t, "s")
			for n := rapid.IntRange(0, 3).Draw(t, "n"); n > 0; n-- {
				if kind == 2 {
					out += `"k` + string(rune('a'+n)) + `":` + space.Draw(t, "s")
				}
				out += value(depth+1) + space.Draw(t, "s")
				if n > 1 || rapid.Bool().Draw(t, "comma") {
					out += "," + space.Draw(t, "s")
				}
			}
			return out + end
		}
		text := "{" + space.Draw(t, "s")
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "mcpServers", "hooks"}), 0, 3,
			rapid.ID).Draw(t, "names") {
			v := value(0)
			if name != "a" {
				v = "{" + space.Draw(t, "s") + `"z":` + v + space.Draw(t, "s") + "}"
			}
			text += `"` + name + `":` + v + space.Draw(t, "s") + "," + space.Draw(t, "s")
		}
		text += "}"
		for _, name := range []string{".claude.json", "settings.json"} {
			f := forms[name]
			file := configFile{forms: []form{f}, text: []byte(text)}
			connected, err := file.edit(file.forms, all, false)
			if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, text)
			}
			added := connected.text
			file.text = added
			if again, err := file.edit(file.forms, all, false); err != nil || !bytes.Equal(again.text, added) {
				t.Fatalf("%s: %v, twice\n%s", name, err, again.text)
			}
			cut, err := file.without(added, file.forms)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			file.backup = []byte(text)
			if back, err := file.edit(file.forms, Wanted{}, true); err != nil || string(back.text) != text {
				t.Fatalf("%s: %v, removed\n%s", name, err, back.text)
			}
			if got, want := values(t, cut), values(t, []byte(text)); got != want {
				t.Fatalf("%s: %s, want %s\nfrom\n%s\nadded\n%s", name, got, want, text, added)
			}
		}
	})
}

// values returns the values of a JSON text with sorted names, without comments, and without mcpServers and hooks
// where they are empty.
func values(t *rapid.T, text []byte) string {
	plain, err := hujson.Standardize(text)
	all := map[string]any{}
	if err == nil {
		err = json.Unmarshal(plain, &all)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return encode(all, "", "")
}

// Codex' own hashes of these hooks, as `hooks/list` of its app-server says.
func TestUntrustedHooksOfCodex(t *testing.T) {
	f := claudeHooks("codex")
	hooks := testkit.Must(f.add(nil, Wanted{
		"/opt/x/sessiond",
		[]string{atCompact, "PreCompact", "SessionEnd", beforeEdits},
	}))(t)
	trust := func(place, hash string) string {
		return "[hooks.state.\"/home/ana/.codex/hooks.json:" + place + ":0:0\"]\ntrusted_hash = \"sha256:" + hash + "\"\n"
	}
	trusted := trust("pre_compact", "a7268ea19f652239d79a11d443068dcd7b8c81c9449c97711f70cd70f2ab3a5f") +
		trust("session_start", "9a1c095d7fdaf50f7143eb6622812ee8c30c7c91ecabb72158a1a5e619768798") +
		trust("session_end", "712fd18f0fa1a7415e3c12e8ee6eb787e083b6f2434a755ac7ee43cd053c7b88") +
		trust("pre_tool_use", "170debe3b0ed875da6fe4c50c7433f3ecec0f63d025a9589d6b26630c9a2a3b4")
	for _, c := range []struct{ name, config, want string }{
		{"all trusted", trusted, ""},
		{"none", "model = \"x\"\n", "PreCompact PreToolUse SessionEnd SessionStart"},
		{"one changed since", strings.Replace(trusted, "a7268", "b7268", 1), "PreCompact"},
	} {
		got := testkit.Must(f.untrusted(hooks, []byte(c.config)))(t)
		if said := strings.Join(slices.Sorted(slices.Values(got)), " "); said != c.want {
			t.Errorf("%s: %q, want %q", c.name, said, c.want)
		}
	}
}

// The place of sessiond changes, and a removal takes out what the program added to it; all else stays.
func TestEntryOfTheUserMoves(t *testing.T) {
	for _, c := range []struct{ name, before, moved, removed string }{
		{
			"config.toml",
			"# mine\n[mcp_servers.sessiond]\ncommand = \"sessiond\" # by hand\nargs = [\"mcp\"]\nstartup_timeout_sec = 20\n\n" +
				"[mcp_servers.sessiond.env]\ncommand = \"x\"\n\n[mcp_servers.sessiond.tools.search]\n" +
				"approval_mode = \"approve\"\n\n# theirs\n[tui]\nx = 1\n",
			"# mine\n[mcp_servers.sessiond]\ncommand = \"/usr/bin/sessiond\" # by hand\nargs = [\"mcp\"]\n" +
				"startup_timeout_sec = 20\n\n[mcp_servers.sessiond.env]\ncommand = \"x\"\n\n[mcp_servers.sessiond.tools.search]\n" +
				"approval_mode = \"approve\"\n\n# theirs\n[tui]\nx = 1\n",
			"# mine\n\n# theirs\n[tui]\nx = 1\n",
		},
		{
			"config.toml",
			"[mcp_servers.sessiond]\ncommand = \"sessiond\"\n\n[mcp_servers.sessiond.env]\nX = \"1\"\n",
			"[mcp_servers.sessiond]\ncommand = \"/usr/bin/sessiond\"\n\n[mcp_servers.sessiond.env]\nX = \"1\"\n",
			"",
		},
		{
			"config.yaml",
			"extensions:\n  sessiond: {enabled: false, type: stdio, cmd: sessiond, args: [mcp]}\n  dev:\n    enabled: true\n",
			"extensions:\n  sessiond: {enabled: false, type: stdio, cmd: \"/usr/bin/sessiond\", args: [mcp]}\n  dev:\n" +
				"    enabled: true\n",
			"extensions:\n  dev:\n    enabled: true\n",
		},
		{
			"config.yaml",
			"extensions:\n  sessiond:\n    cmd: 'sessiond'\n    timeout: 5\n  dev: {}\n",
			"extensions:\n  sessiond:\n    cmd: \"/usr/bin/sessiond\"\n    timeout: 5\n  dev: {}\n",
			"extensions:\n  dev: {}\n",
		},
	} {
		f := forms[c.name]
		moved := testkit.Must(f.add([]byte(c.before), Wanted{Binary: "/usr/bin/sessiond"}))(t)
		if string(moved) != c.moved {
			t.Errorf("%s:\n%s", c.name, diff.Diff("want", []byte(c.moved), "got", moved))
		}
		if got := testkit.Must(f.cut(moved))(t); string(got) != c.removed {
			t.Errorf("%s removed:\n%s", c.name, diff.Diff("want", []byte(c.removed), "got", got))
		}
	}
}

func TestQuotedWordIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`/[a-z '"\\$\n]*`).Draw(t, "path")
		if back := unquoteShell(QuoteShell(s)); back != s {
			t.Fatalf("%q became %q", s, back)
		}
	})
}

// home makes a home folder with files, and its host.
func home(t *testing.T, files map[string]string) (string, Host) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Check(t, os.WriteFile(path, []byte(text), 0o640))
	}
	return dir, Host{Getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }}
}

func program(t *testing.T, h Host, name string) Program {
	t.Helper()
	for _, p := range h.Programs() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no program %s", name)
	return Program{}
}

// Each program's folder is byte for byte what it was, after connect and a removal.
func TestEveryProgramIsAsBefore(t *testing.T) {
	files := map[string]string{
		".claude.json": before[".claude.json"][6], ".claude/settings.json": before["settings.json"][2],
		".codex/config.toml":              before["config.toml"][3],
		".config/opencode/opencode.jsonc": before["opencode.jsonc"][1], ".pi/agent/settings.json": "{}",
		".config/goose/config.yaml": before["config.yaml"][4],
		".gemini/settings.json":     "{\n  // dark\n  \"theme\": \"x\"\n}\n", ".cursor/mcp.json": "{\"mcpServers\": {}}",
		".openclaw/openclaw.json": "{\n  \"gateway\": {\"port\": 1},\n}\n", ".qwen/settings.json": "{}",
		".config/kilo/kilo.json": "{}", ".copilot/mcp-config.json": "{}", ".kimi-code/mcp.json": "{}",
		".config/zed/settings.json": "{}",
		".factory/mcp.json":         "{}", ".config/crush/crush.json": "{}", ".hermes/config.yaml": "model: x\n",
		".config/devin/config.json": "{\"version\": 1}", ".gemini/config/mcp_config.json": "{}",
		".cline/data/settings/cline_mcp_settings.json": "{}", ".continue/config.yaml": "", ".config/Code/User/mcp.json": "{}",
	}
	dir, host := home(t, files)
	was := tree(t, dir)
	plan := func(remove bool) (changes []Change) {
		planner := host.Planner()
		for _, p := range host.Programs() {
			if !host.Found(p) {
				t.Errorf("%s is not found", p.Name)
			}
			changes = append(changes, testkit.Must(planner.Plan(p, all, remove))(t)...)
		}
		return changes
	}
	if n := len(plan(true)); n > 0 {
		t.Errorf("%d changes remove what is not there", n)
	}
	for _, c := range plan(false) {
		testkit.Check(t, c.Write())
	}
	for _, p := range host.Programs() {
		state := testkit.Must(p.State())(t)
		if slices.ContainsFunc(p.Files, func(f File) bool { return !state.Parts[f.Part] }) ||
			strings.Contains(state.String(), "not connected") {
			t.Errorf("%s is %s", p.Name, state)
		}
		if want := p.Name == "codex"; want != strings.HasSuffix(state.String(), "hooks pending trust") {
			t.Errorf("%s is %s", p.Name, state)
		}
	}
	if n := len(plan(false)); n > 0 {
		t.Errorf("a second connect has %d changes", n)
	}
	for name, text := range files {
		if name == ".pi/agent/settings.json" { // which connect leaves as it is
			continue
		}
		if kept := testkit.Must(os.ReadFile(filepath.Join(dir, name+BackupSuffix)))(t); string(kept) != text {
			t.Errorf("%s: the backup differs", name)
		}
	}
	for _, c := range plan(true) {
		testkit.Check(t, c.Write())
	}
	testkit.Equal(t, was, tree(t, dir))
}

// tree describes what a folder has: texts and modes, links, folders.
func tree(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	testkit.Check(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		what := e.Type().String()
		switch {
		case e.Type()&os.ModeSymlink != 0:
			what = "-> " + testkit.Must(os.Readlink(path))(t)
		case e.Type().IsRegular():
			what = testkit.Must(e.Info())(t).Mode().String() + "\n" + string(testkit.Must(os.ReadFile(path))(t))
		}
		all[testkit.Must(filepath.Rel(dir, path))(t)] = what
		return nil
	}))
	return all
}

// connectAndRemove runs steps as `sessiond connect` does: PROGRAM connects, -PROGRAM removes, PROGRAM+EVENT adds a
// hook, and "all" is every program that is here. BINARY: changes the path of sessiond.
func connectAndRemove(t *testing.T, host Host, steps string) (failed error) {
	t.Helper()
	w := Wanted{Binary: binary}
	for step := range strings.FieldsSeq(steps) {
		if moved, is := strings.CutSuffix(step, ":"); is {
			w.Binary = moved
			continue
		}
		name, remove := strings.CutPrefix(step, "-")
		name, event, more := strings.Cut(name, "+")
		if w.Events = Events(false, false, false); more {
			w.Events = append(w.Events, event)
		}
		planner := host.Planner()
		var changes []Change
		for _, p := range host.Programs() {
			if p.Name != name && (name != "all" || !host.Found(p)) {
				continue
			}
			some, err := planner.Plan(p, w, remove)
			failed = errors.Join(failed, err)
			changes = append(changes, some...)
		}
		for _, c := range changes {
			failed = errors.Join(failed, c.Write())
		}
	}
	return failed
}

// Whatever files programs have and whatever is connected when: the removal gives back the same folder.
func TestRemovalGivesBackTheSameFolder(t *testing.T) {
	const once, twice = "all -all", "all+" + forPrompts + " /opt/new/sessiond: all+" + atStart + " all -all"
	for _, c := range []struct {
		name  string
		steps string
		files map[string]string
		links map[string]string
	}{
		{"nothing but the folders", once, map[string]string{".claude/x": "", ".gemini/x": "", ".codex/x": ""}, nil},
		{"flags and places at different times", twice, map[string]string{
			".claude/settings.json": "{}", ".claude.json": "", ".gemini/settings.json": "{\"a\": 1}",
			".codex/config.toml":  "a = 1",
			".qwen/settings.json": "\n\n", ".copilot/mcp-config.json": "{}\n",
		}, nil},
		{"comments and trailing commas", twice, map[string]string{
			".config/opencode/opencode.jsonc": "// mine\n{ /* none */ }\n", ".config/kilo/kilo.json": "{\"mcp\": {\"a\": {},},}",
			".config/zed/settings.json":     "// Zed\n{\n  \"theme\": \"x\", // dark\n\n  // end\n}\n",
			".config/Code/User/mcp.json":    "{\n\t\"servers\": {\n\t\t// none\n\t},\n\t\"inputs\": [],\n}",
			".gemini/settings.json":         "{\n  \"hooks\": {\n    // none\n    \"BeforeAgent\": [],\n  },\n}\n",
			".config/goose/config.yaml":     "# mine\nextensions: # none\n",
			".cline/data/settings/x":        "",
			".codex/config.toml":            "# mine\n[mcp_servers] # none\n",
			".openclaw/openclaw.json":       "{\"agents\": {},}",
			".continue/config.yaml":         "name: mine\n",
			".kimi-code/config.toml":        "",
			".cursor/mcp.json":              "{\"mcpServers\":{}}",
			".pi/agent/mcp.json":            "{\"mcpServers\":{\"x\":{\"command\":\"y\"}}}",
			".claude/.config.json":          "{\"mcpServers\":{}}",
			".config/opencode/plugins/a.js": "export default {}",
		}, nil},
		{"byte order marks and CRLF", twice, map[string]string{
			".claude/settings.json": "\ufeff{\r\n  \"model\": \"opus\"\r\n}\r\n", ".claude.json": "\ufeff{}",
			".codex/config.toml": "\ufeffmodel = \"x\"\r\n\r\n[a]\r\nb = 1\r\n", ".codex/hooks.json": "{\r\n}",
			".config/goose/config.yaml": "\ufeffa: 1\r\nextensions:\r\n  b:\r\n    enabled: true\r\n",
			".gemini/settings.json":     "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}",
		}, nil},
		{"mixed line ends", twice, map[string]string{
			".claude/settings.json": "{\r\n  \"model\": \"opus\"\n}\r\n", ".codex/config.toml": "a = 1\r\nb = 2\n",
			".config/goose/config.yaml": "a: 1\r\nextensions:\n  b:\r\n    enabled: true\n",
		}, nil},
		{"settings of a newer version", twice, map[string]string{
			".gemini/settings.json": `{"$version": 9, "hooks": {"NewEvent": [{"new": true}], "SessionStart": [{"match": 1}]}, "mcpServers": {"a": {"new": 1}}}`,
			".claude/settings.json": `{"hooks": {"PreCompact": [{"hooks": [{"type": "agent", "prompt": "x"}]}, {"new": []}]}}`,
			".codex/config.toml":    "version = 9\n[mcp_servers.a]\nnew = { b = [1, 2] }\n[[new]]\nc = 1\n",
		}, nil},
		{"links to files and folders", twice, map[string]string{
			"dots/claude.json": "{}", "dots/claude/settings.json": "{}", "dots/skills/mine/SKILL.md": "mine", ".codex/x": "",
			"dots/config.toml": "a = 1\n",
		}, map[string]string{
			".claude.json": "dots/claude.json", ".claude": "dots/claude", "dots/claude/skills": "../skills",
			".codex/config.toml": "../dots/config.toml", ".codex/skills": "../dots/skills",
		}},
		{"one file of two programs", twice, map[string]string{
			".gemini/settings.json": "{\"a\": 1}", ".qwen/x": "",
		}, map[string]string{".qwen/settings.json": "../.gemini/settings.json", ".qwen/skills": "../.gemini"}},
		{"one by one in one file", "qwen-code gemini-cli -gemini-cli gemini-cli -qwen-code -gemini-cli", map[string]string{
			".gemini/settings.json": "{\"a\": 1}\n", ".qwen/x": "",
		}, map[string]string{".qwen/settings.json": "../.gemini/settings.json"}},
		{"an entry that was there before", once, map[string]string{
			".claude.json": `{"mcpServers": {"sessiond": {"command": "sessiond", "args": ["mcp"], "env": {"X": "1"}}}}`,
			".claude/x":    "",
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, host := home(t, c.files)
			for link, to := range c.links {
				testkit.Check(t, os.Symlink(to, filepath.Join(dir, link)))
			}
			was := tree(t, dir)
			if err := connectAndRemove(t, host, strings.Split(c.steps, " -")[0]); err != nil {
				t.Fatal(err)
			}
			if now := tree(t, dir); maps.Equal(was, now) {
				t.Error("nothing was connected")
			}
			if err := connectAndRemove(t, host, c.steps); err != nil {
				t.Fatal(err)
			}
			testkit.Equal(t, was, tree(t, dir))
		})
	}
}

// A folder that was empty before connect is there after a removal, and nothing else.
func TestRemovalKeepsFoldersThatWereEmpty(t *testing.T) {
	for _, empty := range []string{".claude", ".claude/skills", ".codex", ".copilot/hooks", ".config/zed", ".gemini"} {
		dir, host := home(t, nil)
		testkit.Check(t, os.MkdirAll(filepath.Join(dir, empty), 0o755))
		was := tree(t, dir)
		testkit.Check(t, connectAndRemove(t, host, "all all"))
		if maps.Equal(was, tree(t, dir)) {
			t.Errorf("%s: nothing was connected", empty)
		}
		testkit.Check(t, connectAndRemove(t, host, "-all"))
		testkit.Equal(t, was, tree(t, dir))
	}
}

// Every file that connect edits, of every program, in each state in which people and programs leave them. A removal
// gives back the same bytes; what cannot be edited is refused, and no file of the program changes.
func TestEveryConfigurationInEachState(t *testing.T) {
	base := map[string]string{
		".json": "{\n  \"theme\": \"x\"\n}\n", ".toml": "theme = \"x\"\n\n[new]\na = 1\n",
		".yaml": "theme: x\nnew:\n  a: 1\n",
	}
	commented := map[string]string{
		".json": "// mine\n{\n  \"theme\": \"x\", // dark\n  /* end */\n}\n", ".toml": "# mine\n" + base[".toml"] + "# end\n",
		".yaml": "# mine\n" + base[".yaml"] + "# end\n",
	}
	same := func(texts map[string]string, change func(string) string) map[string]string {
		all := map[string]string{}
		for ending, text := range texts {
			all[ending] = change(text)
		}
		return all
	}
	link := func(t *testing.T, file string) {
		testkit.Check(t, os.Rename(file, file+".real"))
		testkit.Check(t, os.Symlink(filepath.Base(file)+".real", file))
	}
	for _, state := range []struct {
		name    string
		texts   map[string]string // by ending of the file's name
		prepare func(t *testing.T, file string)
		refused string // "": it is edited
	}{
		{"plain", base, nil, ""},
		{"empty", same(base, func(string) string { return "" }), nil, ""},
		{"comments and trailing commas", commented, nil, ""},
		{"a byte order mark", same(commented, func(s string) string { return "\ufeff" + s }), nil, ""},
		{"CRLF", same(commented, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), nil, ""},
		{"no last line end", same(base, func(s string) string { return strings.TrimSuffix(s, "\n") }), nil, ""},
		{"of a newer version", map[string]string{
			".json": "{\"$version\": 99, \"new\": {\"a\": [1, {\"b\": null}]}}",
			".toml": "version = 99\n[[new]]\na = { b = [1] }\n",
			".yaml": "version: 99\nnew: &a {b: [1]}\nother: *a\n",
		}, nil, ""},
		{"updated while connected", same(commented, func(s string) string {
			return strings.Replace(s, ": x", `: "x"`, 1)
		}), nil, ""},
		{"a link", base, link, ""},
		{"a link to nothing", base, func(t *testing.T, file string) {
			link(t, file)
			testkit.Check(t, os.Remove(file+".real"))
		}, "symbolic link to nothing"},
		{"read-only", base, func(t *testing.T, file string) { testkit.Check(t, os.Chmod(file, 0o400)) }, "read-only"},
		{"half written", map[string]string{
			".json": "{\n  \"theme\": \"x\",\n  \"new\": {\"a\"", ".toml": "theme = \"x\"\n[new", ".yaml": "theme: x\nnew: [a\n",
		}, nil, "line "},
		{"UTF-16", same(base, func(s string) string { return "\xff\xfe" + s }), nil, "UTF-16"},
		{"a folder", base, func(t *testing.T, file string) {
			testkit.Check(t, os.Remove(file))
			testkit.Check(t, os.Mkdir(file, 0o700))
		}, "directory"},
	} {
		_, some := home(t, nil)
		for _, known := range some.Programs() {
			for i, path := range known.paths() {
				t.Run(state.name+"/"+known.Name+"/"+filepath.Base(path), func(t *testing.T) {
					text, edited := state.texts[strings.Replace(filepath.Ext(path), "jsonc", "json", 1)]
					if !edited {
						t.Skip("connect writes it whole")
					}
					dir, host := home(t, nil)
					p := program(t, host, known.Name)
					file := p.paths()[i]
					testkit.Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
					testkit.Check(t, os.WriteFile(file, []byte(text), 0o600))
					if state.prepare != nil {
						state.prepare(t, file)
					}
					was := tree(t, dir)
					err := connectAndRemove(t, host, known.Name)
					if state.refused != "" {
						if err == nil || !strings.Contains(err.Error(), state.refused) || !strings.Contains(err.Error(), file) {
							t.Errorf("want %q of %s, got %v", state.refused, file, err)
						}
						if state.refused != "read-only" { // which is only known when it is written
							testkit.Equal(t, was, tree(t, dir))
						}
						return
					}
					testkit.Check(t, err)
					now := testkit.Must(p.State())(t)
					if slices.ContainsFunc(p.Files, func(f File) bool { return !now.Parts[f.Part] }) {
						t.Errorf("it is %s", now)
					}
					if name := testkit.Must(filepath.Rel(dir, file))(t); strings.HasPrefix(state.name, "updated") {
						dark := func(s string) string { return strings.Replace(s, `"x"`, `"dark"`, 1) }
						now := string(testkit.Must(os.ReadFile(file))(t))
						testkit.Check(t, os.WriteFile(file, []byte(dark(now)), 0o600))
						was[name] = dark(was[name])
					}
					testkit.Check(t, connectAndRemove(t, host, "-"+known.Name))
					testkit.Equal(t, was, tree(t, dir))
				})
			}
		}
	}
}

// Droid's hooks are added where its user has some: a new hooks.json would switch those of settings.json off. Where
// Droid moved them since, a removal takes sessiond's out of both files.
func TestHooksOfDroidAreWhereTheOthersAre(t *testing.T) {
	const user = `{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "say bye"}]}]}}`
	for name, files := range map[string]map[string]string{
		"hooks.json":    {".factory/settings.json": `{"model": "x"}`},
		"settings.json": {".factory/settings.json": user},
	} {
		dir, host := home(t, files)
		testkit.Check(t, connectAndRemove(t, host, "droid"))
		for _, file := range []string{"hooks.json", "settings.json"} {
			text, _ := os.ReadFile(filepath.Join(dir, ".factory", file)) // one of them may not be there
			if got := strings.Contains(string(text), "hook droid"); got != (file == name) {
				t.Errorf("%s for %s: %s", file, name, text)
			}
		}
		if name == "settings.json" { // Droid saves all hooks in the other file
			text := testkit.Must(os.ReadFile(filepath.Join(dir, ".factory/settings.json")))(t)
			inner := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(string(text), `{"hooks":`)), "}")
			testkit.Check(t, os.WriteFile(filepath.Join(dir, ".factory/hooks.json"), []byte(inner), 0o600))
		}
		testkit.Check(t, connectAndRemove(t, host, "-droid"))
		for _, file := range []string{"hooks.json", "settings.json"} {
			if text, _ := os.ReadFile(filepath.Join(dir, ".factory", file)); strings.Contains(string(text), "sessiond") {
				t.Errorf("%s is left: %s", file, text)
			}
		}
	}
}

// A file that cannot be read as it should stops its program, and changes nothing of it; the others are connected.
func TestBrokenFileStopsItsProgramAlone(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"half written", ".gemini/settings.json", "{\n  \"mcpServers\": {\n    \"a", "line 3"},
		{"UTF-16", ".gemini/settings.json", "\xff\xfe{\x00}\x00", "UTF-16; save it as UTF-8"},
		{"another kind", ".gemini/settings.json", `{"mcpServers": []}`, "line 1: mcpServers is not an object"},
		{"hooks of another kind", ".gemini/settings.json", `{"hooks": {"BeforeAgent": {}}}`, "hooks.BeforeAgent is not a list"},
		{"a plug-in of another", ".config/kilo/plugin/sessiond.js", "mine", "not sessiond's"},
		{"half a table", ".codex/config.toml", "[mcp_servers.a\n", "line 1"},
		{"half a list", ".config/goose/config.yaml", "extensions: {a: [", "line 1"},
		{"a name twice", ".gemini/settings.json", `{"mcpServers": {}, "mcpServers": {"a": {}}}`, "mcpServers stands twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, host := home(t, map[string]string{c.file: c.text, ".cursor/x": ""})
			was := tree(t, dir)
			err := connectAndRemove(t, host, "all+"+forPrompts)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if !exists(filepath.Join(dir, ".cursor/mcp.json")) {
				t.Error("Cursor is not connected")
			}
			_ = connectAndRemove(t, host, "-all")
			testkit.Equal(t, was, tree(t, dir))
		})
	}
}

func TestStateNamesAMissingSessiond(t *testing.T) {
	dir, host := home(t, map[string]string{".claude/settings.json": "{}", "bin/sessiond": ""})
	p, at := program(t, host, "claude-code"), filepath.Join(dir, "bin/sessiond")
	for _, c := range testkit.Must(host.Planner().Plan(p, Wanted{Binary: at, Events: events}, false))(t) {
		testkit.Check(t, c.Write())
	}
	if state := testkit.Must(p.State())(t); state.Gone != "" {
		t.Errorf("%s is there, but missed", state.Gone)
	}
	testkit.Check(t, os.Remove(at))
	if state := testkit.Must(p.State())(t); state.Gone != at {
		t.Errorf("the missing sessiond is %q", state.Gone)
	}
}

func TestBackupIsKeptWhileConnected(t *testing.T) {
	dir, host := home(t, map[string]string{".claude/settings.json": "{}"})
	p := program(t, host, "claude-code")
	for _, w := range []Wanted{{binary, Events(false, false, false)}, {binary, events}, {"/elsewhere/sessiond", nil}} {
		for _, c := range testkit.Must(host.Planner().Plan(p, w, false))(t) {
			testkit.Check(t, c.Write())
		}
	}
	if got := testkit.Must(os.ReadFile(filepath.Join(dir, ".claude/settings.json"+BackupSuffix)))(t); string(got) != "{}" {
		t.Errorf("the backup is %s", got)
	}
	text := testkit.Must(os.ReadFile(filepath.Join(dir, ".claude/settings.json")))(t)
	have, _, _ := claudeHooks("claude-code").find(text)
	if len(have.Events) != len(events) || have.Binary != "/elsewhere/sessiond" {
		t.Errorf("a later connect without the flags took hooks away: %v", have)
	}
}

// A symbolic link stays, its target keeps its mode; read-only files, changed files and links to nothing are refused.
func TestWriteLeavesTheRest(t *testing.T) {
	dir, host := home(t, map[string]string{"dots/claude.json": "{}", ".claude/settings.json": "{}"})
	testkit.Check(t, os.Symlink("dots/claude.json", filepath.Join(dir, ".claude.json")))
	p := program(t, host, "claude-code")
	changes := testkit.Must(host.Planner().Plan(p, all, false))(t)
	testkit.Check(t, changes[0].Write())
	link := testkit.Must(os.Lstat(filepath.Join(dir, ".claude.json")))(t)
	target := testkit.Must(os.Stat(filepath.Join(dir, "dots/claude.json")))(t)
	if link.Mode()&os.ModeSymlink == 0 || target.Mode().Perm() != 0o640 || target.Size() < 10 {
		t.Errorf("the link is %v, its target %v with %d bytes", link.Mode(), target.Mode(), target.Size())
	}
	settings := filepath.Join(dir, ".claude/settings.json")
	testkit.Check(t, os.Chmod(settings, 0o440))
	if err := changes[1].Write(); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only file: %v", err)
	}
	testkit.Check(t, os.Chmod(settings, 0o640))
	testkit.Check(t, os.WriteFile(settings, []byte(`{"new": 1}`), 0o640))
	if err := changes[1].Write(); err == nil || !strings.Contains(err.Error(), "changed it meanwhile") {
		t.Errorf("a changed file: %v", err)
	}
	if got := testkit.Must(os.ReadFile(settings))(t); string(got) != `{"new": 1}` || exists(settings+BackupSuffix) {
		t.Errorf("written over: %s", got)
	}
	testkit.Check(t, os.Remove(settings))
	testkit.Check(t, os.Symlink("nothing", settings))
	if _, err := host.Planner().Plan(p, all, false); err == nil || !strings.Contains(err.Error(), "link to nothing") {
		t.Errorf("a link to nothing: %v", err)
	}
	unlock := testkit.Must(host.Lock())(t)
	if _, err := host.Lock(); err == nil {
		t.Error("two connects at once")
	}
	testkit.Check(t, unlock())
}

func TestEnvironmentMovesFolders(t *testing.T) {
	env := map[string]string{
		"HOME": "/home/ana", "XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/cc", "CODEX_HOME": "~/co",
		"PI_CODING_AGENT_DIR": "/pi", "GOOSE_PATH_ROOT": "/g",
		"GEMINI_CLI_HOME": "/ge", "OPENCLAW_CONFIG_PATH": "/oc/my.json", "COPILOT_HOME": "/cp",
		"CLINE_MCP_SETTINGS_PATH": "/cl/cline_mcp_settings.json", "FACTORY_HOME_OVERRIDE": "/f",
		"CRUSH_GLOBAL_CONFIG": "/cr", "HERMES_HOME": "/he",
	}
	want := map[string]string{
		"claude-code": "/cc/.claude.json", "codex": "/home/ana/co/config.toml", "opencode": "/x/opencode/opencode.json",
		"pi": "/pi/mcp.json", "goose": "/g/config/config.yaml",
		"kilo": "/x/kilo/kilo.json", "qwen-code": "/home/ana/.qwen/settings.json", "copilot-cli": "/cp/mcp-config.json",
		"kimi-code": "/home/ana/.kimi-code/mcp.json", "cline": "/cl/cline_mcp_settings.json",
		"continue": "/home/ana/.continue/config.yaml", "vscode-copilot": "/x/Code/User/mcp.json",
		"zed": "/x/zed/settings.json", "droid": "/f/.factory/mcp.json", "crush": "/cr/crush.json",
		"hermes": "/he/config.yaml", "devin": "/x/devin/config.json",
		"antigravity": "/home/ana/.gemini/config/mcp_config.json",
		"gemini-cli":  "/ge/.gemini/settings.json", "cursor": "/home/ana/.cursor/mcp.json", "openclaw": "/oc/my.json",
	}
	for _, p := range (Host{Getenv: func(name string) string { return env[name] }}).Programs() {
		if got := p.Files[0].Path; got != want[p.Name] {
			t.Errorf("%s: %s, want %s", p.Name, got, want[p.Name])
		}
	}
}

// A program's files are where it looks for them on each system, and the program itself is found as a shell finds it.
func TestFilesOfEverySystem(t *testing.T) {
	for system, c := range map[string]struct {
		env                        map[string]string
		home, goose, hermes, devin string
	}{
		"linux":  {map[string]string{"HOME": "/home/ana"}, "/home/ana", "/home/ana/.config/goose/config.yaml", "", ""},
		"darwin": {map[string]string{"HOME": "/Users/ana"}, "/Users/ana", "/Users/ana/.config/goose/config.yaml", "", ""},
		"windows": {
			map[string]string{"USERPROFILE": `C:\Users\ana`, "APPDATA": `C:\Users\ana\AppData\Roaming`},
			"C:/Users/ana",
			"C:/Users/ana/AppData/Roaming/Block/goose/config/config.yaml",
			"C:/Users/ana/AppData/Local/hermes/config.yaml",
			"C:/Users/ana/AppData/Roaming/devin/config.json",
		},
	} {
		want := map[string]string{
			"claude-code": c.home + "/.claude.json", "codex": c.home + "/.codex/config.toml",
			"opencode": c.home + "/.config/opencode/opencode.json", "pi": c.home + "/.pi/agent/mcp.json", "goose": c.goose,
			"gemini-cli": c.home + "/.gemini/settings.json", "cursor": c.home + "/.cursor/mcp.json",
			"openclaw": c.home + "/.openclaw/openclaw.json", "droid": c.home + "/.factory/mcp.json",
			"crush": c.home + "/.config/crush/crush.json", "antigravity": c.home + "/.gemini/config/mcp_config.json",
			"hermes": cmp.Or(c.hermes, c.home+"/.hermes/config.yaml"),
			"devin":  cmp.Or(c.devin, c.home+"/.config/devin/config.json"),
		}
		h := Host{System: system, Getenv: func(name string) string { return c.env[name] }}
		for _, p := range h.Programs() {
			if path, known := want[p.Name]; known && folders.Clean(p.Files[0].Path) != path {
				t.Errorf("%s on %s: %s, want %s", p.Name, system, p.Files[0].Path, path)
			}
		}
	}
	dir := t.TempDir()
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "codex.cmd"), nil, 0o600))
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "claude"), nil, 0o700))
	for _, c := range []struct{ system, name, want string }{
		{"windows", "codex", filepath.Join(dir, "codex.cmd")},
		{"windows", "claude", ""},
		{"linux", "codex", ""},
		{"linux", "codex.cmd", ""},
		{"linux", "claude", filepath.Join(dir, "claude")},
	} {
		path := map[string]string{"windows": `relative;` + dir, "linux": "relative:" + dir}[c.system]
		h := Host{System: c.system, Getenv: func(name string) string { return map[string]string{"PATH": path}[name] }}
		if got := h.LookPath(c.name); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.name, c.system, got, c.want)
		}
	}
}
