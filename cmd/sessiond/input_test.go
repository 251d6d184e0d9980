package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"sessiond/internal/testkit"
)

// endless is an input that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A command reads standard input within its limit: it ends, says so, and stores nothing.
func TestEndlessInputIsRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	run := func(args ...string) (*exec.Cmd, *strings.Builder) {
		said := &strings.Builder{}
		cmd := exec.Command("sessiond", args...)
		cmd.Dir, cmd.Stderr = home, said
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR=")
		return cmd, said
	}
	first, _ := run("append", "--new", "user", "hello")
	testkit.Check(t, first.Run())
	for _, args := range [][]string{{"append", "@", "user", "-"}, {"append", "@"}} {
		cmd, said := run(args...)
		cmd.Stdin = endless{}
		err := cmd.Run()
		if err == nil || !strings.Contains(said.String(),
			"standard input has more than 32 MiB, the limit of one append; nothing was stored") {
			t.Errorf("%q: %v: %s", args, err, said)
		}
	}
	hook, said := run("hook", "codex", "--explain")
	hook.Stdin = endless{}
	if err := hook.Run(); err != nil || !strings.Contains(said.String(), "standard input has more than 8 MiB") {
		t.Errorf("hook: %v: %s", err, said)
	}
	count, _ := run("query", "--csv", "SELECT COUNT(*) AS n FROM messages")
	count.Stderr = nil
	if out := string(testkit.Must(count.Output())(t)); out != "n\n1\n" {
		t.Errorf("stored: %q", out)
	}
}

// A spreadsheet calculates no cell that sessiond writes, and numbers stay numbers.
func TestCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "plain": "plain", "a=1": "a=1", "-1": "-1", "+2.50": "+2.50", "-1e-9": "-1e-9", "3": "3",
		"=1+1": "'=1+1", "+1+1": "'+1+1", "-1+1": "'-1+1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\n=1": "'\n=1",
		"  =1": "'  =1",
		"-":    "'-", "-x": "'-x", "＝1": "'＝1", "-0x1": "'-0x1", "+Inf": "'+Inf", "'=1": "'=1",
	} {
		if got := withoutFormula(cell); got != want {
			t.Errorf("%q is written as %q, want %q", cell, got, want)
		}
	}
}
