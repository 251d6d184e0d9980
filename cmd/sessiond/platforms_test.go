package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Each program's histories are searched where it keeps them, on every system.
func TestPlacesOfEveryProgramOnEverySystem(t *testing.T) {
	t.Parallel()
	same := map[session.Source][]string{ // below the home folder
		"claude-code": {".claude"}, "codex": {".codex"}, "copilot-cli": {".copilot"}, "gemini-cli": {".gemini/tmp"},
		"opencode": {".local/share/opencode"}, "kilo": {".local/share/kilo"}, "openclaw": {".openclaw"},
		"pi": {".pi/agent"}, "omp": {".omp/agent"}, "qwen-code": {".qwen"},
		"cline":    {".cline/data/sessions", ".vscode-server/data/User/globalStorage/saoudrizwan.claude-dev/tasks"},
		"continue": {".continue/sessions"}, "cursor": {".cursor/chats", ".cursor/projects"}, "droid": {".factory/sessions"},
		"kimi-code": {".kimi-code/sessions", ".kimi/sessions"}, "windsurf": {".windsurf/transcripts"},
		"antigravity": {".gemini/antigravity-cli", ".gemini/antigravity", ".gemini/antigravity-ide"},
		"roo-code":    {".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	}
	inEditors := map[session.Source][]string{ // below the folder of an editor's data
		"cursor": {"Cursor/User/globalStorage", "Cursor/User/workspaceStorage"}, "cline": {"Code/User/globalStorage"},
		"roo-code": {"VSCodium/User/globalStorage"}, "vscode-copilot": {"Code/User", "Code - Insiders/User"},
	}
	for _, c := range []struct {
		system  string
		environ []string
		home    string
		own     map[session.Source]string // those that differ
		editors string                    // the folder of their data
	}{
		{
			"linux",
			[]string{"HOME=/home/ana"},
			"/home/ana",
			map[session.Source]string{
				"goose": "/home/ana/.local/share/goose/sessions", "hermes": "/home/ana/.hermes",
				"devin": "/home/ana/.local/share/devin/cli", "zed": "/home/ana/.local/share/zed/threads",
			},
			"/home/ana/.config",
		},
		{
			"darwin",
			[]string{"HOME=/Users/ana"},
			"/Users/ana",
			map[session.Source]string{
				"goose":  "/Users/ana/Library/Application Support/Block/goose/data/sessions",
				"hermes": "/Users/ana/.hermes", "devin": "/Users/ana/.local/share/devin/cli",
				"zed": "/Users/ana/Library/Application Support/Zed/threads",
			},
			"/Users/ana/Library/Application Support",
		},
		{
			"windows",
			[]string{`USERPROFILE=C:\Users\ana`, `APPDATA=C:\Users\ana\AppData\Roaming`},
			`C:/Users/ana`,
			map[session.Source]string{
				"goose":  "C:/Users/ana/AppData/Roaming/Block/goose/data/sessions",
				"hermes": "C:/Users/ana/AppData/Local/hermes", "devin": "C:/Users/ana/AppData/Roaming/devin/cli",
				"zed": "C:/Users/ana/AppData/Local/Zed/threads",
			},
			"C:/Users/ana/AppData/Roaming",
		},
	} {
		a := &app{env: &env{system: c.system, environ: withHome(c.system, c.environ), now: time.Now}}
		for _, source := range a.sources() {
			var places []string
			for _, place := range source.Places() {
				places = append(places, folders.Clean(place))
			}
			var want []string
			for _, below := range same[source.Name()] {
				want = append(want, c.home+"/"+below)
			}
			if own := c.own[source.Name()]; own != "" {
				want = []string{own}
			}
			for _, below := range inEditors[source.Name()] {
				want = append(want, c.editors+"/"+below)
			}
			for _, folder := range want {
				if !slices.ContainsFunc(places, func(place string) bool { return folders.Within(place, folder) }) {
					t.Errorf("%s on %s: nothing below %s is searched, but %q", source.Name(), c.system, folder, places)
				}
			}
		}
	}
}

func TestOwnPlacesOnEverySystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system                  string
		environ                 []string
		db, file, socket, token string
	}{
		{
			"linux",
			[]string{"HOME=/home/ana"},
			"/home/ana/.local/share/sessiond/sessions.db", "/home/ana/.config/sessiond/config.yaml", "",
			"/home/ana/.local/share/sessiond/token",
		},
		{
			"darwin",
			[]string{"HOME=/Users/ana"},
			"/Users/ana/Library/Application Support/sessiond/sessions.db",
			"/Users/ana/Library/Application Support/sessiond/config.yaml",
			"/Users/ana/Library/Application Support/sessiond/sessiond.sock",
			"/Users/ana/Library/Application Support/sessiond/token",
		},
		{
			"windows",
			[]string{`USERPROFILE=C:\Users\ana`},
			"C:/Users/ana/AppData/Local/sessiond/sessions.db", "C:/Users/ana/AppData/Roaming/sessiond/config.yaml", "off",
			"C:/Users/ana/AppData/Local/sessiond/token",
		},
	} {
		a := &app{env: &env{system: c.system, environ: withHome(c.system, c.environ), now: time.Now}}
		cfg := testkit.Must(a.load(nil))(t)
		file, _ := cfg.File()
		for what, got := range map[string][2]string{
			"database": {cfg.DB, c.db}, "configuration": {file, c.file}, "token": {cfg.TokenFile, c.token},
			"socket": {cfg.Socket, c.socket},
		} {
			if got[1] != "" && folders.Clean(got[0]) != got[1] {
				t.Errorf("%s: the %s is %q, want %q", c.system, what, got[0], got[1])
			}
		}
		place := nearestListener(cfg)
		if c.system == "windows" && place.URL != "http://127.0.0.1:7433" {
			t.Errorf("commands ask the daemon on %+v", place)
		}
	}
}

// Without a home folder a command says what to do, and with a named database it needs none.
func TestNoHome(t *testing.T) {
	t.Parallel()
	try := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), args, &env{
			in: strings.NewReader(""), out: &out, err: &out, now: time.Now, dir: t.TempDir(), system: "linux",
			program: "/usr/bin/sessiond",
		})
		return code, out.String()
	}
	for _, args := range [][]string{
		{"ls"}, {"serve"}, {"import", "--yes"}, {"service", "install"}, {"service", "status"}, {"token"},
	} {
		code, said := try(args...)
		if code == exitDone || !strings.Contains(said, "HOME is not set") || strings.Count(said, "\n") > 2 {
			t.Errorf("%q without a home ends with %d and says %s", args, code, said)
		}
	}
	db := filepath.Join(t.TempDir(), "sessions.db")
	code, said := try("append", "--new", "--title", "A plan", "user", "Where do we begin?", "--db", db)
	if code != exitDone {
		t.Errorf("append --db ends with %d: %s", code, said)
	}
	if code, said := try("ls", "--db", db); code != exitDone || !strings.Contains(said, "A plan") {
		t.Errorf("ls --db ends with %d: %s", code, said)
	}
}
