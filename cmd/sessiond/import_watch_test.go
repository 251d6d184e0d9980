package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// piHome is a home folder with one session of pi in it.
func piHome(t *testing.T) (home, transcript string) {
	t.Helper()
	home = t.TempDir()
	transcript = filepath.Join(home, ".pi", "agent", "sessions", "--demo--", "2026-02-03T09-00-00-000Z_one.jsonl")
	testkit.Check(t, os.MkdirAll(filepath.Dir(transcript), 0o700))
	header := `{"type":"session","version":3,"id":"one-and-only","timestamp":"2026-02-03T09:00:00.000Z","cwd":"/home/dev"}` + "\n"
	testkit.Check(t, os.WriteFile(transcript, []byte(header+piSays("a", "null", "What is in a.txt?")), 0o600))
	return home, transcript
}

func piSays(id, parent, text string) string {
	return `{"type":"message","id":"` + id + `","parentId":` + parent + `,"timestamp":"2026-02-03T09:00:02.000Z","message":{"role":"user","content":"` + text + `","timestamp":1770109202000}}` + "\n"
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f := testkit.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	testkit.Must(f.WriteString(text))(t)
}

// talker is a running command, and what it says line by line.
func talker(t *testing.T, home string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("sessiond", args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=", "HOME="+home, "PI_CODING_AGENT_DIR=")
	cmd.Stderr = os.Stderr
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone already in most tests
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// until reads lines up to one that holds the text.
func until(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	var before []string
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
		before = append(before, lines.Text())
	}
	t.Fatalf("%q was never said, but:\n%s", text, strings.Join(before, "\n"))
}

func TestImportWatchGoesOnUntilItIsStopped(t *testing.T) {
	home, transcript := piHome(t)
	cmd, lines := talker(t, home, "import", "pi", "--watch")
	until(t, lines, "Following")
	appendTo(t, transcript, piSays("b", `"a"`, "And in b.txt?"))
	until(t, lines, "pi: 1 record of 1 session")
	testkit.Check(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	_, found := talker(t, home, "search", "b.txt")
	until(t, found, "b.txt")
}

// The daemon follows what was imported once; somebody who looks on sees it come in.
func TestDaemonFollowsWhatWasImported(t *testing.T) {
	home, transcript := piHome(t)
	first, lines := talker(t, home, "import", "pi")
	until(t, lines, "pi")
	testkit.Check(t, first.Wait())
	startDaemon(t, home)
	_, seen := talker(t, home, "show", "one-and-only", "-f")
	until(t, seen, "a.txt")
	appendTo(t, transcript, piSays("b", `"a"`, "And in b.txt?"))
	until(t, seen, "b.txt")
}

// A session that its model's window cannot hold comes with a digest, so that no read makes it again.
func TestImportStagesDigestsOfLongSessions(t *testing.T) {
	home, transcript := piHome(t)
	words := strings.Repeat("the harvest of the apples begins in the orchard behind the barn. ", 400)
	for i := range 40 { // 128,000 tokens is the window of an unknown model
		appendTo(t, transcript, piSays(fmt.Sprint("m", i), fmt.Sprintf("%q", []string{"a", fmt.Sprint("m", i-1)}[min(i, 1)]), fmt.Sprint(i, words)))
	}
	cmd, lines := talker(t, home, "import", "pi")
	until(t, lines, "pi")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_, out := talker(t, home, "context", "one-and-only", "--json")
	until(t, out, `"status": "staged"`)
}
