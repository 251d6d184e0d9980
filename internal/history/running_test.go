package history

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

func TestCommandIsKnownByItsPath(t *testing.T) {
	names := []string{"gemini", "gemini-cli"}
	for line, want := range map[string]bool{
		"gemini -p hello":                      true,
		"/usr/bin/gemini":                      true,
		"node /usr/local/bin/gemini -r latest": true,
		"node --max-old-space-size=8192 /usr/lib/node_modules/@google/gemini-cli/dist/index.js": true,
		"vim /home/ana/.gemini/settings.json":                                                   false,
		"sessiond import gemini-cli /x":                                                         false,
		"node /srv/app.js gemini":                                                               false,
		"":                                                                                      false,
	} {
		if got := namesCommand(strings.ReplaceAll(line, " ", "\x00")+"\x00", names); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

func TestRunningProgramIsSeen(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc here")
	}
	names := []string{"sessiond-test-of-running-" + filepath.Base(t.TempDir())}
	if running, known := isRunning(names); running || !known {
		t.Errorf("before it runs: %t %t", running, known)
	}
	path := filepath.Join(t.TempDir(), names[0])
	testkit.Check(t, os.Symlink(testkit.Must(exec.LookPath("cat"))(t), path))
	cmd := exec.CommandContext(t.Context(), path)
	in := testkit.Must(cmd.StdinPipe())(t)
	testkit.Check(t, cmd.Start())
	if running, known := isRunning(names); !running || !known {
		t.Errorf("while it runs: %t %t", running, known)
	}
	testkit.Check(t, in.Close())
	testkit.Check(t, cmd.Wait())
	if running, _ := isRunning(names); running {
		t.Error("after it has ended")
	}
}
