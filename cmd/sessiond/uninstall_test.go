package main

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// A home in which sessiond was used is, after an uninstall with the data, as it was before.
func TestUninstallLeavesAHomeAsItWas(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("it needs a shell")
	}
	home, bin := t.TempDir(), t.TempDir()
	write := func(path, text string, mode fs.FileMode) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Check(t, os.WriteFile(path, []byte(text), mode))
	}
	under := func(path string) string { return filepath.Join(home, filepath.FromSlash(path)) }
	write(filepath.Join(bin, "systemctl"), fakeSystemctl, 0o700)
	write(under(".pi/agent/sessions/one/one.jsonl"), strings.Join([]string{
		`{"type":"session","version":3,"id":"019c2222-0000-7000-8000-000000000001",` +
			`"timestamp":"2026-02-03T09:00:00.000Z","cwd":"/home/dev/demo"}`,
		`{"type":"message","id":"10000004","parentId":null,"timestamp":"2026-02-03T09:00:02.000Z",` +
			`"message":{"role":"user","content":[{"type":"text","text":"Hello"}],"timestamp":1770109202000}}`, "",
	}, "\n"), 0o600)
	write(under(".claude/settings.json"), "{\"theme\": \"dark\"}\n", 0o600)
	write(under(".codex/config.toml"), "# mine\nmodel = \"gpt-5\"\n", 0o600)
	write(under("notes/backups/mine.db"), "not sessiond's", 0o600)
	write(under(".local/share/sessiond/backups/mine.db"), "named by hand", 0o600)
	before := treeOf(t, home)

	sessiond := under(".local/bin/sessiond")
	ofSystemctl := []string{"asked", "log", "pid"}
	testkit.Check(t, copyProgram(testkit.Must(os.Executable())(t), sessiond))
	run := func(wantFailure bool, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(sessiond, args...)
		cmd.Dir = home
		cmd.Env = []string{
			"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "XDG_RUNTIME_DIR=" + home, "TMPDIR=" + t.TempDir(),
			"SESSIOND_LISTEN=127.0.0.1:0",
		}
		if out, err := cmd.CombinedOutput(); (err != nil) != wantFailure || !strings.Contains(string(out), want) {
			t.Fatalf("%q ends with %v and says\n%s\nwant %s", args, err, out, want)
		}
	}
	run(false, "pi", "import", "--yes")
	run(false, "wrote", "connect", "--yes")
	run(false, "sessions.db", "service", "install")
	t.Cleanup(func() { // of a test that failed before its end
		if _, err := os.Stat(sessiond); err == nil {
			run(false, "", "service", "uninstall")
		}
	})
	run(false, "", "append", "@@", "user", "Hello again")
	run(false, "Nothing was removed", "uninstall", "--dry-run", "--data")
	run(true, "no terminal to ask on", "uninstall")

	run(false, "Kept: 1 session, ", "uninstall", "--yes")
	kept := treeOf(t, home)
	for path, text := range before {
		if kept[path] != text {
			t.Errorf("%s is %q after an uninstall, before %q", path, kept[path], text)
		}
	}
	for path := range kept {
		_, was := before[path]
		if !was && !strings.HasPrefix(path, ".local/share/sessiond/") && !slices.Contains(ofSystemctl, path) {
			t.Errorf("an uninstall leaves %s", path)
		}
	}
	testkit.Check(t, copyProgram(testkit.Must(os.Executable())(t), sessiond))
	run(false, "sessiond is removed", "uninstall", "--yes", "--data")
	after := treeOf(t, home)
	for _, path := range ofSystemctl {
		delete(after, path)
	}
	if !maps.Equal(before, after) {
		t.Errorf("left is\n%q\nbefore it was\n%q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// treeOf returns the files of a folder by their paths.
func treeOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	testkit.Check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := testkit.Must(filepath.Rel(folder, path))(t)
		text, _ := os.ReadFile(path) // a socket has none
		files[filepath.ToSlash(name)] = string(text)
		return nil
	}))
	return files
}
