package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// TestReadme runs what the README tells people to copy and paste, in a home of its own. The
// first block starts the daemon and the tests themselves; the import needs a history.
func TestReadme(t *testing.T) {
	text := testkit.Must(os.ReadFile(filepath.Join("..", "..", "README.md")))(t)
	blocks := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(string(text), -1)
	var commands, http, analyst string
	for _, b := range blocks {
		switch block := b[1]; {
		case strings.Contains(block, "sessiond append --new"):
			commands = block
		case strings.Contains(block, "curl"):
			http = block
		case strings.Contains(block, "sqlite3"):
			analyst = block
		}
	}
	if commands == "" || http == "" || analyst == "" {
		t.Fatal("the README lost a block that this test runs")
	}
	for _, tool := range []string{"curl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the README's blocks need %s, which is not installed", tool)
		}
	}
	home := t.TempDir()
	data := filepath.Join(home, ".local", "share")
	d := startDaemonOn(t, data, "127.0.0.1:0")
	http = strings.Replace(http, "http://127.0.0.1:7433", d.url, 1)
	root := testkit.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	analyst = strings.ReplaceAll(analyst, "queries/", root+"/queries/")
	for _, step := range []struct{ block, want string }{
		{commands, "At the beginning: we read the old plan."},
		{http, `"content":"What is in a.txt?"`},
		{analyst, "dearest-sessions"},
	} {
		sh := exec.Command("sh", "-e", "-c", step.block)
		sh.Dir = home
		sh.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+data, "XDG_CONFIG_HOME="+data, "XDG_RUNTIME_DIR=")
		out, err := sh.CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("the block\n%s\nends with %v and prints\n%s", step.block, err, out)
		}
	}
	d.stop()
}
