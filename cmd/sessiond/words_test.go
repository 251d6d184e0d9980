package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/testkit"
)

// TestHelpPages keeps all help pages in testdata/help.golden, where they can be read one after another.
func TestHelpPages(t *testing.T) {
	t.Parallel()
	root := (&app{env: &env{outTTY: true, width: 80}}).root()
	var pages strings.Builder
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		var page bytes.Buffer
		cmd.SetOut(&page)
		testkit.Check(t, cmd.Help())
		said, _, _ := strings.Cut(page.String(), "\nGlobal Flags:")
		fmt.Fprintf(&pages, "$ %s --help\n%s\n", cmd.CommandPath(), strings.TrimRight(said, "\n")+"\n")
	}
	golden(t, "help.golden", pages.String())
}

// TestMessages keeps what the commands say, success and error, in testdata/messages.golden. The lines of
// testdata/messages.txt run one after another, in one home, a minute apart.
func TestMessages(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, "shop")
	testkit.Check(t, os.MkdirAll(filepath.Join(dir, ".git"), 0o700))
	now := time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)
	var said strings.Builder
	for line := range strings.Lines(string(testkit.Must(os.ReadFile(filepath.Join("testdata", "messages.txt")))(t))) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"):
			fmt.Fprintln(&said, line)
			continue
		case line == "+ histories": // from here on other programs have histories
			testkit.Check(t, os.CopyFS(home, os.DirFS(filepath.Join("testdata", "histories"))))
			continue
		}
		now = now.Add(time.Minute)
		line = strings.ReplaceAll(strings.TrimPrefix(line, "."), "$HOME", home) // a lone dot: without arguments
		var out, problems bytes.Buffer
		code := run(context.Background(), fields(line), &env{
			in: strings.NewReader(""), out: &out, err: &problems, now: func() time.Time {
				return now
			}, dir: dir, program: "sessiond",
			environ: []string{
				"HOME=" + home, "TZ=UTC", "XDG_DATA_HOME=" + home + "/data", "XDG_CONFIG_HOME=" + home + "/config",
				"XDG_RUNTIME_DIR=" + home, "SESSIOND_TIMEZONE=UTC",
			},
		})
		fmt.Fprintln(&said, strings.TrimSpace("$ sessiond "+line))
		said.WriteString(out.String())
		for problem := range strings.Lines(problems.String()) {
			said.WriteString("2> " + problem)
		}
		if code != exitDone {
			fmt.Fprintf(&said, "exit %d\n", code)
		}
	}
	text := strings.ReplaceAll(said.String(), home, "$HOME")
	golden(t, "messages.golden", durations.ReplaceAllString(text, "… ms"))
}

// durations are of the run.
var durations = regexp.MustCompile(`\b[0-9.]+ ?(ms|µs)\b`)

// fields splits a line into words; '…' holds one with spaces.
func fields(line string) []string {
	words := []string{"--no-color"} // never none: cobra would use those of the test
	for i, piece := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, piece)
		} else {
			words = append(words, strings.Fields(piece)...)
		}
	}
	return words
}

// golden compares a text with a file of testdata; -update writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		testkit.Check(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want := string(testkit.Must(os.ReadFile(path))(t))
	if got != want {
		t.Errorf("%s is not what sessiond says now; `go test ./cmd/sessiond -run 'Help|Messages' -update` writes it anew.\n"+
			"%s", name, firstDifference(want, got))
	}
}

// firstDifference shows the first line that differs.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nthe file: %s\nsessiond: %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("the file has %d lines, sessiond says %d", len(a), len(b))
}
