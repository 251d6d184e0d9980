package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/folders"
	"sessiond/internal/testkit"
)

func TestCachesOfToolsAreKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ system, program, want string }{
		{"linux", "/home/ana/.npm/_npx/5ac2/node_modules/@sessiond/linux-x64/bin/sessiond", "npx"},
		{"linux", "/tmp/go-build4711/b001/exe/sessiond", "go run"},
		{"linux", "/home/ana/.cache/go-build/aa/sessiond", "go run"},
		{"linux", "/home/ana/.cache/pnpm/dlx/x/node_modules/@sessiond/linux-x64/bin/sessiond", "pnpm dlx"},
		{"linux", "/tmp/bunx-0-sessiond@latest/node_modules/@sessiond/linux-x64/bin/sessiond", "bunx"},
		{"linux", "/home/ana/.cache/anything/sessiond", "a cache"},
		{"darwin", "/home/ana/Library/Caches/anything/sessiond", "a cache"},
		{"windows", `C:\Users\ana\AppData\Local\npm-cache\_npx\5ac2\node_modules\@sessiond\win32-x64\bin\sessiond.exe`, "npx"},
		{"linux", "/usr/bin/sessiond", ""},
		{"linux", "/home/ana/.local/bin/sessiond", ""},
		{"linux", "/home/ana/go/bin/sessiond", ""},
		{"linux", "/usr/lib/node_modules/sessiond/node_modules/@sessiond/linux-x64/bin/sessiond", ""},
		{"linux", "/home/ana/.cachebox/sessiond", ""},
	} {
		env := map[string]string{"HOME": "/home/ana", "USERPROFILE": `C:\Users\ana`}
		if c.system == "windows" {
			delete(env, "HOME")
		}
		user := folders.User{System: c.system, Getenv: func(name string) string { return env[name] }}
		if got := cacheOf(user, c.program); got != c.want {
			t.Errorf("%s is in the cache of %q, want %q", c.program, got, c.want)
		}
	}
}

// A program that was started by npx is connected by a copy of it: the hook still answers when the cache is gone.
func TestConnectOutlivesTheCacheOfNpx(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	awaitImports(t, home)
	cache := filepath.Join(home, ".npm", "_npx", "5ac2")
	cached := filepath.Join(cache, "node_modules", "@sessiond", "linux-x64", "bin", "sessiond")
	testkit.Check(t, os.MkdirAll(filepath.Dir(cached), 0o700))
	testkit.Check(t, copyProgram(testkit.Must(os.Executable())(t), cached))
	testkit.Check(t, os.MkdirAll(filepath.Join(home, ".claude"), 0o700))
	run := func(stdin, name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Stdin = home, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=",
			"XDG_CACHE_HOME=", "PATH=/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", cached, "connect", "claude-code"); err == nil || !strings.Contains(out, "the cache of npx") ||
		!strings.Contains(out, "--yes copies it to") {
		t.Errorf("without a terminal: %v %s", err, out)
	}
	out, err := run("", cached, "connect", "claude-code", "--dry-run")
	if exists(filepath.Join(home, ".local")) || err != nil || !strings.Contains(out, "would be copied") {
		t.Errorf("--dry-run: %v %s", err, out)
	}
	copied := filepath.Join(home, ".local", "bin", "sessiond")
	out, err = run("", cached, "connect", "claude-code", "--yes")
	if err != nil || !strings.Contains(out, "sessiond is copied to "+copied) || !strings.Contains(out, "to your PATH") {
		t.Fatalf("connect: %v %s", err, out)
	}
	testkit.Check(t, os.RemoveAll(cache))
	for _, file := range []string{".claude.json", ".claude/settings.json"} {
		text := string(testkit.Must(os.ReadFile(filepath.Join(home, file)))(t))
		if strings.Contains(text, "_npx") || !strings.Contains(text, copied) {
			t.Errorf("%s is %s", file, text)
		}
	}
	settings := string(testkit.Must(os.ReadFile(filepath.Join(home, ".claude", "settings.json")))(t))
	_, command, _ := strings.Cut(settings, `"command": "`)
	command, _, _ = strings.Cut(command, `"`)
	event := `{"session_id":"s","cwd":"` + home + `","hook_event_name":"PreCompact"}`
	if out, err := run(event, "sh", "-c", command+" --explain"); err != nil || out != "" {
		t.Errorf("the hook %q says %v %s", command, err, out)
	}
	// The copy itself stays where it is, and a second connect changes nothing.
	if out, err := run("", copied, "connect", "claude-code"); err != nil || !strings.Contains(out, "nothing to change") {
		t.Errorf("connect of the copy: %v %s", err, out)
	}
}
